"""Output types by name, generation under a constraint, and the explanation of a constraint."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from taiwa.apps.output_types import load_output_type
from taiwa.extras import require_modules
from taiwa.kernel.attachments import Attachment, path_kind, read_file, read_json_object
from taiwa.kernel.errors import ConfigError, InputError, NoValidTokenError, OutputValidationError
from taiwa.kernel.messages import (
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    Regex,
    Request,
    Response,
    Sampling,
    ShownEvent,
    system,
    user,
)
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import truncate
from taiwa.kernel.usage_limits import Billing
from taiwa.operations.results import ExplainResult, GenerateResult, SchemaResult
from taiwa.structured import OutputType, ParseOptions, ParseResult

if TYPE_CHECKING:
    from taiwa.constraints.explain import TokenStep
    from taiwa.constraints.guide import Guide, Whitespace
    from taiwa.constraints.vocabulary import Vocabulary
    from taiwa.kernel.runtime import Model
    from taiwa.models.inprocess.gguf import GgufModel
    from taiwa.settings import Settings

ConstraintKind: TypeAlias = Literal["", "type", "schema", "regex", "grammar", "choice"]
SchemaStyle: TypeAlias = Literal["typescript", "jsonschema", "openai"]
MAX_PARSED_CHARS = 64 << 20
MAX_SHOWN_PATTERN = 400
TOKENIZER_FILES = ("tekken.json", "tokenizer.json")
"""Files that a folder given as a vocabulary may have."""
MAX_SHOWN_RULES = 24


@dataclass(frozen=True, slots=True)
class WrittenConstraint:
    """A constraint as users write it.

    - `kind` and `source`: a type (`module:Type` or FILE.json), a JSON Schema file, a regular expression, a Lark grammar
      file, or comma-separated words; "" for no constraint.
    - `strict`: fail if a clause cannot be enforced, instead of checking it afterwards.
    - `whitespace`: between the tokens of JSON; None leaves it to the model (see `CompileOptions`).
    """

    kind: ConstraintKind = ""
    source: str = ""
    strict: bool = True
    whitespace: "Whitespace | None" = None


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """One answer, or several, under a constraint.

    - `system`: instructions before the text; `prefix`: the beginning of the answer; `stop`: texts before which it ends.
    - `count`: the number of concurrent answers. `attachments`: attachments of the text.
    """

    text: str
    constraint: WrittenConstraint = WrittenConstraint()
    system: str = ""
    prefix: str = ""
    stop: tuple[str, ...] = ()
    sampling: Sampling = Sampling(temperature=0.0)
    count: int = 1
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """A constraint to explain.

    - `kind` and `source`: as for `WrittenConstraint`.
    - `vocabulary`: `small`, `bytes`, or the file of a tokenizer.
    - `engine`: `reference` for the readable guides, `llguidance` for the one that decoding uses.
    - `whitespace`: between the tokens of JSON.
    """

    kind: ConstraintKind
    source: str
    vocabulary: str = "small"
    engine: Literal["reference", "llguidance"] = "reference"
    whitespace: "Whitespace" = "bounded"


def parse(output_type: OutputType[Any], text: str, *, guess: bool = True) -> ParseResult[Json]:
    """Parse the text of an answer as a type; without `guess` only repairs that keep its meaning are made.

    Raises:
        OutputValidationError: the text does not hold a value of the type.
    """
    found = output_type.parse(text, ParseOptions(guess=guess, max_chars=MAX_PARSED_CHARS))
    return replace(found, value=output_type.dump(found.value))


def render_schema(output_type: OutputType[Any], style: SchemaStyle) -> SchemaResult:
    """Render a type as models see it: TypeScript in prompts, JSON Schema for servers, OpenAI's strict form."""
    from taiwa.kernel.text import estimate_tokens

    strict = output_type.strict_schema()
    texts = {
        "typescript": output_type.render(),
        "jsonschema": output_type.render("jsonschema"),
        "openai": json.dumps(strict.schema, ensure_ascii=False, separators=(",", ":")),
    }
    tokens = {name: estimate_tokens(text) for name, text in texts.items()}
    return SchemaResult(style, texts, tokens, tuple(strict.relaxed), tuple(strict.unsupported))


def generate(
    settings: "Settings", options: GenerateOptions, on_event: Callable[[ShownEvent], None]
) -> list[GenerateResult]:
    """Generate answers under the constraint; their text is passed to `on_event` as it arrives, that of several in any order, and
    notices.

    Raises:
        InputError: the text is empty, or the constraint cannot be read. ConfigError: the cost of a day is limited.
        TaiwaError: the model does not support it, or failed.
    """
    from taiwa.kernel.effects import Complete, gather, perform
    from taiwa.kernel.execution import RunResult
    from taiwa.kernel.runtime import Runtime
    from taiwa.models.providers import in_process
    from taiwa.sessions.commit_turn import check_text
    from taiwa.sessions.session import open_priced_model

    if not options.attachments:
        check_text(options.text)
    output_type, constraint = _constraint(options.constraint.kind, options.constraint.source)
    check = None
    if constraint is not None:
        if output_type is None:
            require_modules("checking an answer", "constraints", "llguidance", "numpy")
        with suppress(ConfigError):  # it cannot be judged here
            check = answer_checker(constraint, output_type, exact=True)
    requests = _requests(options, constraint)
    priced_model = open_priced_model(None, settings)
    inside, limits = in_process(priced_model.model), settings.limits
    if limits.day_cost is not None and inside is None:
        raise ConfigError(
            "the limit on cost per day counts stored calls, and generate stores none; give an amount without a period"
        )
    runtime = Runtime(
        _with_options(priced_model.model, requests, options), billing=Billing(priced_model.price), limits=replace(limits, requests=None)
    )  # fmt: skip
    for event in runtime.stream(gather(perform(Complete(request)) for request in requests)):
        if not isinstance(event, RunResult):
            on_event(event)
            continue
        vocabulary = None if inside is None else inside.generator().loaded.network.vocabulary
        found = [_result(response, vocabulary) for response in event.value]
        return found if check is None else [_checked(each, options.prefix, check) for each in found]
    raise AssertionError("a run ends with RunResult")


def _requests(options: GenerateOptions, constraint: Constraint | None) -> tuple[Request, ...]:
    """Return the requests of all answers, with consecutive seeds."""
    messages = ((system(options.system),) if options.system else ()) + (user(options.text, options.attachments),)
    seed = options.sampling.seed
    return tuple(
        Request(
            messages, prefix=options.prefix, stop=options.stop, constraint=constraint,
            sampling=replace(options.sampling, seed=None if seed is None else seed + number),
        )
        for number in range(options.count)
    )  # fmt: skip


def _with_options(model: "Model", requests: "Sequence[Request]", options: GenerateOptions) -> "Model":
    """Return the model with the options for constraints; one in this process answers several requests in common passes."""
    from taiwa.models.http_api.client import HttpModel
    from taiwa.models.providers import in_process

    if isinstance(model, HttpModel):
        return model.holding("strict" if options.constraint.strict else "lenient")
    inside = in_process(model)
    if inside is None:
        return model
    from taiwa.models.inprocess.generator import CompileOptions, ModelWithOptions

    compiled = CompileOptions(options.constraint.strict, options.constraint.whitespace)
    return ModelWithOptions(inside, compiled, requests if len(requests) > 1 else ())


def _result(response: Response, vocabulary: "Vocabulary | None") -> GenerateResult:
    written = response.decoding.written
    if written is None or vocabulary is None:
        return GenerateResult(response)
    texts = (vocabulary.tokens[token].decode("utf-8", "replace") for token in written.ids)
    return GenerateResult(response, parts=tuple(zip(texts, written.forced, strict=True)))


def _constraint(kind: ConstraintKind, source: str) -> tuple[OutputType[Any] | None, Constraint | None]:
    """Read a constraint, with the type that checks answers, if any."""
    if not kind:
        return None, None
    if kind == "choice":
        return None, Choice(_choices(source))
    if kind == "regex":
        return None, Regex(source)
    if kind == "grammar":
        return None, Grammar(read_file(Path(source)))
    if kind == "type":
        output_type = load_output_type(source)
        return output_type, JsonSchema(output_type.schema(), output_type.name)
    return None, JsonSchema(read_json_object(Path(source)))


def _choices(source: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in source.split(",") if word.strip())
    if not words:
        raise InputError("--choice requires words with commas between them")
    return words


def answer_checker(
    constraint: Constraint, output_type: OutputType[Any] | None = None, *, exact: bool = False
) -> Callable[[str], Json]:
    """Return a function from a complete answer to its value: JSON data under a JSON Schema, which the type may check, else
    the text without white space around it, or the choice that it is but for letter case, quotes and a full stop; with
    `exact` it must be the text itself.

    It raises OutputValidationError for an invalid answer, such as one cut off by a stop string or a limit.

    Raises:
        InputError: the constraint is not valid.
        ConfigError: it cannot be checked here.
    """
    from taiwa import constraints
    from taiwa.constraints.vocabulary import Vocabulary

    if isinstance(constraint, JsonSchema) and output_type is None:
        with suppress(ConfigError):  # without the extra `schema`, the guide checks
            output_type = OutputType.from_json_schema(constraint.schema)
    guide = None
    if output_type is None:
        guide = constraints.compile(constraint, Vocabulary.of_bytes(), strict=False)

    def check(text: str) -> Json:
        data: Json = text
        if isinstance(constraint, JsonSchema):
            try:
                data = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise OutputValidationError(f"not JSON: {error}", text=text) from None
        if output_type is not None:
            output_type.validate(data)
        elif guide is not None and not guide.accepts(text.encode()):
            plain = text.strip()
            labels = (
                [each for each in constraint.texts if _label(each) == _label(text)]
                if isinstance(constraint, Choice) and _label(text)
                else []
            )
            if exact or (len(labels) != 1 and not guide.accepts(plain.encode())):
                raise OutputValidationError(
                    f"the answer does not match the constraint: {truncate(text, 80)!r}", text=text
                )
            data = labels[0] if len(labels) == 1 else plain if data is text else data
        return data

    return check


def _label(text: str) -> str:
    return text.strip("\"'`*.。 \t\r\n").casefold()


def _checked(answer: GenerateResult, prefix: str, check: Callable[[str], Json]) -> GenerateResult:
    try:
        check(prefix + answer.response.text)
    except OutputValidationError as error:
        cut = "it was cut off at the length limit" if answer.response.finish in ("length", "cut") else ""
        return replace(answer, fits=False, why=cut or error.message)
    return replace(answer, fits=True)


def explain(options: ExplainOptions, text: str | None) -> ExplainResult:
    """Compile a constraint and trace a text under it; without a text only its start.

    Raises:
        InputError: the constraint cannot be read, or is not supported by this engine.
    """
    from taiwa.constraints.explain import trace_text

    vocabulary = _vocabulary(options.vocabulary)
    kind, name = options.kind, options.source
    _, constraint = _constraint(kind, name)
    source = name
    if isinstance(constraint, JsonSchema):
        source = json.dumps(constraint.schema, ensure_ascii=False, indent=2)
    elif isinstance(constraint, Grammar):
        source = constraint.text
    try:
        if options.engine == "llguidance":
            from taiwa import constraints

            guide: Guide = constraints.compile(constraint, vocabulary, whitespace=options.whitespace)
        else:
            guide = _reference_guide(constraint, vocabulary, options.whitespace)
    except NoValidTokenError as error:
        raise InputError(error.message) from error
    title = name if kind != "grammar" else Path(name).stem
    return ExplainResult(title, kind, source, guide, options.engine, trace_text(guide, text))


def _reference_guide(constraint: "Constraint | None", vocabulary: "Vocabulary", whitespace: "Whitespace") -> "Guide":
    from taiwa.constraints.guide import UnsupportedConstraintError
    from taiwa.constraints.readable_guides import GrammarGuide, RegexGuide
    from taiwa.constraints.schema_regex import space_regex

    if isinstance(constraint, Grammar):
        return GrammarGuide(constraint.text, vocabulary)
    if isinstance(constraint, Choice):
        return RegexGuide.of_choice(constraint.texts, vocabulary)
    if isinstance(constraint, Regex):
        return RegexGuide(constraint.pattern, vocabulary)
    assert isinstance(constraint, JsonSchema), "a constraint of another kind"
    try:
        return RegexGuide.of_schema(dict(constraint.schema), vocabulary, space_regex(whitespace))
    except UnsupportedConstraintError as error:
        raise InputError(f"{error.message}; --engine llguidance supports more than the readable guides") from error


def _vocabulary(name: str) -> "Vocabulary":
    from taiwa.constraints.vocabulary import Vocabulary, read_vocabulary, small_vocabulary

    if name == "small":
        return small_vocabulary()
    if name == "bytes":
        return Vocabulary.of_bytes()
    if name.lower().endswith(".gguf"):
        return _gguf_model(name).generator().loaded.network.vocabulary
    path = Path(name)
    if not path_kind(path):
        raise InputError(
            f"unknown vocabulary {name!r}; use small, bytes, or the file of a tokenizer (none is downloaded)"
        )
    if path.is_dir():
        files = [path / each for each in TOKENIZER_FILES if (path / each).is_file()]
        if not files:
            raise InputError(
                f"the folder {name} has none of {', '.join(TOKENIZER_FILES)}; name the file of a tokenizer"
            )
        path = files[0]
    return read_vocabulary(path)


@lru_cache(maxsize=1)
def _gguf_model(name: str) -> "GgufModel":
    """Return the model of a file, which is kept because its process is also its tokenizer."""
    from taiwa.models.inprocess.gguf import GgufModel, GgufSpec

    return GgufModel(name, GgufSpec(Path(name), context=256))


def token_text(vocabulary: "Vocabulary", step: "TokenStep") -> str:
    """Return the token of a step for display; "" at the last place."""
    return "" if step.token is None else vocabulary.show(step.token)


def describe_constraint(found: ExplainResult) -> Iterator[str]:
    """Describe the texts that a constraint accepts, line by line."""
    from taiwa.constraints.readable_guides import GrammarGuide, RegexGuide

    guide, vocabulary = found.guide, found.guide.vocabulary
    name = vocabulary.name or "vocabulary"
    yield f"{found.kind} {found.title} over {len(vocabulary):,} tokens ({name}), by {found.engine}"
    if isinstance(guide, RegexGuide):
        if found.kind != "regex":
            yield f"as a regular expression: {truncate(guide.pattern, MAX_SHOWN_PATTERN)}"
        count, least, most = guide.chars.extent
        yield f"an automaton of {len(guide.chars.moves):,} states over characters, {len(guide.automaton.moves):,} over bytes"
        many = "infinitely many texts" if count is None else "one text" if count == 1 else f"{_amount(count)} texts"
        upper = "" if most == least else f" to {most:,}" if most is not None else " or more"
        yield f"{many}, of {least:,}{upper} characters"
    elif isinstance(guide, GrammarGuide):
        symbols = len({rule.name for rule in guide.rules.rules[1:]})
        yield f"a grammar: {len(guide.rules.rules) - 1} rules for {symbols} symbols, {len(guide.rules.terminals)} terminals"
        rules = list(guide.described())
        yield from (f"  {rule}" for rule in rules[:MAX_SHOWN_RULES])
        if len(rules) > MAX_SHOWN_RULES:
            yield f"  and {len(rules) - MAX_SHOWN_RULES} more"
    for clause in (*guide.coverage.relaxed, *guide.coverage.ignored):
        yield f"not enforced: {clause}"


def _amount(count: int) -> str:
    return f"{count:,}" if count < 10**9 else f"about 10^{len(str(count)) - 1}"


def draw_automaton(found: ExplainResult) -> str:
    """Write the automaton of a constraint for Graphviz, with the path of the text marked.

    Raises:
        InputError: the guide is not an automaton.
    """
    from taiwa.constraints.automaton import to_dot
    from taiwa.constraints.readable_guides import RegexGuide

    guide, trace = found.guide, found.walk
    if not isinstance(guide, RegexGuide):
        raise InputError("--dot requires an automaton; a grammar and --engine llguidance have none")
    places = (guide.drawn(int(step.place)) for step in trace.steps if step.place and len(trace.steps) > 1)
    return to_dot(guide.chars, found.title, (place for place in places if place is not None))
