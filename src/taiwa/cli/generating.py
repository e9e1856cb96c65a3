"""What is to be generated, by which model, and what is said of it afterwards."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from taiwa.cli.options import Flags
from taiwa.cli.screen import emit, plain, say_line, tell
from taiwa.cli.values import enforcement_lines, told_enforcement
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import ConfigError, InputError, ShapeError
from taiwa.kernel.records import Json
from taiwa.kernel.values import (
    Enforcement,
    Grammar,
    JsonSchema,
    OneOf,
    Regex,
    Request,
    Sampling,
    TextDelta,
    Usage,
    system,
    user,
)

if TYPE_CHECKING:
    from taiwa.guide.sources import Whitespace
    from taiwa.guide.vocabulary import Vocabulary
    from taiwa.models.decoding.inside import InsideModel
    from taiwa.models.decoding.scribe import Loaded, Written
    from taiwa.models.wire import Hold
    from taiwa.shape import Shape
    from taiwa.talk.turn import Voice

__all__ = ["Answer", "Wanted", "answers", "report", "wanted"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked, and the form of the answer; `shape` judges it where it is a type or a schema."""

    request: Request
    shape: "Shape[Any] | None" = None
    strict: bool = True
    whitespace: "Whitespace" = "bounded"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, whether it fits (None: nobody can say), and how it came to be; `parts` pairs tokens with forced or not."""

    text: str
    finish: str
    stop: str | None
    usage: Usage | None
    fits: bool | None = None
    why: str = ""
    parts: tuple[tuple[str, bool], ...] = ()
    forwards: int = 0
    sparse: int = 0
    enforcement: Enforcement | None = None


def wanted(kind: str, text: str, given: Mapping[str, Any]) -> Wanted:
    """Read the options.

    Raises:
        InputError: the form of the answer cannot be read.
    """
    sampling = Sampling(given["temperature"], given["top_p"], given["max_tokens"], given["seed"])
    messages = ((system(given["system"]),) if given["system"] else ()) + (user(text),)
    request = Request(messages, prefix=given["prefix"], stop=given["stop"], sampling=sampling)
    wish = Wanted(request, strict=not given["lenient"], whitespace=given["whitespace"])
    if kind == "choice":
        words = tuple(word.strip() for word in given["choice"].split(",") if word.strip())
        if not words:
            raise InputError("--choice takes words with commas between them")
        return replace(wish, request=replace(request, constraint=OneOf(words)))
    if kind == "regex":
        return replace(wish, request=replace(request, constraint=Regex(given["regex"])))
    if kind == "grammar":
        from taiwa.cli.opening import read_file

        return replace(wish, request=replace(request, constraint=Grammar(read_file(Path(given["grammar"])))))
    if kind:
        shape, constraint = _typed(kind, given["kind" if kind == "type" else "schema"])
        return replace(wish, shape=shape, request=replace(request, constraint=constraint))
    return wish


def _typed(kind: str, name: str) -> "tuple[Shape[Any] | None, JsonSchema]":
    from taiwa.cli.opening import read_file
    from taiwa.cli.targets import load_shape
    from taiwa.shape import Shape

    if kind == "type":
        shape = load_shape(name)
        return shape, JsonSchema(shape.schema(), shape.name)
    try:
        held: object = json.loads(read_file(Path(name)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {error}") from None
    if not isinstance(held, dict):
        raise InputError(f"{name} is no JSON Schema: it must be an object")
    schema = cast("dict[str, Json]", held)
    try:
        return Shape.from_json_schema(schema), JsonSchema(schema)
    except ConfigError:  # without the extra that judges schemas, the guide alone says whether an answer fits
        return None, JsonSchema(schema)


def answers(shared: Flags, wish: Wanted, count: int) -> list[Answer]:
    """Ask the model; one answer for people is printed while it is written.

    Raises:
        TaiwaError: the model cannot be asked so.
    """
    from taiwa.models.decoding.inside import InsideModel
    from taiwa.talk.opening import open_voice

    chosen = shared.settings()
    voice = open_voice(None, chosen)
    aloud = _aloud if count == 1 and not shared.as_json else _silent
    if isinstance(voice.model, InsideModel):
        found = list(_inside(cast("InsideModel[Loaded]", voice.model), wish, count, aloud))
    else:
        voice = _held(voice, "strict" if wish.strict else "lenient")
        found = [_asked(voice, wish.request, chosen.max_cost_nano, aloud) for _ in range(count)]
    return [_judged(each, wish) for each in found]


def _aloud(text: str) -> None:
    click.echo(plain(text), nl=False)


def _silent(_: str) -> None:
    """Print nothing."""


def _inside(model: "InsideModel[Loaded]", wish: Wanted, count: int, aloud: Callable[[str], None]) -> Iterator[Answer]:
    from taiwa.models.decoding.scribe import Wish

    scribe = model.scribe()
    held = Wish(wish.strict, wish.whitespace)
    vocabulary = scribe.loaded.network.vocabulary
    if count > 1:
        yield from (_told(each, vocabulary) for each in scribe.together(wish.request, count, held))
        return
    for piece in scribe.pieces(wish.request, held):
        if isinstance(piece, str):
            aloud(piece)
        else:
            yield _told(piece, vocabulary)


def _told(written: "Written", vocabulary: "Vocabulary") -> Answer:
    ending = written.ending
    texts = (vocabulary.tokens[token].decode("utf-8", "replace") for token in ending.tokens)
    parts = tuple(zip(texts, ending.marks, strict=True))
    return Answer(
        written.text, ending.finish, ending.stop, written.usage, parts=parts, forwards=ending.forwards,
        sparse=ending.sparse, enforcement=written.enforcement,
    )  # fmt: skip


def _held(voice: "Voice", hold: "Hold") -> "Voice":
    """The voice whose model refuses, or leaves to a check, what its server's decoder does not hold."""
    from taiwa.models.opening import holding

    model: Any = voice.model
    return replace(voice, model=holding(model, hold))


def _asked(voice: "Voice", request: Request, most: int | None, aloud: Callable[[str], None]) -> Answer:
    from taiwa.kernel.effects import Complete, perform
    from taiwa.kernel.ledger import Limits
    from taiwa.kernel.run import Runtime
    from taiwa.kernel.session import Done

    runtime = Runtime(voice.model, price=voice.price, limits=Limits(cost=most))
    for event in runtime.stream(perform(Complete(request))):
        if isinstance(event, TextDelta):
            aloud(event.text)
        elif isinstance(event, Done):
            response = event.value
            return Answer(
                response.text, response.finish, response.stop, response.usage, enforcement=response.enforcement
            )
    raise AssertionError("a run ends with Done")


def _judged(answer: Answer, wish: Wanted) -> Answer:
    """Say whether the whole answer fits; what a stop string or a limit cut off does not."""
    if wish.request.constraint is None:
        return answer
    text = wish.request.prefix + answer.text
    if wish.shape is not None:
        try:
            wish.shape.check(json.loads(text))
        except ShapeError as error:
            return replace(answer, fits=False, why=error.message)
        except (ValueError, RecursionError) as error:
            return replace(answer, fits=False, why=f"not JSON: {error}")
        return replace(answer, fits=True)
    fits = _let_through(wish, text)
    return replace(answer, fits=fits, why="" if fits is not False else "the answer is not of that form")


def _let_through(wish: Wanted, text: str) -> bool | None:
    from taiwa import guide
    from taiwa.guide.vocabulary import Vocabulary

    try:
        return guide.compile(wish.request.constraint, Vocabulary.of_bytes(), strict=False).accepts(text.encode())
    except ConfigError:
        return None


def report(shared: Flags, found: Sequence[Answer]) -> None:
    """Print the answers, and with -v how they came to be."""
    if shared.as_json:
        for answer in found:
            emit(_record(answer))
        return
    for answer in found:
        say_line("" if len(found) == 1 else answer.text)
        if answer.fits is False:
            tell(f"it does not fit: {answer.why}", "yellow")
        if shared.verbose:
            _explain(answer)
        elif answer.enforcement is not None and answer.enforcement.checked:
            tell(f"checked, not enforced: {', '.join(answer.enforcement.checked)}")


def _explain(answer: Answer) -> None:
    for line in enforcement_lines(answer.enforcement):
        tell(line)
    if answer.parts:
        tell("".join(f"«{text}»" if forced else text for text, forced in answer.parts) + "   («forced»)")
        forced, count = sum(part[1] for part in answer.parts), len(answer.parts)
        tell(
            ngettext("{n} token, {forced} of them forced", "{n} tokens, {forced} of them forced", count, forced=forced)
            + "; "
            + ngettext(
                "{n} forward pass, {each} per token, {sparse} with a part of the output head",
                "{n} forward passes, {each} per token, {sparse} with a part of the output head",
                answer.forwards,
                each=f"{answer.forwards / count:.2f}",
                sparse=answer.sparse,
            )
        )
    if answer.usage is not None:
        usage = answer.usage
        tell(
            _(
                "tokens: {input} read ({cached} cached), {output} written",
                input=f"{usage.input_tokens:,}",
                cached=f"{usage.cache_read_tokens:,}",
                output=f"{usage.output_tokens:,}",
            )
        )


def _record(answer: Answer) -> dict[str, Json]:
    usage = answer.usage
    record: dict[str, Json] = {
        "text": answer.text,
        "finish": answer.finish,
        "stop": answer.stop,
        "fits": answer.fits,
        "why": answer.why or None,
        "enforcement": told_enforcement(answer.enforcement),
        "usage": None
        if usage is None
        else {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
        },
    }
    if answer.parts:
        tokens: list[Json] = [{"text": text, "forced": forced} for text, forced in answer.parts]
        record |= {"tokens": tokens, "forwards": answer.forwards, "sparse_forwards": answer.sparse}
    return record
