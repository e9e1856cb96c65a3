"""Scores of a dialogue by typed answer, functions, labels or the decision wire."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, cast
from unicodedata import normalize

from taiwa.ask.dialogue_text import dialogue_message, reply_language, user_texts
from taiwa.ask.prompt_texts import BACK, EITHER, LEVELS, ONE, STATEMENTS, WHOLE
from taiwa.ask.types import SCORES, Assessment, AssessmentOutput, ClarifyingQuestions, Level, Source
from taiwa.flows.extract import ExtractError, extract
from taiwa.flows.output_modes import Choice
from taiwa.flows.route import Routed, Routes
from taiwa.kernel.effects import Complete, GetCapabilities, HideOutput, Program, gather, notify, perform
from taiwa.kernel.errors import InputError, ModelError, OutputValidationError, UnsupportedError
from taiwa.kernel.messages import (
    Capability,
    Message,
    Questions,
    Request,
    Sampling,
    ScaleQuestion,
    Task,
    Text,
    TokenLogprob,
    ToolSpec,
    system,
)
from taiwa.kernel.records import Json, value
from taiwa.structured import OutputType

__all__ = ["AssessmentMethod", "assess"]


LEAST_MASS = 0.5
"""How much of all probability the labels must hold together: where a model would rather say something else, it was not asked well."""

EDGES = " \t\r\n\u2581\u0120\u010a"
"""White space, and what vocabularies write for it."""


@value(tag="level-distribution")
class LevelDistribution:
    """The chance of each level, first to last, and how much of all probability was on levels at all."""

    chances: tuple[float, ...]
    mass: float = 1.0

    @property
    def expected(self) -> float:
        """The expected level, counted from 1."""
        return sum(level * chance for level, chance in enumerate(self.chances, 1))

    @property
    def confidence(self) -> float:
        """How sure it is: 1 where one level holds everything, 0 where all are alike."""
        return confidence(self.chances) * self.mass


def confidence(chances: Sequence[float]) -> float:
    """Return 1 minus the entropy of some chances as a part of the highest there can be.

    >>> confidence((1.0, 0.0)), confidence((0.5, 0.5))
    (1.0, 0.0)
    """
    if len(chances) < 2:
        return 1.0
    entropy = -sum(each * math.log(each) for each in chances if each > 0)
    return min(max(1 - entropy / math.log(len(chances)), 0.0), 1.0)


def labelled(logprobs: Sequence[TokenLogprob], labels: Sequence[str]) -> LevelDistribution | None:
    """Read the first token of an answer as labels; None where nothing was told or none of them is likely.

    >>> labelled([TokenLogprob("2", -0.22, (("2", -0.22), (" 1", -1.61), ("No", -9.0)))], "12").chances[1] > 0.79
    True
    """
    if not logprobs:
        return None
    first = logprobs[0]
    told = first.top_logprobs or ((first.token, first.logprob),)
    held = dict.fromkeys(labels, 0.0)
    for token, logprob in dict(told).items():
        label = normalize("NFKC", token).strip(EDGES)
        if label in held:
            held[label] += math.exp(min(logprob, 0.0))
    mass = min(sum(held.values()), 1.0)
    return None if mass <= 0 else LevelDistribution(_shares(tuple(held.values())), mass)


def decided(text: str, names: Sequence[str], levels: int) -> Mapping[str, LevelDistribution]:
    """Read the answers of the decision wire to some scales.

    Raises:
        ShapeError: an answer is missing, or says nothing that can be read.
    """
    try:
        data = cast("Json", json.loads(text))
    except ValueError:
        data = None
    answers = data if isinstance(data, dict) else {}
    return {name: _scale(name, answers.get(name), levels, text) for name in names}


def _scale(name: str, answer: Json, levels: int, text: str) -> LevelDistribution:
    given = answer if isinstance(answer, dict) else {}
    told = given.get("probabilities")
    if isinstance(told, dict):
        chances = tuple(_number(told.get(str(level))) or 0.0 for level in range(levels))
        if sum(chances) > 0:
            return LevelDistribution(_shares(chances))
    score = _number(given.get("score"))
    if score is None or score > levels - 1:
        line = f"$.{name}: must have `probabilities` of {levels} levels, or a `score` of 0 to {levels - 1}"
        raise OutputValidationError(f"the decision wire did not answer: {line}", text=text, diagnostics=(line,))
    low = min(int(score), levels - 2)
    return LevelDistribution(
        tuple(max(0.0, 1 - abs(level - score)) if level in (low, low + 1) else 0.0 for level in range(levels))
    )


def _number(data: Json) -> float | None:
    if isinstance(data, bool) or not isinstance(data, (int, float)) or not math.isfinite(data) or data < 0:
        return None
    return float(data)


def _shares(chances: tuple[float, ...]) -> tuple[float, ...]:
    """Make chances sum up to one, in as many digits as any server tells."""
    whole = sum(chances)
    return tuple(round(each / whole, 8) for each in chances)


@value
class AboutQuestion:
    """The user asks a question."""

    clarity: Level = 1
    in_internal_docs: Level = 1
    ask_person: Level = 1
    ask_missing_info: str = ""
    ask_user_meta_info: str = ""


@value
class AboutConsultation:
    """The user seeks advice on something of their own."""

    clarity: Level = 1
    in_internal_docs: Level = 1
    ask_person: Level = 1
    res_consultation: str = ""
    ask_user_meta_info: str = ""


Either: TypeAlias = AboutQuestion | AboutConsultation

FUNCTIONS: Mapping[str, type[Either]] = {
    "evaluate_question": AboutQuestion,
    "evaluate_consultation": AboutConsultation,
}


def assess_by_functions(given: Message, language: str) -> Program[Assessment]:
    """Let the model choose a function, natively where its server has function calling, else by a typed answer.

    Raises (when run):
        ShapeError: the answer could not be read.
    """
    said = (system(EITHER[language]), given)
    capabilities = yield from perform(GetCapabilities())
    if "tools" in capabilities:
        found = yield from _called(said)
        if found is not None:
            return _assessment(found)
    routed = yield from extract(Routes(dict(FUNCTIONS)), said, task="assess")
    way = routed.value
    if isinstance(way, Routed) and isinstance(way.value, (AboutQuestion, AboutConsultation)):
        return _assessment(way.value)
    return replace(_assessment(AboutQuestion()), is_question=5)  # neither: clear, and nothing to look for


def _called(said: tuple[Message, ...]) -> Program[Either | None]:
    """Ask for a call of one of the functions; None where the server has none, or the model calls none that can be read."""
    shapes: Mapping[str, OutputType[Either]] = {name: OutputType(kind) for name, kind in FUNCTIONS.items()}
    tools = tuple(ToolSpec(name, str(FUNCTIONS[name].__doc__), shape.schema()) for name, shape in shapes.items())
    try:
        request = Request(said, tools=tools, tool_choice="required", task="assess")
        response = yield from perform(Complete(request, HideOutput))
        for call in reversed(response.message.tool_calls):
            if call.name in shapes:
                return shapes[call.name].parse(call.arguments).value
    except (UnsupportedError, OutputValidationError) as error:
        yield from notify(f"assessed without a function call: {error.message}", code="downgrade")
        return None
    yield from notify("assessed without a function call: the model called none", code="downgrade")
    return None


def _assessment(found: Either) -> Assessment:
    """The scores that a choice of function implies."""
    asks = isinstance(found, AboutQuestion)
    return Assessment(
        clarity=found.clarity,
        is_question=1 if asks else 5,
        is_consultation=5 if asks else 1,
        in_internal_docs=found.in_internal_docs,
        ask_person=found.ask_person,
        ask_missing_info=found.ask_missing_info if isinstance(found, AboutQuestion) else "",
        res_consultation=found.res_consultation if isinstance(found, AboutConsultation) else "",
        ask_user_meta_info=found.ask_user_meta_info,
        source="functions",
    )


AssessmentMethod: TypeAlias = Literal["auto", "typed", "labels", "decisions", "functions"]

Needs: TypeAlias = Callable[[Assessment], bool]
"""Whether scores make questions back useful."""

TASKS: Mapping[str, Task] = {
    "clarity": "assess_clarity",
    "is_question": "assess_is_question",
    "is_consultation": "assess_is_consultation",
    "in_internal_docs": "assess_in_internal_docs",
    "ask_person": "assess_ask_person",
}

LABELS = "12345"

CIRCLE = re.compile(r"(\w.{1,30}?)\1\1", re.DOTALL)
"""The same three times in a row."""

LIKELIEST = 20

NOT_THERE = frozenset({400, 404, 405, 422, 501})
"""What a server answers that does not know the decision wire, or not for this model."""


def assess(
    dialogue: Sequence[Message],
    *,
    by: AssessmentMethod = "auto",
    about: Sequence[tuple[str, str]] = (),
    earlier: Sequence[str] = (),
    needs: Needs | None = None,
    locale: str = "",
) -> Program[Assessment]:
    """Assess what the user wants. `about` is what is known of the user, `earlier` what they said in other dialogues, `locale` the language of
    their environment.

    With `auto`, a way that the server turns out not to have is left for the next one, and said.

    Raises (when run):
        InputError: the user said nothing.
        ModelError: the server cannot do what `by` names, or failed.
        ShapeError: the answer could not be read.
    """
    if not user_texts(dialogue):
        raise InputError("there is nothing to assess: the dialogue has no words of the user")
    given = dialogue_message(dialogue, person=dict[str, Json](about), earlier=list[Json](earlier))
    language = reply_language(dialogue, locale=locale)
    if by == "functions":
        return (yield from assess_by_functions(given, language))
    capabilities = yield from perform(GetCapabilities())
    if by == "decisions" or (by == "auto" and "decisions" in capabilities):
        found = yield from _by_decisions(given, language, strict=by != "auto")
        if found is not None:
            return (yield from _with_words(found, given, language, needs))
    if by == "labels" or (by == "auto" and "logprobs" in capabilities):
        found = yield from _by_labels(given, language, strict=by != "auto")
        if found is not None:
            return (yield from _with_words(found, given, language, needs))
    return (yield from _typed(given, language, capabilities))


def written_by(written: AssessmentOutput, source: Source = "typed") -> Assessment:
    """Make the assessment that a model wrote."""
    return Assessment(
        written.clarity,
        written.is_question,
        written.is_consultation,
        written.in_internal_docs,
        written.ask_person,
        written.ask_missing_info,
        written.res_consultation,
        written.ask_user_meta_info,
        source=source,
    )


def _typed(given: Message, language: str, capabilities: frozenset[Capability]) -> Program[Assessment]:
    """Ask for a typed answer: as a call of a function where the server has that, else in the next best mode."""
    said = (system(WHOLE[language]), given)
    shape = OutputType(AssessmentOutput, name="Assessment")
    modes: tuple[Choice, ...] = ("tool", "auto") if "tools" in capabilities else ("auto",)
    for mode in modes[:-1]:
        try:
            return written_by((yield from extract(shape, said, mode=mode, task="assess")).value)
        except (UnsupportedError, ExtractError) as error:
            yield from notify(f"assessed without a function call: {error.message}", code="downgrade")
    return written_by((yield from extract(shape, said, mode=modes[-1], task="assess")).value)


def _by_decisions(given: Message, language: str, *, strict: bool) -> Program[Assessment | None]:
    """Ask the decision wire for all scores at once; None where the server turns out not to speak it."""
    levels = LEVELS[language]
    asked = Questions(tuple((name, ScaleQuestion(said, levels)) for name, said in STATEMENTS[language].items()))
    try:
        response = yield from perform(Complete(Request((given,), constraint=asked, task="assess"), HideOutput))
        return _read(decided(response.text, SCORES, len(levels)), "decisions")
    except (ModelError, OutputValidationError) as error:
        missing = isinstance(error, (UnsupportedError, OutputValidationError)) or error.status in NOT_THERE
        if strict or not missing:
            raise
        yield from notify(f"assessed without the decision wire: {error.message}", code="downgrade")
        return None


def _by_labels(given: Message, language: str, *, strict: bool) -> Program[Assessment | None]:
    """Read each score from the probabilities of its labels; None where the server tells none, or the model says other things."""
    try:
        readings = yield from gather(_label(given, *ONE[language][name], TASKS[name]) for name in SCORES)
    except UnsupportedError as error:
        if strict:
            raise
        yield from notify(f"assessed without probabilities: {error.message}", code="downgrade")
        return None
    found = {name: reading for name, reading in zip(SCORES, readings, strict=True) if reading is not None}
    mass = min((reading.mass for reading in found.values()), default=0.0)
    if len(found) == len(SCORES) and mass >= LEAST_MASS:
        return _read(found, "labels")
    fault = f"the digits 1 to 5 hold {mass:.0%} of the probability" if found else "no probabilities were told"
    if strict:
        raise OutputValidationError(f"the scores cannot be read: {fault}", diagnostics=(fault,))
    yield from notify(f"assessed without probabilities: {fault}", code="downgrade")
    return None


def _label(given: Message, instructions: str, question: str, task: Task) -> Program[LevelDistribution | None]:
    """One forward pass. The question comes last, so that all of them share what a prefix cache holds."""
    asked = Message("user", (*given.parts, Text(question, transient=True)))
    said = system(instructions), asked
    request = Request(said, sampling=Sampling(max_tokens=1), top_logprobs=LIKELIEST, task=task)
    response = yield from perform(Complete(request, HideOutput))
    return labelled(response.logprobs, LABELS)


def _read(found: Mapping[str, LevelDistribution], source: Source) -> Assessment:
    clarity, question, consultation, documents, person = (round(found[name].expected, 6) for name in SCORES)
    return Assessment(
        clarity,
        question,
        consultation,
        documents,
        person,
        source=source,
        chances=tuple((name, found[name].chances) for name in SCORES),
        confidence=tuple((name, round(found[name].confidence, 6)) for name in SCORES),
    )


def _with_words(found: Assessment, given: Message, language: str, needs: Needs | None) -> Program[Assessment]:
    """Have questions back written, where the scores make them useful; a server without words gives none."""
    if needs is None or not needs(found):
        return found
    try:
        extracted = yield from extract(
            OutputType(ClarifyingQuestions), (system(BACK[language]), given), task="clarify_question"
        )
    except (ModelError, OutputValidationError) as error:
        if isinstance(error, ModelError) and not isinstance(error, UnsupportedError) and error.status not in NOT_THERE:
            raise
        yield from notify(f"no question back could be written: {error.message}", code="downgrade", warning=True)
        return found
    words = extracted.value
    return replace(
        found,
        ask_missing_info=_straight(words.ask_missing_info),
        res_consultation=_straight(words.res_consultation),
        ask_user_meta_info=_straight(words.ask_user_meta_info),
    )


def _straight(text: str) -> str:
    """A question back; none where a small model went round in circles."""
    return "" if CIRCLE.search(text) else text
