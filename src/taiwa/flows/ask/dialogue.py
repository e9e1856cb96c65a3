"""A dialogue before any search: what its words alone determine, and the stand-alone queries that a model writes for it.

The patterns of small talk (greetings, thanks, commands, a request for a human) are in three languages and match complete
texts only: `thanks` is thanks, but `thanks to whom do I owe the form?` is a question. Small talk therefore costs no model
call, and is never rewritten into a question.
"""

import json
import re
from collections.abc import Sequence
from itertools import chain
from unicodedata import normalize

from taiwa.flows.ask.prompts import load_prompts
from taiwa.flows.ask.quote import is_negative
from taiwa.flows.ask.types import Option, Route
from taiwa.kernel.effects import Complete, HideOutput, Program, Retrieve, gather, notify, perform
from taiwa.kernel.errors import InputError, UnsupportedError
from taiwa.kernel.messages import Message, Passage, Request, RequestHints, Sampling, fuse_rankings, system, user
from taiwa.kernel.serialization import Json, value
from taiwa.kernel.text import fold, guess_language, is_question, strip_control
from taiwa.kernel.wording import Wording

REPLY_LANGUAGES = ("ja", "zh", "en")

MAX_WITHOUT_KANA = 12
"""A longer Japanese text contains kana."""


def turns(dialogue: Sequence[Message]) -> tuple[Message, ...]:
    """Return the turns of the user and the assistant that are not empty, oldest first."""
    return tuple(each for each in dialogue if each.role in ("user", "assistant") and each.text.strip())


def user_texts(dialogue: Sequence[Message]) -> tuple[str, ...]:
    """Return the texts of the user that are not empty, oldest first."""
    return tuple(message.text for message in dialogue if message.role == "user" and message.text.strip())


def reply_language(texts: Sequence[str], preferred: str = "", locale: str = "") -> str:
    """Return the language to reply in (ja, zh, en): the preferred one, else that of the user's last text in a known language.

    Chinese characters alone are Japanese if the user wrote kana before; a short text of them also if `locale` is Japanese or if
    they do not exist in simplified Chinese.

    >>> reply_language(["予約"]), reply_language(["休暇"], locale="ja"), reply_language(["休暇"], locale="zh"), reply_language(["预约"])
    ('ja', 'ja', 'zh', 'zh')
    """
    if preferred in REPLY_LANGUAGES:
        return preferred
    languages = [guess_language(text) for text in texts]
    guessed = [*zip(languages, texts, strict=True)][::-1]
    known, text = next((each for each in guessed if each[0] != "und"), ("en", ""))
    if known == "zh" and ("ja" in languages or _is_japanese(text, locale)):
        return "ja"
    return known if known in REPLY_LANGUAGES else "en"


def _is_japanese(han: str, locale: str) -> bool:
    """Whether Chinese characters without kana are Japanese, by the characters of the national standards and the locale."""
    if locale == "zh" or len(han.strip()) > MAX_WITHOUT_KANA or not _encodable(han, "cp932"):
        return False
    return locale == "ja" or not _encodable(han, "gb2312")


def _encodable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def dialogue_message(dialogue: Sequence[Message], **more: Json) -> Message:
    """Return the message that contains the dialogue and other material as one line of JSON.

    No text in it can end early or pose as another turn; `<` is escaped, so that no server finds a mark of its chat template.
    """
    texts: list[Json] = [{"role": each.role, "text": strip_control(each.text)} for each in turns(dialogue)]
    whole: dict[str, Json] = {"dialogue": texts, **{name: part for name, part in more.items() if part}}
    return user(json.dumps(whole, ensure_ascii=False).replace("<", "\\u003c"))


MAX_CHARACTERS = 60

ENDS = r"[\s!！.。、,，~〜～♪😊🙏🙇]*"

PATTERNS: tuple[tuple[Route, str], ...] = (
    (
        "greeting",
        r"(?:hi|hello|hey|good (?:morning|afternoon|evening|day))(?: (?:there|all|everyone|again))?|how are you(?: (?:today|doing))?\??|"
        r"こんにち[はわ]|こんばん[はわ]|おはよう(?:ございます)?|はじめまして|お疲れ(?:さま|様)(?:です|でした)?|もしもし|やあ|元気(?:ですか)?\??|"
        r"你好(?:吗|啊|呀)?\??|您好|大家好|早上好|早安|下午好|晚上好|嗨|哈喽",
    ),
    (
        "thanks",
        r"(?:ok(?:ay)?,? )?(?:many |thank you |thanks )?(?:thanks|thank you|thx|cheers|much appreciated|got it)(?: (?:a lot|so much|very much|again|for (?:the|your) help))?|"
        r"(?:どうも|本当に)?ありがとう(?:ございま(?:す|した))?|どうも|助かりました|(?:了解|承知)(?:です|しました)?|わかりました|分かりました|"
        r"(?:非常|十分|多)?(?:谢谢|感谢)(?:你|您|啦|了)?(?:的帮助)?|多谢|明白了|知道了|好的,?谢谢",
    ),
    (
        "farewell",
        r"(?:good)?bye(?: bye)?|see you(?: (?:later|soon|tomorrow))?|good night|that(?:'| i)s all|"
        r"さようなら|さよなら|おやすみ(?:なさい)?|失礼します|失礼しました|またね|以上です|"
        r"再见|拜拜|晚安|回头见",
    ),
    (
        "command",
        r"/\S+.*|(?:stop|cancel|quit|exit|reset|clear|help|start over|never ?mind)|"
        r"(?:中止|停止|終了|キャンセル|リセット|ヘルプ|やめて|やめます|最初から)(?:する|して|してください)?|"
        r"(?:停止|取消|退出|结束|重置|帮助|算了|重新开始)(?:吧)?",
    ),
    (
        "person",
        r"(?:(?:please |can i |could i |may i |i(?:'d| would) like to |i want to |let me )?(?:talk|speak|connect me|hand me over)(?: to| with)? (?:a |an |some |the )?"
        r"(?:human|person|people|someone|somebody|operator|real person|colleague|staff)(?: please)?\??)|operator|"
        r"(?:担当者?|人|人間|オペレーター|係の方|窓口)(?:の方)?(?:に|と|へ)?(?:つないで|繋いで|代わって|替わって|話したい|相談したい|話させて)(?:です|ください|下さい|くれますか)?|"
        r"(?:请)?(?:帮我)?(?:转|找|接)(?:人工|真人|客服|负责人|同事)(?:服务|客服)?|人工(?:客服|服务)?",
    ),
    (
        "just_answer",
        r"(?:please )?just (?:answer|tell me|search|look(?: it up)?)(?: (?:it|me|the question))?(?: please| anyway)?|(?:please )?answer (?:me |it )?anyway|go ahead(?: and answer)?|(?:no more|stop asking) questions|stop asking(?: me)?|"
        r"(?:it )?does(?:n't| not) matter|whatever|any(?: of them)?|all of (?:them|these)|i don't (?:know|care)|"
        r"(?:いいから|もう|とにかく|とりあえず|そのまま|すぐに?|、)*(?:答えて|教えて|調べて)(?:ください|下さい)?|質問(?:は)?(?:もう)?(?:いい|しないで|やめて)(?:から|です|ください)?(?:答えて)?|どれでも(?:いい)?(?:です)?|"
        r"全部(?:です)?|すべて(?:です)?|わからない(?:です)?|分かりません|わかりません|"
        r"(?:请)?(?:直接)?(?:回答|告诉我|查一下)(?:吧|就行)?|别(?:再)?问了|不要再问了|都可以|都行|随便|全部|不知道",
    ),
    (
        "none",
        r"none(?: of (?:these|those|them|the above))?|neither(?: of them)?|something else|other|"
        r"どれ(?:で)?も(?:ない|ありません|違います|違う|ちがう)(?:です)?|その他|該当なし|違います|ちがいます|"
        r"都不是|没有(?:一个)?|以上都不是|其他(?:的)?|别的",
    ),
)

TOPIC = re.compile(
    r"(?:(?:hi|hello|hey|excuse me)[,!.]? )?(?:i(?:'ve got| have)(?: got)? (?:a|some|another) (?:quick |short )?questions?|i(?:'d| would) like to ask(?: something| a question)?"
    r"|(?:may|can|could) i ask (?:you )?(?:something|a (?:quick )?question)|(?:a )?(?:quick )?question) (?:about|on|concerning|regarding) (?P<en>[^?]+?)"
    r"|(?P<ja>[^?、]+?)(?:について|に関して|のことで|の件で)、?(?:(?:ちょっと|少し))?(?:質問(?:が|は)?(?:あります|ある|です|したい|させてください)|(?:聞|き|伺|お聞|お伺)[きいし]*たい(?:こと|の)?(?:が|です)?(?:あります|ある|のですが|んですが)?|相談(?:が|したい)?(?:あります|です|のですが)?)(?:です|。)?"
    r"|(?:你好[,，!！]?)?(?:我)?(?:有(?:个|一个|些)?(?:关于|有关)(?P<zh>[^?]+?)的?问题|(?:想|要)?(?:问|咨询|请教)(?:一下|下|个)?(?:关于|有关)(?P<zh2>[^?]+?)(?:的)?(?:问题|事情?|情况)?)",
    re.IGNORECASE,
)
"""The announcement of a question, with its subject."""

REPLIES_ONLY: frozenset[Route] = frozenset({"just_answer", "none"})
"""Routes that apply only to replies to a clarifying question: `all of them` has no meaning at the beginning of a dialogue."""

ALWAYS = re.compile(r"just (?:answer|search)|no more|stop asking|質問|いいから|别|不要再|直接", re.IGNORECASE)
"""Words of `just_answer` that need no question before them."""

NUMBER = re.compile(r"[(#]?(\d{1,2})[).]?(?:番(?:目)?|号|です|个|，|。)*")


def detect_route(text: str, *, asked: bool = False) -> Route:
    """Classify a text; "" if its words alone do not decide. `asked`: it is a reply to a clarifying question.

    >>> detect_route("ありがとうございます!"), detect_route("Thanks to whom?"), detect_route("担当者につないでください")
    ('thanks', '', 'person')
    """
    plain = " ".join(normalize("NFKC", text).split())
    if not plain or len(plain) > MAX_CHARACTERS:
        return ""
    for route, pattern in PATTERNS:
        matches = re.fullmatch(rf"(?:{pattern}){ENDS}", plain, re.IGNORECASE)
        if matches and (asked or route not in REPLIES_ONLY or ALWAYS.search(plain)):
            return route
    return "topic" if announced_topic(text) and not asked else ""


def announced_topic(text: str) -> str:
    """Return the subject of a text that only announces a question; "" for any other text.

    >>> announced_topic("I have a question about sick leave."), announced_topic("休暇について質問があります"), announced_topic("我想问一下关于年假的问题")
    ('sick leave', '休暇', '年假')
    """
    found = TOPIC.fullmatch(" ".join(normalize("NFKC", text).split()).rstrip(" .。!"))
    return next((topic for topic in found.groups() if topic), "") if found else ""


def select_option(text: str, offered: Sequence[Option]) -> Option | None:
    """Return the option that a reply names, by its number or its label.

    >>> select_option("2番です", (Option("Paid leave"), Option("Sick leave"))).label
    'Sick leave'
    """
    plain = _plain(text)
    if not plain:
        return None
    number = NUMBER.fullmatch(plain)
    if number and 1 <= int(number[1]) <= len(offered):
        return offered[int(number[1]) - 1]
    labels = [(option, " ".join(fold(option.label).split())) for option in offered]
    exact = [option for option, label in labels if label == plain]
    matches = exact or [option for option, label in labels if label and label in plain]
    return matches[0] if len(matches) == 1 else None


def is_option_number(text: str) -> bool:
    """Whether a reply is only the number of an option, whether or not that option exists; there are fewer than ten."""
    number = NUMBER.fullmatch(_plain(text))
    return number is not None and len(number[1]) == 1


def only_names_option(text: str, option: Option) -> bool:
    """Whether a reply is only the number or the label of an option."""
    return is_option_number(text) or _plain(text) == _plain(option.label)


def _plain(text: str) -> str:
    return " ".join(fold(text).split()).strip("!.。、, ")


# --- queries ----------------------------------------------------------------------------------------------------------

MAX_REPLY_CHARACTERS = 60
"""Length of a reply to a clarifying question up to which all of its words must be kept; in a longer one, only names and numbers."""

NUMERAL = re.compile(r"\d+(?:[.,:/-]\d+)*%?")

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
    matches = chain.from_iterable(each.finditer(text) for each in (NUMERAL, QUOTED, NAME, PROPER))
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
    numbers = frozenset(NUMERAL.findall(folded))
    return tuple(term for term in required if not _contains(folded, numbers, term.casefold()))


def _contains(query: str, numbers: frozenset[str], term: str) -> bool:
    if NUMERAL.fullmatch(term):
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
    request = Request(messages, sampling=Sampling(max_tokens=MAX_TOKENS), hints=RequestHints(opening=1))
    try:
        response = yield from perform(Complete(request, HideOutput))
    except UnsupportedError:  # a model that writes no text; the first search weights the words of the whole dialogue
        return Queries(raw)
    written = _lines(response.text, multiple=multiple)
    if not written or response.finish != "stop" or is_other_script(" ".join(written), texts):
        why = Wording("the query could not be rewritten; searching with the last text")
        yield from notify(why, code="rewrite", warning=True)
        return Queries(raw, discarded=" ".join(response.text.split()))
    if loses_negation(" ".join(written), raw):
        yield from notify(Wording("the rewritten query lost a negation; searching with the last text"), code="rewrite", warning=True)  # fmt: skip
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
