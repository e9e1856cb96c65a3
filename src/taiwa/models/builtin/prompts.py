"""Requests of our programs, recognised by their task and rewritten as the short prompts of the built-in model; and its refusal."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from taiwa.conversation.turn_prompt import DELTA_LINE, EARLIER, ENVIRONMENT, STATE
from taiwa.i18n import dialogue_catalogue, gettext_noop
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import Grammar, JsonSchema, Message, Request, Text
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import guess_language
from taiwa.models.builtin import order_app
from taiwa.models.builtin.tokenizer import normalize_text

ANSWER = "answer"
TOOLS: Final = ("calculator", "molar_mass", "stoichiometry", "unit_conversion")
"""The tools whose calls the model was trained to write."""
TAGGED_CALL = "<<name: input>>"
LISTED_TOOL = re.compile(r"^- <<([^\W\d][\w-]{0,63}): ", re.MULTILINE)

OUTPUTS: Mapping[str, str] = {
    "assess_clarity": "assess.clarity",
    "assess_is_question": "assess.is_question",
    "assess_is_consultation": "assess.is_consultation",
    "assess_in_internal_docs": "assess.in_internal_docs",
    "assess_ask_person": "assess.ask_person",
}
"""By the task of a request about a dialogue: the task of the prompt and, after the point, the requested score."""
UNSUPPORTED_TASKS = frozenset({"assess", "rewrite_query", "answer_with_citations", "advise"})
"""Tasks of our programs that the model was not trained on; the programs have a fallback, so they get an error at once."""

STATE_BLOCK = re.compile(r"\A<state>\n(.*)\n</state>\Z", re.DOTALL)

MAX_DIALOGUE_SIZE = 900
"""Sizes are counted in Latin letters; a Chinese or Japanese character counts twice."""
MAX_USER_SIZE = 420
MAX_OTHER_SIZE = 200
MAX_FACTS_SIZE = 160
GAP = " ... "
ROLES = {"user": "|u|", "assistant": "|a|"}

REFUSAL = gettext_noop(
    "I am the small model built into taiwa, and I was not trained to answer this. I solve problems about quantities and chemistry (taiwa solve), "
    "take orders at a caf\u00e9 (taiwa chat order), and judge what a question to documents lacks (taiwa ask). "
    "For everything else, set a larger model: taiwa config set model NAME, or -m NAME; `taiwa models` lists them."
)
MAX_LANGUAGE_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class BuiltinPrompt:
    """A task and its prompt: the model reads `<task>`, the prompt, `<output>` and the beginning of the answer.

    `output` is `answer`, or the name of the requested score. `grammar` constrains the complete answer, in addition to the
    constraint of the request. `tools` are those that the answer may call. `order` is that of a turn of the app `order`, and
    `before` the order before its last change, if the dialogue shows it.
    """

    task: str
    text: str
    output: str = ANSWER
    grammar: Grammar | None = None
    tools: tuple[str, ...] = ()
    order: order_app.Order | None = None
    before: order_app.Order | None = None


def first_paragraph(text: str) -> str:
    """Return the text before the first blank line.

    >>> first_paragraph("Solve it.\\n\\nTools: …")
    'Solve it.'
    """
    return text.strip().partition("\n\n")[0].strip()


def message_text(message: Message, *, transient: bool = False) -> str:
    """Return the text parts of a message that are transient, or those that are not."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text) and part.transient == transient)


def unsupported() -> UnsupportedError:
    """Make the error for a request that the model was not trained to answer."""
    return UnsupportedError(
        "builtin was not trained to answer this: it solves questions of quantities and chemistry, takes orders of the app order, and "
        "assesses and rewrites questions; set a larger model with `taiwa config set model NAME`, or give -m NAME",
        capability="words",
    )


def read_request(request: Request) -> BuiltinPrompt | None:
    """Rewrite a request of one of our programs, known by its task, as a short prompt; None for any other request.

    Raises:
        UnsupportedError: the request is one of ours, and the model was not trained to answer it.
    """
    if not request.messages or request.messages[-1].role != "user":
        return None
    if request.task == "solve":
        return _solve_prompt(request)
    if request.messages[0].role != "system":
        return None
    if request.task == "extract_number":
        return BuiltinPrompt("number", normalize_text(message_text(request.messages[-1])))
    if request.task == "chat":
        return _order_prompt(request)
    if request.task in UNSUPPORTED_TASKS:
        raise unsupported()
    return _dialogue_prompt(request, OUTPUTS[request.task]) if request.task in OUTPUTS else None


def _solve_prompt(request: Request) -> BuiltinPrompt:
    """Rewrite a question to be solved step by step: the last text of the user. Worked examples are left out.

    Raises:
        UnsupportedError: tools are to be called in a format that the model was not trained on.
    """
    first = request.messages[0]
    instructions = first.text.strip() if first.role == "system" else ""
    if (instructions != first_paragraph(instructions) and TAGGED_CALL not in instructions) or request.tools:
        raise UnsupportedError(
            f"builtin writes tool calls as {TAGGED_CALL} only; use the tool-call format 'tagged', or a larger model",
            capability="tools",
        )
    offered = LISTED_TOOL.findall(instructions)
    text = normalize_text(message_text(request.messages[-1]))
    return BuiltinPrompt("solve", text, tools=tuple(set(TOOLS).intersection(offered)))


def _order_prompt(request: Request) -> BuiltinPrompt | None:
    """Rewrite a turn of the app `order` as a short prompt with the grammar of its reply; None for any other request."""
    last = request.messages[-1]
    if order_app.find_menu(request.messages[0].text) != order_app.MENU_TEXT:
        return None  # a copy of the app with another menu, which the model was not trained on
    block = STATE_BLOCK.match(message_text(last, transient=True))
    state = _parse_json(block[1]) if block else None
    order = order_app.parse_order(state) if isinstance(state, dict) else None
    if order is None or not isinstance(state, dict):
        return None
    past = _past_turns(request.messages[1:-1], state.get("turns"))
    asked = order_app.last_question(past[-1][1]) if past else ""
    text = order_app.format_order(order, message_text(last), asked)
    if text is None:
        return None
    numbers = tuple(line.number for line in order.lines)
    before = order_app.order_before(past, order)
    return BuiltinPrompt("desk", text, grammar=order_app.grammar(numbers), order=order, before=before)


def _past_turns(messages: Sequence[Message], count: Json) -> list[tuple[str, str]]:
    """Return the guest's texts and the replies, the newest `count` of them; the examples of the app precede these."""
    turns: list[tuple[str, str]] = []
    said = ""
    for message in messages:
        if message.role == "assistant":
            turns.append((said, message.text))
        elif message.role == "user":
            said = next((part.text for part in reversed(message.parts) if isinstance(part, Text)), "")
    return turns[-count:] if isinstance(count, int) and count > 0 else []


def _dialogue_prompt(request: Request, output: str) -> BuiltinPrompt | None:
    """Rewrite a request for a score of a dialogue as a short prompt; None if its data is malformed."""
    task, _, score = output.partition(".")
    data = _parse_json(message_text(request.messages[-1]))
    if not isinstance(data, dict):
        return None
    text = format_dialogue(_turns(data.get("dialogue")), user=data.get("person"), earlier=data.get("earlier"))
    return BuiltinPrompt(task, text, score)


def format_dialogue(turns: Sequence[tuple[str, str]], *, user: Json = None, earlier: Json = None) -> str:
    """Write a dialogue on one line, leaving out the oldest turns that do not fit; turns are pairs of role and text.

    >>> format_dialogue([("user", "Is there parking?"), ("assistant", "Yes | no."), ("user", "Where?")], user={"site": "Oss"})
    '|p| site: Oss |u| Is there parking? |a| Yes / no. |u| Where?'
    """
    facts = "".join(_format_facts(user, earlier))
    room = MAX_DIALOGUE_SIZE - _size(facts)
    kept: list[str] = []
    for role, text in reversed(turns):
        max_size = MAX_USER_SIZE if role == "user" else MAX_OTHER_SIZE
        line = f"{ROLES.get(role, '|a|')} {_shorten(_without_bars(text), max_size)}"
        room -= _size(line) + 1
        if room < 0 and kept:
            break
        kept.append(line)
    return normalize_text(facts + " ".join(reversed(kept)))


def _format_facts(user: Json, earlier: Json) -> Iterator[str]:
    if isinstance(user, dict) and user:
        facts = "; ".join(f"{_without_bars(name)}: {_without_bars(_to_text(fact))}" for name, fact in user.items())
        yield f"|p| {_shorten(facts, MAX_FACTS_SIZE)} "
    if isinstance(earlier, list) and earlier:
        yield f"|e| {_shorten(' / '.join(_without_bars(_to_text(each)) for each in earlier), MAX_FACTS_SIZE)} "


def _without_bars(text: str) -> str:
    return normalize_text(text).replace("|", "/")


def _to_text(data: Json) -> str:
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def _size(text: str) -> int:
    return len(text) if text.isascii() else sum(1 if char < "\u2e80" else 2 for char in text)


def _shorten(text: str, max_size: int) -> str:
    """Remove the middle of a text that is too long: the relevant part is usually at one of the ends."""
    if _size(text) <= max_size:
        return text
    half = max_size * len(text) // _size(text) // 2
    return f"{text[:half].rstrip()}{GAP}{text[-half:].lstrip()}"


def _parse_json(text: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except (ValueError, RecursionError):
        return None


def _turns(data: Json) -> list[tuple[str, str]]:
    """Return the turns of a JSON list: texts of the user, or objects with a role and a text."""
    turns: list[tuple[str, str]] = []
    for each in data if isinstance(data, list) else ():
        if isinstance(each, str):
            turns.append(("user", each))
        elif isinstance(each, dict):
            turns.append((str(each.get("role", "user")), str(each.get("text", ""))))
    return turns


def refusal_text(request: Request) -> str:
    """Return the reply to a request that the model was not trained on, in the format of the request.

    Raises: UnsupportedError: a sentence is not a valid reply to the request.
    """
    last = request.messages[-1] if request.messages else None
    if last is None or request.tools or request.top_logprobs or last.role != "user":
        raise unsupported()
    text = message_text(last)
    sentence = dialogue_catalogue(guess_language(text[-MAX_LANGUAGE_CHARS:]))(REFUSAL)
    if request.constraint is not None:
        constraint = request.constraint
        properties = constraint.schema.get("properties") if isinstance(constraint, JsonSchema) else None
        if isinstance(properties, dict) and properties.keys() == {"answer", "delta"}:
            return json.dumps({"answer": sentence, "delta": {}}, ensure_ascii=False)
        raise unsupported()
    if text.startswith(EARLIER[0]):  # the request asks for a summary
        raise unsupported()
    state = next((part.text for part in last.parts if isinstance(part, Text) and part.transient), "")
    if state.startswith(ENVIRONMENT[0]):
        return _environment_with(sentence, state)
    return f"{sentence}\n{DELTA_LINE}\n{{}}" if state.startswith(STATE[0]) else sentence


def _environment_with(response: str, block: str) -> str:
    """Return the environment with another response."""
    data = _parse_json(block.removeprefix(ENVIRONMENT[0]).strip().removesuffix(ENVIRONMENT[1]))
    environment = {**data, "response": response} if isinstance(data, dict) else {"response": response}
    return f"{ENVIRONMENT[0]}\n{json.dumps(environment, ensure_ascii=False)}\n{ENVIRONMENT[1]}"
