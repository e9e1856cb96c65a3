"""Rewrite a dialogue as stand-alone queries, check that required terms are kept, and retrieve with several queries."""

import json
import re
from collections.abc import Sequence
from itertools import chain
from unicodedata import normalize

from taiwa.flows.ask.prompts import load_prompts
from taiwa.flows.ask.read_dialogue import reply_language, turns, user_texts
from taiwa.flows.ask.words import is_negative
from taiwa.kernel.effects import Complete, HideOutput, Program, Retrieve, gather, notify, perform
from taiwa.kernel.errors import InputError, UnsupportedError
from taiwa.kernel.messages import Message, Passage, Request, Sampling, fuse_rankings, system, user
from taiwa.kernel.serialization import value
from taiwa.kernel.text import fold, is_question, strip_control

MAX_REPLY_CHARACTERS = 60
"""Length of a reply to a clarifying question up to which all of its words must be kept; in a longer one, only names and numbers."""

NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*%?")

QUOTED = re.compile(r"[「『“\"]([^「」『』“”\"]{1,40})[」』”\"]")

NAME = re.compile(r"\b(?:[A-Z][A-Za-z]*-?\d[\w-]*|[A-Z]{2,}[\w-]*|[a-z]+[A-Z]\w*)\b")

PROPER = re.compile(r"(?<![.!?。！？\n] )(?<!^)\b([^\W\d_a-z])[^\W\d_]+\b")
"""A word in the middle of a sentence that begins with a capital, if its first letter is one."""

SUBJECT = re.compile(
    r"([\u3005\u30a1-\u30fa\u30fc\u4e00-\u9fff]+)(?:さん|様|氏|くん|ちゃん|先生)"
    r"|([\u3005\u30a1-\u30fa\u30fc\u4e00-\u9fff]{2,})の"
    r"|(?:^|[、。「\s])([\u3041-\u3096]{2,6}?)(?:さん|様|くん|ちゃん|先生)"
    r"|(?:请问|^|[，。？！\s])([\u4e00-\u9fff]{2,6}?)(?=的)"
    r"|\b([^\W\d_][\w-]+)(?=['’]s\b)"
    r"|\b(?:of|for|in|at|about|from|with|by) ([a-z][\w-]{2,})"
)
"""What is asked about, by its place: before a title of respect or a possessive, or behind a preposition without an article."""

WORD = re.compile(r"[A-Za-z][A-Za-z'-]{2,}|[\u30a1-\u30fa\u30fc]{2,}|[\u3400-\u9fff\uf900-\ufaff]{2,}")

STEM = 4

STOP_WORDS = frozenset(
    """the and for not but are was were that this with from have has had you your they them their our his her its about there here
    yes yeah sure okay please thanks thank would could should want like need just only maybe either both one ones mean meant think
    can will what which who how when where why it he she let something anything really actually some any very also then than""".split()
)

CJK = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")

LATIN = re.compile(r"[A-Za-z]")


def required_terms(dialogue: Sequence[Message]) -> tuple[str, ...]:
    """Return the terms of the user's texts that a query must keep.

    >>> from taiwa.kernel.messages import assistant, user
    >>> required_terms((user("Which tool for 20 guests?"), assistant("For what?"), user("Video calls, Zoom or Teams")))
    ('20', 'Zoom', 'Teams', 'Video', 'calls')
    """
    terms: dict[str, None] = {}
    asked = False
    texts = user_texts(dialogue)
    follows = len(texts) > 1 and not _subjects(texts[-1])
    for turn in turns(dialogue):
        if turn.role == "assistant":
            asked = is_question(turn.text)
            continue
        text = normalize("NFKC", turn.text)
        terms.update(dict.fromkeys(_names(text)))
        if follows:  # "the phone number?" is still about the same person, "and in milan?" is not about the same town
            terms.update(dict.fromkeys(_subjects(text)))
        if asked and len(text) <= MAX_REPLY_CHARACTERS:
            terms.update(dict.fromkeys(word for word in WORD.findall(text) if word.casefold() not in STOP_WORDS))
        asked = False
    return tuple(terms)


def _names(text: str) -> list[str]:
    matches = chain.from_iterable(each.finditer(text) for each in (NUMBER, QUOTED, NAME, PROPER))
    found = sorted((match.start(), match[0 if match.re is PROPER else match.lastindex or 0])
                   for match in matches if match.re is not PROPER or match[1].isupper())  # fmt: skip
    return [name.strip() for _, name in found if name.strip()]


def _subjects(text: str) -> list[str]:
    found = (match[match.lastindex or 0] for match in SUBJECT.finditer(normalize("NFKC", text)))
    return [each for each in found if each.casefold() not in STOP_WORDS]


def loses_negation(query: str, text: str) -> bool:
    """Whether a query has no negation, but the text that it was written from has one.

    >>> loses_negation("which rooms are free?", "which ones are not free?"), loses_negation("is it free?", "Isn't it free?")
    (True, False)
    """
    return is_negative(text) and not is_negative(query)


def missing_terms(query: str, required: Sequence[str]) -> tuple[str, ...]:
    """Return the required terms that a query lacks; the stem of a word, or half of the character pairs of a run, is enough.

    >>> missing_terms("May I use Teams for video calling?", ("20", "Video", "calls", "Teams"))
    ('20',)
    """
    folded = fold(query)
    numbers = frozenset(NUMBER.findall(folded))
    return tuple(term for term in required if not _contains(folded, numbers, term.casefold()))


def _contains(query: str, numbers: frozenset[str], term: str) -> bool:
    if NUMBER.fullmatch(term):
        return term in numbers
    if term in query:
        return True
    if term.isascii() and term.isalpha():
        return len(term) >= STEM and term[: max(STEM, len(term) - 3)] in query
    pairs = [term[at : at + 2] for at in range(len(term) - 1)]
    return len(pairs) > 1 and sum(pair in query for pair in pairs) * 2 >= len(pairs)


def is_other_script(query: str, texts: Sequence[str]) -> bool:
    """Whether a query is in another script than all texts of the user.

    >>> is_other_script("child nursing leave", ("看護休暇について",)), is_other_script("Zoomは使えますか", ("Zoomは使える?",))
    (True, False)
    """
    whole = " ".join(texts)
    if CJK.search(whole):
        return CJK.search(query) is None
    return bool(LATIN.search(whole)) and CJK.search(query) is not None


MAX_TOKENS = 512

MAX_QUERIES = 3

LISTED = re.compile(r"^\s*(?:[-*•・]|\(?\d{1,2}[.):、])\s+|^\s*\d{1,2}[、．]")

QUESTION_END = re.compile(r"(?<=[?？])\s*|(?<=か。)|(?<=吗。)")

MIN_QUESTION_BYTES = 8
"""Length of the shortest question of its own, in bytes: a Chinese character has three, and about the content of three letters."""


@value(tag="queries")
class Queries:
    """The queries of a dialogue: `raw` is the user's last text, `rewritten` the model's queries, if it wrote any.

    `missing_terms` were lacking in the rewrite and were added to it; `discarded` is a rewrite that could not be used.
    """

    raw: str
    rewritten: tuple[str, ...] = ()
    missing_terms: tuple[str, ...] = ()
    discarded: str = ""

    @property
    def text(self) -> str:
        """All rewritten queries as one, or the raw text."""
        return " ".join(self.rewritten) if self.rewritten else self.raw

    @property
    def all(self) -> tuple[str, ...]:
        """All queries to retrieve with; the raw text is one of them, so that a bad rewrite cannot lose it."""
        return tuple(dict.fromkeys((*self.rewritten, *([] if self.rewritten else split_questions(self.raw)), self.raw)))


def rewrite_queries(
    dialogue: Sequence[Message],
    *,
    multiple: bool = True,
    language: str = "",
    own_prompts: Sequence[tuple[str, str]] = (),
) -> Program[Queries]:
    """Rewrite a dialogue as queries; the prompt is in `language`, or in that of the dialogue, or one of `own_prompts`.

    Required terms that the model omits are added; for a model that cannot write text the raw text is the query. A rewrite
    that is empty, cut off, in another script, or without a negation of the last text is discarded with a warning; then the raw text is the query.

    Raises (when run):
        InputError: the dialogue has no text of the user.
    """
    texts = user_texts(dialogue)
    if not texts:
        raise InputError("the dialogue has no text of the user")
    raw = texts[-1]
    if len(texts) == 1:
        return Queries(raw)
    prompts = load_prompts(reply_language(texts, language)).replaced_by(own_prompts)
    instructions = prompts.sections["rewrite_several" if multiple else "rewrite_one"]
    messages = system(instructions), user(json.dumps([strip_control(text) for text in texts], ensure_ascii=False))
    request = Request(messages, sampling=Sampling(max_tokens=MAX_TOKENS))
    try:
        response = yield from perform(Complete(request, HideOutput))
    except UnsupportedError:  # a model that writes no text; the first search weights the words of the whole dialogue
        return Queries(raw)
    written = _lines(response.text, multiple=multiple)
    if not written or response.finish != "stop" or is_other_script(" ".join(written), texts):
        why = "the query could not be rewritten; searching with the last text"
        yield from notify(why, code="rewrite", warning=True)
        return Queries(raw, discarded=" ".join(response.text.split()))
    if loses_negation(" ".join(written), raw):
        yield from notify(
            "the rewritten query lost a negation; searching with the last text", code="rewrite", warning=True
        )
        return Queries(raw, discarded=" ".join(response.text.split()))
    missing = missing_terms(" ".join(written), required_terms(dialogue))
    if missing:
        yield from notify(f"added to the query: {', '.join(missing)}", code="rewrite")
        written = (*written[:-1], " ".join((written[-1], *missing)))
    return Queries(raw, written, missing)


def _lines(text: str, *, multiple: bool) -> tuple[str, ...]:
    """Return the questions of an answer, one per line, without bullets."""
    lines = [" ".join(LISTED.sub("", line).split()) for line in text.splitlines()]
    questions = tuple(dict.fromkeys(line for line in lines if line))
    return questions[:MAX_QUERIES] if multiple else tuple(filter(None, (" ".join(questions),)))


def split_questions(text: str) -> tuple[str, ...]:
    """Split a text of several questions, without a model; any other text is returned unchanged.

    >>> split_questions("How many days of leave are there? Who approves them?")
    ('How many days of leave are there?', 'Who approves them?')
    >>> split_questions("Zoom or Teams?")
    ('Zoom or Teams?',)
    """
    pieces = [piece.strip() for piece in QUESTION_END.split(text) if piece.strip()]
    are_questions = 2 <= len(pieces) <= MAX_QUERIES and all(
        is_question(piece) and len(piece.encode("utf-8", "replace")) >= MIN_QUESTION_BYTES for piece in pieces
    )
    return tuple(pieces) if are_questions else (text,)


def retrieve_fused(
    queries: Sequence[str], k: int, known: Sequence[Sequence[Passage]] = ()
) -> Program[tuple[Passage, ...]]:
    """Retrieve with several queries concurrently, and fuse the rankings with those already known."""
    found = yield from gather(perform(Retrieve(query, k)) for query in queries)
    return fuse_rankings((*known, *(each.passages for each in found)), k)
