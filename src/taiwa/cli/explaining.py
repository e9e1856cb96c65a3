"""A constraint, its guide and the walk of a text, for people and for programs."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from taiwa.cli.screen import say_line, table
from taiwa.constraints.earley import GrammarGuide
from taiwa.constraints.explain import GuideTrace, TokenStep
from taiwa.constraints.guide import Guide
from taiwa.constraints.readable_guides import RegexGuide
from taiwa.kernel.errors import DeadEndError, InputError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.constraints.vocabulary import Vocabulary
    from taiwa.kernel.values import Constraint

__all__ = ["Subject", "language", "report", "subject", "token_text", "told"]

SPACES = {"bounded": "( |\\n {0,24})?", "compact": ""}
SHOWN = 72
SHOWN_PATTERN = 400
SHOWN_RULES = 24


@dataclass(frozen=True, slots=True)
class Subject:
    """What is explained: its title, the words it was given in, the guide and who made it."""

    title: str
    kind: str
    source: str
    guide: Guide
    engine: str


def subject(kind: str, given: Mapping[str, Any]) -> Subject:
    """Compile what the options name.

    Raises:
        InputError: it cannot be read, or says what this guide cannot keep.
    """
    vocabulary = _vocabulary(given["vocab"])
    name = given["kind"] if kind == "type" else given[kind]
    source, constraint, schema = _constraint(kind, name)
    engine, whitespace = given["engine"], given["whitespace"]
    try:
        if engine == "llguidance":
            from taiwa import constraints

            made: Guide = constraints.compile(constraint, vocabulary, whitespace=whitespace)
        else:
            made = _reference(kind, source, vocabulary, schema, SPACES[whitespace])
    except DeadEndError as error:
        raise InputError(error.message) from error
    return Subject(name if kind != "grammar" else Path(name).stem, kind, source, made, engine)


def _reference(kind: str, source: str, vocabulary: "Vocabulary", schema: Json, space: str) -> Guide:
    from taiwa.constraints.guide import UnsupportedConstraintError

    if kind == "grammar":
        return GrammarGuide(source, vocabulary)
    if kind == "choice":
        return RegexGuide.of_choice(_words(source), vocabulary)
    if kind == "regex":
        return RegexGuide(source, vocabulary)
    try:
        return RegexGuide.of_schema(schema, vocabulary, space)
    except UnsupportedConstraintError as error:
        raise InputError(f"{error.message}; --engine llguidance keeps more than the plain guides") from error


def _constraint(kind: str, name: str) -> "tuple[str, Constraint | Any, Json]":
    """The source as text, as a constraint, and as a schema where it is one."""
    from taiwa.cli.opening import read_file
    from taiwa.kernel.values import Grammar, JsonSchema, OneOf
    from taiwa.kernel.values import Regex as Pattern

    if kind == "regex":
        return name, Pattern(name), None
    if kind == "choice":
        return name, OneOf(tuple(_words(name))), None
    if kind == "grammar":
        text = read_file(Path(name))
        return text, Grammar(text), None
    schema = _schema(kind, name)
    return json.dumps(schema, ensure_ascii=False, indent=2), JsonSchema(schema, "Answer"), schema


def _words(given: str) -> list[str]:
    words = [word.strip() for word in given.split(",") if word.strip()]
    if not words:
        raise InputError("--choice takes words with commas between them")
    return words


def _schema(kind: str, name: str) -> dict[str, Json]:
    from taiwa.cli.opening import read_file
    from taiwa.cli.targets import load_shape

    if kind == "type":
        return load_shape(name).schema()
    try:
        schema = json.loads(read_file(Path(name)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise InputError(f"{name} is no JSON Schema: it must be an object")
    return cast("dict[str, Json]", schema)


def _vocabulary(name: str) -> "Vocabulary":
    from taiwa.constraints.vocabulary import Vocabulary, read_vocabulary, small_vocabulary

    if name == "small":
        return small_vocabulary()
    if name == "builtin":
        return _of_the_model()
    if name == "bytes":
        return Vocabulary.of_bytes()
    if not Path(name).exists():
        raise InputError(
            f"there is no vocabulary {name!r}: give small, builtin, bytes, or the file of a tokenizer; none is downloaded"
        )
    return read_vocabulary(name)


def _of_the_model() -> "Vocabulary":
    """The tokens of the model that comes along."""
    from taiwa.models.builtin.tokens import tokens

    return tokens().vocabulary


def report(found: Subject, walk: GuideTrace, *, asked: bool, examples: bool) -> None:
    """Print the walk as a table, and what came of it; without a text, what the whole texts are like."""
    vocabulary = found.guide.vocabulary
    steps = walk.steps if asked else walk.steps[:1]
    if not asked:
        for line in language(found):
            say_line(line)
        say_line("")
    heads = ("", "token", "allowed", "place", "expected")
    rows = [
        (
            str(number), token_text(vocabulary, step) + (" (forced)" if step.forced and not step.why else ""),
            f"{step.told.count:,}", _where(step), _short(step.told.expected),
        )
        for number, step in enumerate(steps)
    ]  # fmt: skip
    table(heads, rows, frozenset({0, 2}))
    for number, step in enumerate(steps):
        if examples and step.told.examples:
            say_line(f"  {number}: may come: {' '.join(step.told.examples)}")
    if asked:
        say_line("")
        say_line(_outcome(walk, vocabulary), "green" if walk.accepted else "yellow")


def token_text(vocabulary: "Vocabulary", step: TokenStep) -> str:
    """The token that came, for people; nothing at the last place."""
    return "" if step.token is None else vocabulary.show(step.token)


def _where(step: TokenStep) -> str:
    parts = [f"state {step.place}" if step.place else "", step.told.pointer, step.told.keyword]
    return _short(" ".join(filter(None, parts)))


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _outcome(walk: GuideTrace, vocabulary: "Vocabulary") -> str:
    last = walk.steps[-1]
    if last.why:
        return f"refused: {token_text(vocabulary, last)} cannot come at {len(walk.steps) - 1}: {last.why}"
    if not last.final:
        return "so far it fits; the text cannot end here"
    return "it fits, and is whole" + ("" if last.told.count <= len(vocabulary.end) else "; more may come")


def language(found: Subject) -> Iterator[str]:
    """What the whole texts are like, by line."""
    guide, vocabulary = found.guide, found.guide.vocabulary
    name = vocabulary.name or "vocabulary"
    yield f"{found.kind} {found.title} over {len(vocabulary):,} tokens ({name}), by {found.engine}"
    if isinstance(guide, RegexGuide):
        if found.kind != "regex":
            short = guide.pattern if len(guide.pattern) <= SHOWN_PATTERN else guide.pattern[: SHOWN_PATTERN - 1] + "…"
            yield f"as a regular expression: {short}"
        count, least, most = guide.chars.extent
        yield f"an automaton of {len(guide.chars.moves):,} states over characters, {len(guide.automaton.moves):,} over bytes"
        many = "endlessly many texts" if count is None else "one text" if count == 1 else f"{_amount(count)} texts"
        upper = "" if most == least else f" to {most:,}" if most is not None else " or more"
        yield f"{many}, of {least:,}{upper} characters"
    elif isinstance(guide, GrammarGuide):
        yield f"a grammar: {len(guide.rules.rules) - 1} ways to write {len({rule.name for rule in guide.rules.rules[1:]})} symbols, {len(guide.rules.terminals)} terminals"
        rules = list(guide.described())
        yield from (f"  {rule}" for rule in rules[:SHOWN_RULES])
        if len(rules) > SHOWN_RULES:
            yield f"  and {len(rules) - SHOWN_RULES} more"
    for clause in (*guide.coverage.relaxed, *guide.coverage.ignored):
        yield f"not kept: {clause}"


def _amount(count: int) -> str:
    return f"{count:,}" if count < 10**9 else f"about 10^{len(str(count)) - 1}"


def told(found: Subject, walk: GuideTrace) -> dict[str, Json]:
    """All of it, for programs."""
    vocabulary = found.guide.vocabulary
    steps: list[Json] = [
        {
            "text": step.text.decode("utf-8", "replace"),
            "token": step.token,
            "written": token_text(vocabulary, step),
            "state": int(step.place) if step.place else None,
            "allowed": step.told.count,
            "examples": list(step.told.examples),
            "pointer": step.told.pointer,
            "keyword": step.told.keyword,
            "expected": step.told.expected,
            "forced": step.forced,
            "final": step.final,
            "why": step.why,
        }
        for step in walk.steps
    ]
    return {
        "source": {"kind": found.kind, "title": found.title},
        "engine": found.engine,
        "vocabulary": {"name": vocabulary.name, "tokens": len(vocabulary)},
        "about": list(language(found)),
        "steps": steps,
        "accepted": walk.accepted,
        "refused": walk.refused is not None,
    }
