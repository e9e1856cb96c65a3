"""Assess a dialogue: scores and questions back, by the best way that the model's server has. All ways give one value.

- `decisions`: the decision wire, all scores in one request without words;
- `labels`: one forward pass per score, whose probabilities of the digits 1 to 5 are the score;
- `typed`: a typed answer, as a call of a function where the server has function calling.

Questions back are written by the model only where the scores make them useful; a typed answer brings them along.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from taiwa.flows.askwords import BACK, LEVELS, ONE, STATEMENTS, WHOLE
from taiwa.flows.assessment import SCORES, Assessment, Source, Words, Written
from taiwa.flows.chances import LEAST_MASS, Reading, decided, labelled
from taiwa.flows.extract import ExtractError, extract
from taiwa.flows.functions import assess_by_functions
from taiwa.flows.material import material, tongue, utterances
from taiwa.flows.modes import Choice
from taiwa.kernel.effects import Abilities, Complete, Hidden, Program, gather, perform, tell
from taiwa.kernel.errors import InputError, ModelError, ShapeError, UnsupportedError
from taiwa.kernel.records import Json
from taiwa.kernel.values import Ability, Message, Questions, Request, Sampling, Scale, Text, system
from taiwa.shape import Shape

__all__ = ["By", "Needs", "assess", "written_by"]

By: TypeAlias = Literal["auto", "typed", "labels", "decisions", "functions"]
Needs: TypeAlias = Callable[[Assessment], bool]
"""Whether scores make questions back useful."""
LABELS = "12345"
CIRCLE = re.compile(r"(\w.{1,30}?)\1\1", re.DOTALL)
"""The same three times in a row."""
LIKELIEST = 20
NOT_THERE = frozenset({400, 404, 405, 422, 501})
"""What a server answers that does not know the decision wire, or not for this model."""


def assess(
    dialogue: Sequence[Message],
    *,
    by: By = "auto",
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
    if not utterances(dialogue):
        raise InputError("there is nothing to assess: the dialogue has no words of the user")
    given = material(dialogue, person=dict[str, Json](about), earlier=list[Json](earlier))
    language = tongue(dialogue, locale=locale)
    if by == "functions":
        return (yield from assess_by_functions(given, language))
    abilities = yield from perform(Abilities())
    if by == "decisions" or (by == "auto" and "decisions" in abilities):
        found = yield from _by_decisions(given, language, strict=by != "auto")
        if found is not None:
            return (yield from _with_words(found, given, language, needs))
    if by == "labels" or (by == "auto" and "logprobs" in abilities):
        found = yield from _by_labels(given, language, strict=by != "auto")
        if found is not None:
            return (yield from _with_words(found, given, language, needs))
    return (yield from _typed(given, language, abilities))


def written_by(written: Written, source: Source = "typed") -> Assessment:
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


def _typed(given: Message, language: str, abilities: frozenset[Ability]) -> Program[Assessment]:
    """Ask for a typed answer: as a call of a function where the server has that, else in the next best mode."""
    said = (system(WHOLE[language]), given)
    shape = Shape(Written, name="Assessment")
    modes: tuple[Choice, ...] = ("tool", "auto") if "tools" in abilities else ("auto",)
    for mode in modes[:-1]:
        try:
            return written_by((yield from extract(shape, said, mode=mode)).value)
        except (UnsupportedError, ExtractError) as error:
            yield from tell(f"assessed without a function call: {error.message}", code="downgrade")
    return written_by((yield from extract(shape, said, mode=modes[-1])).value)


def _by_decisions(given: Message, language: str, *, strict: bool) -> Program[Assessment | None]:
    """Ask the decision wire for all scores at once; None where the server turns out not to speak it."""
    levels = LEVELS[language]
    asked = Questions(tuple((name, Scale(said, levels)) for name, said in STATEMENTS[language].items()))
    try:
        response = yield from perform(Complete(Request((given,), constraint=asked), Hidden))
        return _read(decided(response.text, SCORES, len(levels)), "decisions")
    except (ModelError, ShapeError) as error:
        missing = isinstance(error, (UnsupportedError, ShapeError)) or error.status in NOT_THERE
        if strict or not missing:
            raise
        yield from tell(f"assessed without the decision wire: {error.message}", code="downgrade")
        return None


def _by_labels(given: Message, language: str, *, strict: bool) -> Program[Assessment | None]:
    """Read each score from the probabilities of its labels; None where the server tells none, or the model says other things."""
    try:
        readings = yield from gather(_label(given, *ONE[language][name]) for name in SCORES)
    except UnsupportedError as error:
        if strict:
            raise
        yield from tell(f"assessed without probabilities: {error.message}", code="downgrade")
        return None
    found = {name: reading for name, reading in zip(SCORES, readings, strict=True) if reading is not None}
    mass = min((reading.mass for reading in found.values()), default=0.0)
    if len(found) == len(SCORES) and mass >= LEAST_MASS:
        return _read(found, "labels")
    fault = f"the digits 1 to 5 hold {mass:.0%} of the probability" if found else "no probabilities were told"
    if strict:
        raise ShapeError(f"the scores cannot be read: {fault}", diagnostics=(fault,))
    yield from tell(f"assessed without probabilities: {fault}", code="downgrade")
    return None


def _label(given: Message, instructions: str, question: str) -> Program[Reading | None]:
    """One forward pass. The question comes last, so that all of them share what a prefix cache holds."""
    asked = Message("user", (*given.parts, Text(question, transient=True)))
    request = Request((system(instructions), asked), sampling=Sampling(max_tokens=1), likeliest=LIKELIEST)
    response = yield from perform(Complete(request, Hidden))
    return labelled(response.likelihoods, LABELS)


def _read(found: Mapping[str, Reading], source: Source) -> Assessment:
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
        extracted = yield from extract(Shape(Words), (system(BACK[language]), given))
    except (ModelError, ShapeError) as error:
        if isinstance(error, ModelError) and not isinstance(error, UnsupportedError) and error.status not in NOT_THERE:
            raise
        yield from tell(f"no question back could be written: {error.message}", code="downgrade", warning=True)
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
