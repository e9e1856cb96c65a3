"""Formatting for the templates: values, costs, excerpts, form fields, and labels of identifiers."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from html import escape

from taiwa.conversation.app import App, Param
from taiwa.conversation.state import Missing
from taiwa.flows.ask.ask_result import HEADING
from taiwa.flows.ask.decide_search_or_clarify import POLICIES
from taiwa.flows.ask.types import ASSESS_BY
from taiwa.i18n import gettext_noop, translated, translator
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import truncate
from taiwa.kernel.usage_limits import currency_units
from taiwa.models.http_api.errors import MESSAGES, TABLE
from taiwa.models.providers import IN_PROCESS
from taiwa.operations.markdown_html import shown_text, visible
from taiwa.operations.resent_history import GRANTED, closed_params
from taiwa.operations.state_values import format_value
from taiwa.retrieval.readers import readable_suffixes

SHORT = 80


def short(value: "Json | Missing", most: int = SHORT) -> str:
    """Format a value on one short line; "–" if there is none."""
    if isinstance(value, Missing):
        return "–"
    text = visible(value if isinstance(value, str) else format_value(value))
    return truncate(text, most)


MARKS = re.compile(r"(?m)^[ |:-]*---[ |:-]*$|```\w*|[*`#>$|~]+|(?<!\w)_+|_+(?!\w)")


def unmarked(text: str) -> str:
    """Format the beginning of a text on one line without the marks of Markdown.

    >>> unmarked("A **bold** word in `snake_case`.")
    'A bold word in snake_case.'
    >>> unmarked("| tea | price |\\n|---|--:|\\n| green | 2 |")
    'tea price green 2'
    """
    return short(" ".join(MARKS.sub("", text[: 4 * SHORT]).split()))


def excerpt(text: str, most: int = SHORT) -> str:
    """Format the beginning of a passage as a reader sees it, on one line, without its heading, which is shown beside it.

    >>> excerpt("## Leave\\n\\n**Ten** days.")
    'Ten days.'
    """
    return short(shown_text(HEADING.sub("", text, 1)) or text, most)


def brief(value: "Json | Missing") -> str:
    """Format a value for reading: objects and lists without quotation marks and braces, on one short line.

    >>> brief({"name": "latte", "options": [], "quantity": 2})
    'name latte, quantity 2'
    """
    return short(_plain(value)) if isinstance(value, (dict, list)) and value else short(value)


def _plain(value: Json) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(each)}" for name, each in value.items() if each not in (None, "", [], {}))
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return value if isinstance(value, str) else format_value(value)


def pretty(value: Json) -> str:
    """Format a value as indented JSON."""
    return visible(json.dumps(value, ensure_ascii=False, indent=1))


def money(cost: Decimal, currency: str = "") -> str:
    """Format a cost in currency units.

    >>> money(Decimal("0.0120"), "USD"), money(Decimal(0), "USD")
    ('0.012 USD', '0')
    """
    written = f"{cost:f}".rstrip("0").rstrip(".") if "." in f"{cost:f}" else f"{cost:f}"
    return f"{written} {currency}".rstrip() if cost else "0"


def nano(cost: int | None, currency: str = "") -> str:
    """Format a cost in billionths of a currency unit; "?" if unknown."""
    units = currency_units(cost)
    return "?" if units is None else money(units, currency)


def model_name(name: str) -> str:
    """Return the part of the name of a model that people call it by, without its server or folder; options stay.

    >>> [model_name(name) for name in ("openai:gpt-5?effort=low", "http://127.0.0.1:8080/v1#qwen3", "gguf:/m/tea-1b.gguf", "plain")]
    ['gpt-5?effort=low', 'qwen3', 'tea-1b', 'plain']
    """
    prefix, colon, model = name.partition(":")
    if "://" in name:
        return name.partition("#")[2] or name
    if not colon or prefix in IN_PROCESS:
        return (model or name).rstrip("/").rpartition("/")[2].removesuffix(".gguf")
    return model


def model_names(served: Sequence[str]) -> Callable[[str], str]:
    """Return the function that shortens the names of models: to their whole names where two served ones are called the same.

    >>> shorten = model_names(["openai:gpt-5", "openrouter:gpt-5", "ollama:qwen3"])
    >>> [shorten(name) for name in ("openai:gpt-5", "ollama:qwen3", "anthropic:claude")]
    ['openai:gpt-5', 'qwen3', 'claude']
    """
    counts = Counter(map(model_name, served))
    return lambda name: visible(name if counts[model_name(name)] > 1 else model_name(name))


def day(at_us: int) -> str:
    """Format a time as the date where the server is; if it is today, as the hour.

    >>> day(129_600_000_000)
    '1970-01-02'
    """
    at = datetime.fromtimestamp(at_us / 1e6).astimezone()
    return f"{at:%H:%M}" if at.date() == datetime.now(at.tzinfo).date() else at.date().isoformat()


def with_copy(html: str, label: str) -> str:
    """Put a button that copies it before each block of code of a rendered text, which cannot contain such a tag itself."""
    button = f'<button type="button" class="plain copy" data-act="code">{escape(label)}</button>'
    return html.replace('<pre class="code"', f'{button}<pre class="code"')


def size(count: int) -> str:
    """Format a number of bytes.

    >>> size(312), size(20_480)
    ('312 B', '20 kB')
    """
    for unit in ("B", "kB", "MB"):
        if count < 1024 or unit == "MB":
            break
        count = round(count / 1024)
    return f"{count} {unit}"


def marked(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[str, bool]]:
    """Split a text at spans of characters; each part comes with whether it is a span.

    >>> marked("green tea", [(6, 9)])
    [('green ', False), ('tea', True)]
    """
    parts: list[tuple[str, bool]] = []
    end = 0
    for first, last in spans:
        parts += [(visible(text[end:first]), False), (visible(text[first:last]), True)]
        end = last
    parts.append((visible(text[end:]), False))
    return [part for part in parts if part[0]]


def spans_of(text: str, value: "Json | Missing") -> list[tuple[int, int]]:
    """Find the parts of a text that a value repeats."""
    plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    word = str(value).lower() if plain else ""
    lowered = text.lower()
    start = lowered.find(word) if word and len(lowered) == len(text) else -1
    return [] if start < 0 else [(start, start + len(word))]


CHOICE = re.compile(r'"([^"]*)"')
NUMBER = re.compile(r"(int|float)(?:\((-?[\d.]*?)\.\.(-?[\d.]*)\))?(?![\[\w])")
ASK_CHOICES = {"policy": tuple(POLICIES), "assess_by": ASSESS_BY}
"""Parameters of an app with documents that may also be free text, and their choices."""


def open_params(app: App) -> tuple[Param, ...]:
    """Return the parameters that users may set; those that control what is searched for whom belong to the operator."""
    return tuple(param for param in app.params if app.documents is None or param.name not in GRANTED)


def chooses_indexes(app: App) -> bool:
    """Return whether users choose what an app searches."""
    return app.documents is not None and "in" not in closed_params(app)


def chooses_person(app: App) -> bool:
    """Return whether users choose the profile that an app reads."""
    return app.documents is not None and "user" not in closed_params(app)


def is_asked(param: Param) -> bool:
    """Return whether a parameter is shown at once; others have a default and are under more options."""
    return bool(param.ask) or is_required(param)


def is_required(param: Param) -> bool:
    """Return whether a conversation cannot start without a value of a parameter."""
    return param.required and param.default is None and "| null" not in param.type


def range_of(param: Param) -> tuple[str, str]:
    """Return the bounds of a numeric parameter, "" for a missing bound.

    >>> range_of(Param("n", "int(0..10) | null")), range_of(Param("x", "float(0.5..)"))
    (('0', '10'), ('0.5', ''))
    """
    found = NUMBER.match(param.type)
    return (found[2] or "", found[3] or "") if found else ("", "")


def choices_of(param: Param, *, searches: bool = False) -> tuple[str, ...]:
    """Return the choices of a parameter, () if it is not a choice.

    >>> choices_of(Param("tone", '"formal" | "plain"'))
    ('formal', 'plain')
    """
    if searches and param.name in ASK_CHOICES:
        return ASK_CHOICES[param.name]
    parts = [part.strip() for part in param.type.split("|")]
    found = [CHOICE.fullmatch(part) for part in parts]
    return tuple(each[1] for each in found if each) if all(found) else ()


def kind_of(param: Param, *, searches: bool = False) -> str:
    """Return the form field of a parameter: `choice`, `flag`, `number`, `text` or, for any other type, `value`.

    >>> kind_of(Param("n", "int(1..)")), kind_of(Param("to", "list[str]"))
    ('number', 'value')
    """
    if choices_of(param, searches=searches):
        return "choice"
    plain = param.type.removesuffix("| null").strip()
    if plain == "bool":
        return "flag"
    if NUMBER.match(plain):
        return "number"
    return "text" if plain.startswith("str") else "value"


FUNCTIONS: tuple[Callable[..., object], ...] = (
    brief, choices_of, chooses_indexes, chooses_person, day, excerpt, is_required, kind_of, open_params, pretty,
    range_of, readable_suffixes, short, size, unmarked, visible, with_copy,
)  # fmt: skip
"""What templates call by its name."""

FIELD = re.compile(r"(\{[^}]*\})")
GROUPS = {
    "{code}": r"(?: \((?P<code>\d+)\))?",
    "{text}": "(?:: (?P<text>.*?))?",
    "{place}": r"(?: in (?P<place>\w+)| that is stored)?",
    "{wait}": "(?:, try again in .*?)?",
}
"""What the parts of a message of a model's server match that can be missing or are not facts."""
AFTER = r"(?P<charged>; not repeated, because [^;]*)?(?:; at most [\d.]+ s are waited in all \(timeout\))?(?: \(tried \d+ times\)| \(at most \d+ s in all\))?"
FACTS = ("host", "who", "model", "parameter", "place", "limits", "code", "text")
CAUSES = {
    "credit": "credit", "forbidden": "forbidden", "long": "long", "missing": "missing", "nowhere": "nowhere",
    **dict.fromkeys(
        ("no route", "no host", "refused", "untrusted", "no tls", "unconnected", "no connection", "not http", "proxy"),
        "unreachable",
    ),
    **dict.fromkeys(("hung up", "broken off", "cut", "unsent"), "broken"),
}  # fmt: skip
"""The sentences for causes that are narrower than the code of an error."""


@cache
def _messages() -> Sequence[tuple[str, "re.Pattern[str]"]]:
    """Return the messages of faults of the network, and of a model's server, as patterns of their facts, with their causes."""
    rows = [(cause, row.message) for cause, row in TABLE.items()]
    rows += [(cause if cause != "refused" else "", message) for cause, (_, message) in MESSAGES.items()]

    def pattern(message: str) -> str:
        parts, seen = list[str](), set[str]()
        for part in FIELD.split(message):
            name = part.strip("{}").partition(".")[0].partition(":")[0]
            words = r"\S+?" if name == "host" else ".+?"
            group = f"(?P<{name}>{words})" if name in FACTS and name not in seen else words
            parts.append(GROUPS.get(part, group) if part.startswith("{") else re.escape(part))
            seen.add(name)
        return "".join(parts)

    return [(cause, re.compile(pattern(message) + AFTER, re.DOTALL)) for cause, message in rows]


def labelled(*codes: str) -> str:
    """Return the first of the codes of an error of a turn that has a sentence."""
    return next((each for each in codes if each in LABELS["error"]), "model_error")


def worded(code: str, message: str, language: str) -> tuple[str, str]:
    """Return the sentence of an error in a language, and its details: in English its message, else the facts in that, with the words of
    a model's server in quotation marks, if it is about one.

    >>> worded("rate_limit_exceeded", "tea receives too many requests (429): slow down (tried 3 times)", "zh")[1]
    'tea · 429 · “slow down”'
    """
    translate = translator("page", language)
    cause, facts = next(
        ((cause, found.groupdict()) for cause, form in _messages() if (found := form.fullmatch(message))), ("", {})
    )
    sentence = LABELS["cause"].get(CAUSES.get(cause, "")) or LABELS["error"].get(code, "")
    if language == "en" or not facts:
        return translate(sentence), visible(translated(message, language))
    facts |= {
        "text": facts.get("text") and f"“{facts['text']}”",
        "limits": facts.get("limits") and f"{facts['limits']} s",
    }
    if "host" in facts:
        facts["who"] = None
    details = [str(facts[name]) for name in FACTS if facts.get(name)]
    return translate(sentence), visible(" · ".join(details + [translate(CHARGED)] * bool(facts["charged"])))


CHARGED = gettext_noop("It may have been charged.")

LABELS: Mapping[str, Mapping[str, str]] = {
    "act": {
        "search": gettext_noop("Looked up"),
        "ask": gettext_noop("Asked for clarification"),
        "hand_over": gettext_noop("Handed over to a person"),
        "advise": gettext_noop("Answered without looking anything up"),
    },
    "score": {
        "clarity": gettext_noop("The question is clear"),
        "is_question": gettext_noop("It is a question"),
        "is_consultation": gettext_noop("Advice is wanted"),
        "in_internal_docs": gettext_noop("The documents can answer it"),
        "ask_person": gettext_noop("A person should be asked"),
        "ask_missing_info": gettext_noop("Question about what is missing"),
        "res_consultation": gettext_noop("Question about the advice"),
        "ask_user_meta_info": gettext_noop("Question about the user"),
        "reply": gettext_noop("Reply in words"),
    },
    "probability": {
        "unclear": gettext_noop("Unclear what is wanted"),
        "answerable": gettext_noop("Answered by the documents"),
    },
    "cost": {
        "cost_of_missing": gettext_noop("Cost of answering something else"),
        "cost_of_asking": gettext_noop("Cost of asking"),
    },
    "reason": {
        "always": gettext_noop("always asks for clarification"),
        "asked_for_person": gettext_noop("a person was asked for"),
        "better_asked_of_person": gettext_noop("better asked of a person"),
        "clear": gettext_noop("clear"),
        "consultation": gettext_noop("advice is wanted"),
        "declined": gettext_noop("no more questions are wanted"),
        "model_asked": gettext_noop("the model asked"),
        "neither": gettext_noop("neither a question nor a wish for advice"),
        "never": gettext_noop("never asks for clarification"),
        "no_such_option": gettext_noop("there is no such option"),
        "nothing_changed": gettext_noop("the last clarifying question changed nothing"),
        "nothing_found": gettext_noop("nothing was found"),
        "nothing_to_ask": gettext_noop("nothing is left to ask"),
        "one_answer": gettext_noop("every meaning has the same answer"),
        "options": gettext_noop("with options"),
        "rounds": gettext_noop("enough questions in a row"),
        "route_command": gettext_noop("a command"),
        "route_farewell": gettext_noop("a farewell"),
        "route_greeting": gettext_noop("a greeting"),
        "route_thanks": gettext_noop("thanks"),
        "topic": gettext_noop("a subject without a question"),
        "unclear": gettext_noop("unclear"),
        "unresolved_references": gettext_noop("a word refers to something unknown"),
        "weak_evidence": gettext_noop("little evidence in the documents"),
        "words": gettext_noop("in words"),
    },
    "evidence": {
        "passages": gettext_noop("Passages searched"),
        "found": gettext_noop("Passages with a word of it"),
        "coverage": gettext_noop("Words covered by the best passages"),
        "top": gettext_noop("Best score, as a share of the highest possible"),
        "nqc": gettext_noop("Spread of the best scores"),
        "unknown": gettext_noop("Words in no passage"),
        "unresolved_references": gettext_noop("Words that refer to something unknown"),
    },
    "step": {
        "model": gettext_noop("Model"),
        "tool": gettext_noop("Tool"),
        "search": gettext_noop("Look-up"),
        "complete": gettext_noop("Model"),
        "call-tool": gettext_noop("Tool"),
        "retrieve": gettext_noop("Look-up"),
    },
    "role": {
        "judge": gettext_noop("assess the question"),
        "rewrite": gettext_noop("word the query"),
        "summarize": gettext_noop("summarise"),
    },
    "outcome": {
        "ambiguous": gettext_noop("ambiguous input"),
        "bad_arguments": gettext_noop("invalid arguments"),
        "crashed": gettext_noop("crashed"),
        "denied": gettext_noop("not permitted"),
        "dimension": gettext_noop("units that do not fit"),
        "division_by_zero": gettext_noop("division by zero"),
        "domain": gettext_noop("not defined there"),
        "error": gettext_noop("failed"),
        "internal": gettext_noop("failed"),
        "limit": gettext_noop("over a limit"),
        "remote": gettext_noop("failed on its server"),
        "repeat": gettext_noop("repeated too often"),
        "simulated": gettext_noop("answered by the model itself"),
        "syntax": gettext_noop("cannot be read"),
        "timeout": gettext_noop("timed out"),
        "too_deep": gettext_noop("nested too deep"),
        "too_large": gettext_noop("too large"),
        "too_long": gettext_noop("too long"),
        "unequal": gettext_noop("the sides differ"),
        "unknown_element": gettext_noop("unknown element"),
        "unknown_tool": gettext_noop("unknown tool"),
        "unknown_unit": gettext_noop("unknown unit"),
    },
    "error": {
        "approval_required": gettext_noop("A tool waits for approval."),
        "authentication_error": gettext_noop(
            "This browser is not logged in. Open the address that the server printed."
        ),
        "conflict": gettext_noop("Something has changed meanwhile."),
        "content_filter": gettext_noop("The model refused to answer."),
        "configuration_error": gettext_noop("Something is not set up."),
        "conversation_not_found": gettext_noop("The conversation does not exist."),
        "document_not_found": gettext_noop("The document does not exist."),
        "index_not_found": gettext_noop("These documents do not exist."),
        "insufficient_quota": gettext_noop("A limit is reached."),
        "invalid_request_error": gettext_noop("That cannot be done."),
        "model_authentication": gettext_noop("The server of the model refuses the key."),
        "model_error": gettext_noop("The model could not answer."),
        "model_not_found": gettext_noop("This model is not offered here."),
        "moved": gettext_noop("The conversation has moved on meanwhile. Read it, and send again."),
        "not_found": gettext_noop("There is nothing at this address."),
        "overloaded": gettext_noop("The server of the model cannot answer now."),
        "person_not_found": gettext_noop("The person does not exist."),
        "rate_limit_exceeded": gettext_noop("Too many requests in a short time."),
        "request_too_large": gettext_noop("That is too large."),
        "run_not_found": gettext_noop("That ended long ago."),
        "server_error": gettext_noop("Something went wrong in the server."),
        "stopping": gettext_noop("The server is being stopped. The turn can be resumed."),
        "timeout": gettext_noop("The server of the model did not answer in time."),
        "unsupported_parameter": gettext_noop("The model cannot do this."),
    },
    "cause": {
        "broken": gettext_noop("The connection to the server of the model broke off."),
        "credit": gettext_noop("The credit of the key is used up."),
        "forbidden": gettext_noop("The key may not use this model."),
        "long": gettext_noop("The conversation is longer than the model can read."),
        "missing": gettext_noop("The server of the model does not have this model."),
        "nowhere": gettext_noop("The server of the model does not have this path. Its address mostly ends in /v1."),
        "unreachable": gettext_noop("The server of the model cannot be reached. Is it running?"),
    },
    "finish": {
        "length": gettext_noop("The answer was cut off at its length limit."),
        "interrupted": gettext_noop("The answer was stopped."),
        "repetition": gettext_noop("The answer was ended because it repeated itself."),
        "refusal": gettext_noop("The model refused to continue."),
    },
    "parameter": {
        "policy": gettext_noop("When to ask for clarification"),
        "max_questions": gettext_noop("Maximum clarifying questions in a row"),
        "quote": gettext_noop("Answer only with sentences of the documents"),
        "assess_by": gettext_noop("How the question is assessed"),
        "look_first": gettext_noop("look first, ask if unclear"),
        "article": gettext_noop("by the table of the article"),
        "functions": gettext_noop("by a function that the model chooses"),
        "never": gettext_noop("never"),
        "always": gettext_noop("always"),
        "auto": gettext_noop("as the model allows"),
        "typed": gettext_noop("by a typed answer"),
        "documents": gettext_noop("by the documents found"),
        "no-model": gettext_noop("without a model"),
    },
}
