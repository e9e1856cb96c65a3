"""Assess a dialogue: five scores and clarifying questions, by typed answer, function call or label probabilities."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, cast
from unicodedata import normalize

from taiwa.flows.ask.prompts import Prompts, load_prompts, shipped_policy
from taiwa.flows.ask.read_dialogue import dialogue_message, reply_language, user_texts
from taiwa.flows.ask.safe_text import safe_line
from taiwa.flows.ask.types import QUESTIONS, SCORES, Assessment, AssessmentSource, Level, PolicyFunction, PolicyTable
from taiwa.flows.extract import ExtractError, extract
from taiwa.flows.route import Routed, Routes
from taiwa.kernel.effects import Complete, GetCapabilities, HideOutput, Program, gather, notify, perform
from taiwa.kernel.errors import InputError, ModelError, OutputValidationError, UnsupportedError
from taiwa.kernel.messages import (
    Message,
    Request,
    Sampling,
    Text,
    TokenLogprob,
    ToolSpec,
    system,
)
from taiwa.kernel.serialization import Json, value
from taiwa.structured import OutputType

MIN_MASS = 0.5
"""Share of the probability that the labels together must have: below it the model did not follow the instructions."""

DECIMALS = 3
"""The decimals of scores from probabilities: the last digits of these differ from machine to machine, and from run to run."""

SPACES = " \t\r\n\u2581\u0120\u010a"
"""White space, and the characters that stand for it in vocabularies."""


@value(tag="level-distribution")
class LevelDistribution:
    """The probability of each level, first to last; `mass` is the share of all probability that the levels had together."""

    probabilities: tuple[float, ...]
    mass: float = 1.0

    @property
    def expected(self) -> float:
        """The expected level, counted from 1."""
        return sum(level * each for level, each in enumerate(self.probabilities, 1))

    @property
    def confidence(self) -> float:
        """1 if one level has all the probability, 0 if all levels are equally likely."""
        return confidence(self.probabilities) * self.mass


def confidence(probabilities: Sequence[float]) -> float:
    """Return 1 minus the normalized entropy of a distribution.

    >>> confidence((1.0, 0.0)), confidence((0.5, 0.5))
    (1.0, 0.0)
    """
    if len(probabilities) < 2:
        return 1.0
    entropy = -sum(each * math.log(each) for each in probabilities if each > 0)
    return min(max(1 - entropy / math.log(len(probabilities)), 0.0), 1.0)


def read_labels(logprobs: Sequence[TokenLogprob], labels: Sequence[str]) -> LevelDistribution | None:
    """Read the distribution of the labels at the first token of an answer; None without probabilities of labels.

    >>> read_labels([TokenLogprob("2", -0.22, (("2", -0.22), (" 1", -1.61), ("No", -9.0)))], "12").probabilities[1] > 0.79
    True
    """
    if not logprobs:
        return None
    first = logprobs[0]
    likeliest = first.top_logprobs or ((first.token, first.logprob),)
    by_label = dict.fromkeys(labels, 0.0)
    for token, logprob in dict(likeliest).items():
        label = normalize("NFKC", token).strip(SPACES)
        if label in by_label:
            by_label[label] += math.exp(min(logprob, 0.0))
    mass = min(sum(by_label.values()), 1.0)
    return None if mass <= 0 else LevelDistribution(_normalized(tuple(by_label.values())), mass)


def _normalized(weights: tuple[float, ...]) -> tuple[float, ...]:
    """Scale weights to a sum of 1, with the 8 digits that servers return at most."""
    whole = sum(weights)
    return tuple(round(each / whole, 8) for each in weights)


TYPED = PolicyTable("typed", SCORES, QUESTIONS)


def _assess_by_call(
    material: Message,
    prompt: str,
    functions: Sequence[PolicyFunction],
    table: PolicyTable,
    source: AssessmentSource,
    open_question: str,
) -> Program[Assessment]:
    """Let the model call one of the functions, natively if the server has function calling, else by a typed answer.

    If a model answers in words although it could call a function, these words are the clarifying question. If it fills in no
    function, the question that it wrote is asked, or `open_question`.
    """
    messages = (system(prompt), material)
    types = {function.name: _function_type(function, table) for function in functions}
    if "tools" in (yield from perform(GetCapabilities())):
        tools = tuple(ToolSpec(each.name, each.about, types[each.name].schema()) for each in functions)
        try:
            request = Request(messages, tools=tools, tool_choice="required")
            response = yield from perform(Complete(request, HideOutput))
            for call in reversed(response.message.tool_calls):
                if call.name in types:
                    return _assessment(types[call.name].parse(call.arguments).value, call.name, functions, source)
            words = safe_line(response.text)
            if response.finish == "stop" and words and not response.text.lstrip().startswith(("{", "```")):
                return Assessment(source=source, reply=words)
            yield from notify("assessed without a function call: the model called none", code="downgrade")
        except (UnsupportedError, OutputValidationError) as error:
            yield from notify(f"assessed without a function call: {error.message}", code="downgrade")
    try:
        if len(functions) == 1:
            ((name, output_type),) = types.items()
            values = (yield from extract(output_type, messages)).value
            return _assessment(values, name, functions, source)
        routed = (yield from extract(Routes(types), messages)).value
    except ExtractError as error:
        asked = _written_question(error.best, table.questions) or open_question
        if not asked:
            raise
        yield from notify(f"the assessment could not be read: {error.message}", code="downgrade", warning=True)
        return Assessment(source=source, reply=asked)
    if isinstance(routed, Routed):
        return _assessment(cast("dict[str, Json]", routed.value), routed.to, functions, source)
    return Assessment(is_question=5, is_consultation=5, source=source)  # neither: clear, without a question


def _written_question(data: Json, names: Sequence[str]) -> str:
    """Return the first clarifying question in an answer that has other faults; empty without one."""
    if not isinstance(data, dict):
        return ""
    texts = (safe_line(text) for name in names if isinstance(text := data.get(name), str))
    inner = (_written_question(part, names) for part in data.values())
    return next((text for text in (*texts, *inner) if text), "")


def _function_type(function: PolicyFunction, table: PolicyTable) -> "OutputType[dict[str, Json]]":
    """Return the type of the arguments of a function; all of its scores are required."""
    fields: dict[str, object] = {name: Level if name in table.scores else str for name in function.fields}
    return OutputType.fields(function.name, fields, set(function.fields) & set(table.scores))


def _assessment(
    values: Mapping[str, Json], name: str, functions: Sequence[PolicyFunction], source: AssessmentSource
) -> Assessment:
    """Return the scores and questions of a function call, with the scores that the choice of the function implies."""
    implied = next(dict[str, Json](each.implies) for each in functions if each.name == name)
    return _from_values(implied | dict(values), source)


def _from_values(values: Mapping[str, Json], source: AssessmentSource) -> Assessment:
    scores = {name: part for name, part in values.items() if isinstance(part, (int, float))}
    questions = {name: part for name, part in values.items() if isinstance(part, str)}
    clarity, question, consultation, documents, person = (scores.pop(name, 1) for name in SCORES)
    missing, worry, meta = (questions.pop(name, "") for name in QUESTIONS)
    return Assessment(
        clarity, question, consultation, documents, person, missing, worry, meta, source,
        own_scores=tuple(scores.items()), own_questions=tuple(questions.items()),
    )  # fmt: skip


AssessmentMethod: TypeAlias = Literal["auto", "typed", "labels", "functions"]

NeedsQuestions: TypeAlias = Callable[[Assessment], bool]
"""Whether scores make clarifying questions useful."""

LABELS = "12345"

REPETITION = re.compile(r"(\w.{1,30}?)\1\1", re.DOTALL)
"""The same text three times in a row, as small models write."""

TOP_LOGPROBS = 20

UNSUPPORTED_STATUS = frozenset({400, 404, 405, 422, 501})
"""HTTP status codes of servers without the decision wire, or without it for this model."""


def assess(
    dialogue: Sequence[Message],
    *,
    by: AssessmentMethod = "auto",
    about: Sequence[tuple[str, str]] = (),
    earlier: Sequence[str] = (),
    needs_questions: NeedsQuestions | None = None,
    language: str = "",
    table: PolicyTable | None = None,
    open_question: str = "",
) -> Program[Assessment]:
    """Assess what the user wants.

    `about` are facts about the user, `earlier` their texts in other dialogues, `language` that of the prompts (ja, zh, en; "":
    that of the dialogue), and `table` has scores, questions, functions and prompts of a policy file. `open_question` is asked
    if the model does not fill in the assessment. With `auto`, a method that the server does not support is replaced by the next
    one, with a notice.

    Raises (when run):
        InputError: the dialogue has no text of the user.
        ModelError: the server failed, or does not support the method `by`.
        OutputValidationError: the answer could not be read, and there is no clarifying question.
    """
    if not user_texts(dialogue):
        raise InputError("the dialogue has no text of the user")
    material = dialogue_message(dialogue, person=dict[str, Json](about), earlier=list[Json](earlier))
    prompts = load_prompts(reply_language(dialogue, language)).replaced_by(() if table is None else table.prompts)
    if by == "functions" or (by == "auto" and table is not None and table.functions):
        functions = (table and table.functions) or shipped_policy("article").functions
        names = tuple(dict.fromkeys(name for each in functions for name in each.fields))
        prompt = prompts.call_function(names)
        return (yield from _assess_by_call(material, prompt, functions, table or TYPED, "functions", open_question))
    table = table or TYPED
    capabilities = yield from perform(GetCapabilities())
    found: Assessment | None = None
    if by == "labels" or (by == "auto" and "logprobs" in capabilities):
        found = yield from _by_labels(material, prompts, table.scores, strict=by != "auto")
    if found is None:
        whole = PolicyFunction("Assessment", "", (*table.scores, *table.questions))
        prompt = prompts.assess(whole.fields)
        return (yield from _assess_by_call(material, prompt, (whole,), table, "typed", open_question))
    if needs_questions is None or found.is_noise or not needs_questions(found):
        return found
    return (yield from _with_questions(found, material, prompts, table.questions))


def _by_labels(
    material: Message, prompts: Prompts, names: Sequence[str], *, strict: bool
) -> Program[Assessment | None]:
    """Read each score from the probabilities of its labels; None if the server returns none, or the model prefers other tokens."""
    try:
        readings = yield from gather(_label(material, *prompts.score(name)) for name in names)
    except UnsupportedError as error:
        if strict:
            raise
        yield from notify(f"assessed without probabilities: {error.message}", code="downgrade")
        return None
    found = {name: reading for name, reading in zip(names, readings, strict=True) if reading is not None}
    mass = min((reading.mass for reading in found.values()), default=0.0)
    if len(found) == len(names) and mass >= MIN_MASS:
        return _from_levels(found, "labels")
    problem = f"the digits 1 to 5 have {mass:.0%} of the probability" if found else "the server returned none"
    if strict:
        raise OutputValidationError(f"cannot read the scores from probabilities: {problem}", diagnostics=(problem,))
    yield from notify(f"assessed without probabilities: {problem}", code="downgrade")
    return None


def _label(material: Message, instructions: str, question: str) -> Program[LevelDistribution | None]:
    """Request one token. The question is the last part, so that all requests share the prefix cache."""
    messages = system(instructions), Message("user", (*material.parts, Text(question, transient=True)))
    request = Request(messages, sampling=Sampling(max_tokens=1), top_logprobs=TOP_LOGPROBS)
    response = yield from perform(Complete(request, HideOutput))
    return read_labels(response.logprobs, LABELS)


def _from_levels(found: Mapping[str, LevelDistribution], source: AssessmentSource) -> Assessment:
    return replace(
        _from_values({name: round(each.expected, DECIMALS) for name, each in found.items()}, source),
        probabilities=tuple((name, each.probabilities) for name, each in found.items()),
        confidence=tuple((name, round(each.confidence, DECIMALS)) for name, each in found.items()),
    )


def _with_questions(
    found: Assessment, material: Message, prompts: Prompts, questions: tuple[str, ...]
) -> Program[Assessment]:
    """Request clarifying questions; a model that writes no text returns none."""
    try:
        messages = system(prompts.clarify(questions)), material
        output_type = OutputType.fields("ClarifyingQuestions", dict.fromkeys(questions, str))
        written = (yield from extract(output_type, messages)).value
    except (ModelError, OutputValidationError) as error:
        if not _is_unsupported(error):
            raise
        yield from notify(f"the model wrote no clarifying question: {error.message}", code="downgrade", warning=True)
        return found
    texts = {name: "" if REPETITION.search(str(text)) else str(text) for name, text in written.items()}
    missing, worry, meta = (texts.pop(name, "") for name in QUESTIONS)
    own = tuple(texts.items())
    return replace(found, ask_missing_info=missing, res_consultation=worry, ask_user_meta_info=meta, own_questions=own)


def _is_unsupported(error: ModelError | OutputValidationError) -> bool:
    """Whether the model or its server cannot do what was requested, rather than that the call failed."""
    return isinstance(error, (UnsupportedError, OutputValidationError)) or error.status in UNSUPPORTED_STATUS
