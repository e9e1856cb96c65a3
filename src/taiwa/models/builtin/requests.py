"""Requests by the task that they name; short prompts; refusal."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from taiwa.conversation.turn_prompt import DELTA_LINE, EARLIER, ENVIRONMENT, STATE
from taiwa.i18n import dialogue_catalogue, gettext_noop
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import JsonSchema, Request, Text
from taiwa.kernel.records import Json
from taiwa.models.builtin.order_desk import order_prompt
from taiwa.models.builtin.prompt_text import ANSWER, BuiltinPrompt, first_paragraph, plain, spoken, unsupported

__all__ = ["TOLD", "TOOLS", "asking", "compact", "read", "refusal"]


TOOLS: Final = ("calculator", "molar_mass", "stoichiometry")
"""The tools whose calls the model learned to write."""

TAGGED = "<<name: input>>"

LISTED = re.compile(r"^- <<([^\W\d][\w-]{0,63}): ", re.MULTILINE)


def solve(request: Request) -> BuiltinPrompt | None:
    """A question to be solved step by step: the last words of the user. Worked examples are not read.

    Raises:
        UnsupportedError: tools are to be called in another way than the model learned.
    """
    last = request.messages[-1]
    if last.role != "user":
        return None
    words = request.messages[0].text.strip()
    if (words != first_paragraph(words) and TAGGED not in words) or request.tools:
        raise UnsupportedError(
            f"builtin writes calls of tools as {TAGGED} only: take the tagged protocol, or a larger model",
            capability="tools",
        )
    offered = LISTED.findall(words)
    return BuiltinPrompt("solve", plain(spoken(last)), tools=tuple(set(TOOLS).intersection(offered)))


def number(request: Request) -> BuiltinPrompt | None:
    """The number of the last lines of a rationale. Worked examples are not read."""
    last = request.messages[-1]
    return BuiltinPrompt("number", plain(spoken(last))) if last.role == "user" else None


TOLD: Mapping[str, str] = {
    "assess_clarity": "assess.clarity",
    "assess_is_question": "assess.is_question",
    "assess_is_consultation": "assess.is_consultation",
    "assess_in_internal_docs": "assess.in_internal_docs",
    "assess_ask_person": "assess.ask_person",
    "clarify_question": "back",
    "rewrite_query": "rewrite",
}
"""What the model is told, by the task of a request: a control token, and the score that is asked for."""

LONGEST = 900
"""How much of a dialogue is read, counted in Latin letters; a Chinese or Japanese character counts twice."""

LONGEST_USER, LONGEST_OTHER = 420, 200

LONGEST_FRONT = 160

GAP = " ... "

ROLES = {"user": "|u|", "assistant": "|a|"}


def asking(request: Request) -> tuple[str, str] | None:
    """Read a request of the asking flows as what the model is told to do and a short prompt; None where it is none of them."""
    task = TOLD.get(request.task)
    last = request.messages[-1] if request.messages else None
    if task is None or last is None or last.role != "user":
        return None
    held = _json(spoken(last))
    if task == "rewrite":
        return task, compact(_turns(held))
    if not isinstance(held, dict):
        return None
    return task, compact(_turns(held.get("dialogue")), person=held.get("person"), earlier=held.get("earlier"))


def compact(turns: Sequence[tuple[str, str]], *, person: Json = None, earlier: Json = None) -> str:
    """Write a dialogue on one line, its end first of all; turns are pairs of a role and what was said.

    >>> compact([("user", "Is there parking?"), ("assistant", "Yes | no."), ("user", "Where?")], person={"site": "Oss"})
    '|p| site: Oss |u| Is there parking? |a| Yes / no. |u| Where?'
    """
    front = "".join(_front(person, earlier))
    room = LONGEST - _size(front)
    kept: list[str] = []
    for role, text in reversed(turns):
        longest = LONGEST_USER if role == "user" else LONGEST_OTHER
        line = f"{ROLES.get(role, '|a|')} {_shortened(_inert(text), longest)}"
        room -= _size(line) + 1
        if room < 0 and kept:
            break
        kept.append(line)
    return plain(front + " ".join(reversed(kept)))


def _front(person: Json, earlier: Json) -> Iterator[str]:
    if isinstance(person, dict) and person:
        facts = "; ".join(f"{_inert(name)}: {_inert(_worded(fact))}" for name, fact in person.items())
        yield f"|p| {_shortened(facts, LONGEST_FRONT)} "
    if isinstance(earlier, list) and earlier:
        yield f"|e| {_shortened(' / '.join(_inert(_worded(each)) for each in earlier), LONGEST_FRONT)} "


def _inert(text: str) -> str:
    return plain(text).replace("|", "/")


def _worded(given: Json) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _size(text: str) -> int:
    return len(text) if text.isascii() else sum(1 if sign < "\u2e80" else 2 for sign in text)


def _shortened(text: str, longest: int) -> str:
    """Leave out the middle of what is too long: what is wanted stands at an end."""
    if _size(text) <= longest:
        return text
    half = longest * len(text) // _size(text) // 2
    return f"{text[:half].rstrip()}{GAP}{text[-half:].lstrip()}"


def _json(text: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except (ValueError, RecursionError):
        return None


def _turns(held: Json) -> list[tuple[str, str]]:
    """The turns of a JSON list: texts of the user, or objects with a role and a text."""
    found: list[tuple[str, str]] = []
    for each in held if isinstance(held, list) else ():
        if isinstance(each, str):
            found.append(("user", each))
        elif isinstance(each, dict):
            found.append((str(each.get("role", "user")), str(each.get("text", ""))))
    return found


REFUSED = frozenset({"assess", "answer_with_citations", "advise"})
"""Tasks of our flows that the model cannot do; the flows have another way, and are told so at once."""


def read(request: Request) -> BuiltinPrompt | None:
    """Recognise a request of one of our flows by its task; None where it is another.

    Raises:
        UnsupportedError: it is one, and asks for what the model did not learn.
    """
    if not request.messages or request.messages[0].role != "system":
        return None
    if request.task == "solve":
        return solve(request)
    if request.task == "extract_number":
        return number(request)
    if request.task == "chat":
        order = order_prompt(request)
        return None if order is None else BuiltinPrompt("desk", order[0], grammar=order[1])
    if request.task in REFUSED:
        raise unsupported()
    if found := asking(request):
        name, _, score = found[0].partition(".")
        return BuiltinPrompt(name, found[1], score or ANSWER)
    return None


REFUSAL = gettext_noop(
    "I am the small model built into taiwa, and I was not trained to answer this. I solve problems about quantities and chemistry (taiwa solve), "
    "take orders at a caf\u00e9 (taiwa chat order), and judge what a question to documents lacks (taiwa ask). "
    "For everything else, set a larger model: taiwa config set model NAME, or -m NAME; `taiwa models` lists them."
)

KANA = re.compile(r"[\u3041-\u30ff]")

HAN = re.compile(r"[\u4e00-\u9fff]")

LATIN = re.compile(r"[A-Za-z]{2,}")

LOOKED_AT = 4_000

ANSWERED = frozenset(("answer", "delta"))
"""The keys of a reply that is one JSON object."""


def refusal(request: Request) -> str:
    """The reply to a request that the model cannot read.

    Raises:
        UnsupportedError: the request wants something else than words of a reply.
    """
    last = request.messages[-1] if request.messages else None
    if last is None or request.tools or request.top_logprobs or last.role != "user":
        raise unsupported()
    said = spoken(last)
    words = dialogue_catalogue(_language(said))(REFUSAL)
    if request.constraint is not None:
        if _is_reply(request):
            return json.dumps({"answer": words, "delta": {}}, ensure_ascii=False)
        raise unsupported()
    if said.startswith(EARLIER[0]):  # a summary is asked for, and these words are none
        raise unsupported()
    seen = next((part.text for part in last.parts if isinstance(part, Text) and part.transient), "")
    if seen.startswith(ENVIRONMENT[0]):
        return _environment(seen, words)
    return f"{words}\n{DELTA_LINE}\n{{}}" if seen.startswith(STATE[0]) else words


def _language(text: str) -> str:
    """The language that is answered in.

    >>> _language("東京の天気は?"), _language("北京的天气怎么样"), _language("Who wrote 源氏物語?")
    ('ja', 'zh', 'en')
    """
    near = text[-LOOKED_AT:]
    if KANA.search(near):
        return "ja"
    return "zh" if len(HAN.findall(near)) > 3 * len(LATIN.findall(near)) else "en"


def _is_reply(request: Request) -> bool:
    """Whether the constraint is the form of a reply with an answer and what it changes."""
    held = request.constraint
    properties = held.schema.get("properties") if isinstance(held, JsonSchema) else None
    return isinstance(properties, dict) and properties.keys() == ANSWERED


def _environment(seen: str, words: str) -> str:
    """The environment as it was, with the words as its response."""
    inner = seen.removeprefix(ENVIRONMENT[0]).strip().removesuffix(ENVIRONMENT[1])
    try:
        held: Json = json.loads(inner)
    except (ValueError, RecursionError):
        held = None
    whole = {**held, "response": words} if isinstance(held, dict) else {"response": words}
    return f"{ENVIRONMENT[0]}\n{json.dumps(whole, ensure_ascii=False)}\n{ENVIRONMENT[1]}"
