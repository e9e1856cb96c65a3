"""The built-in model: load, pose, card."""

import json
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, TypeAlias

from taiwa import constraints
from taiwa.constraints.guide import Guide
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Chunk, Regex, Request, StreamEnd, TextDelta, Usage
from taiwa.kernel.records import Json
from taiwa.models.builtin.copy_constraint import copying, written
from taiwa.models.builtin.network import Network, loaded
from taiwa.models.builtin.prompt_text import ANSWER, BuiltinPrompt, unsupported
from taiwa.models.builtin.requests import TOLD, read, refusal
from taiwa.models.builtin.tokenizer import Tokens, tokens
from taiwa.models.http_api.capabilities import Capabilities, capabilities
from taiwa.models.inprocess.decode_loop import Backend
from taiwa.models.inprocess.generator import InProcessModel, PreparedRequest
from taiwa.models.inprocess.prefix_cache import Divide

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

__all__ = ["CAN", "DATA", "BuiltinModel", "Loaded", "card", "figures", "is_there", "load"]


DATA: "Traversable" = files("taiwa.models.builtin") / "data"

ROOM = 320
"""So many tokens are left for an answer: of a prompt that is longer, the end is read, and of an order the beginning."""

MOST = {"solve": 512, "desk": 512, "back": 200, "rewrite": 160, "number": 24, "assess": 1}
"""So many tokens an answer has at most: what goes on for longer goes round in circles."""

LABEL = Regex("[1-5]")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The model in memory; see `taiwa.models.inprocess.generator.LoadedModel`."""

    network: Backend
    tokens: Tokens

    @property
    def divider(self) -> Divide:
        """How a text becomes tokens."""
        return self.tokens.encode

    def posed(self, request: Request) -> PreparedRequest:
        """The task, its prompt, and the mark of what is asked for; and the guides of that task.

        Raises:
            UnsupportedError: the model did not learn to answer this.
        """
        told = read(request)
        if told is None:
            raise unsupported()
        special = self.tokens.special
        most = max(self.network.context - ROOM, self.network.context // 2)
        whole = self.tokens.encode(told.prompt)
        prompt = whole[:most] if told.task == "desk" else whole[-most:]  # an order stands before what the guest says
        tokens = (special[f"<{told.task}>"], *prompt, special[f"<{told.mark}>"])
        return PreparedRequest(tokens, tuple(self._guides(told, request.prefix)), MOST[told.task])

    def _guides(self, told: BuiltinPrompt, begun: str) -> list[Guide]:
        vocabulary = self.tokens.vocabulary
        found: list[Guide] = []
        if told.task == "solve":
            found.append(copying(told.prompt, told.tools, vocabulary, begun))
        if told.task == "number":
            found.append(constraints.compile(_number(told.prompt), vocabulary))
        if told.mark != ANSWER:
            found.append(constraints.compile(LABEL, vocabulary))
        if told.grammar is not None:
            found.append(constraints.compile(told.grammar, vocabulary))
        return found


def _number(prompt: str) -> Regex:
    """One of the numbers that stand there, or the word for none."""
    numbers = sorted(written(prompt))
    return Regex("|".join(("none", *(f"-?{number.replace('.', '[.]')}" for number in numbers))))


def _marks() -> set[str]:
    """The control tokens that any request is told with."""
    scores = {told.partition(".")[2] for told in TOLD.values()} - {""}
    return {f"<{name}>" for name in (*MOST, ANSWER, *scores)}


def load(weights: "Traversable | Path | None" = None) -> Loaded:
    """Load the model that comes along, or another one of its kind.

    Raises:
        ConfigError: the files are missing or broken.
    """
    made = tokens()
    numbers = loaded(weights or DATA / "weights.safetensors")
    if missing := _marks() - made.special.keys():
        raise ConfigError(f"the built-in model's vocabulary has no {min(missing)}: install taiwa again")
    if numbers.vocabulary not in ("", made.digest):
        raise ConfigError("the built-in model's weights and its vocabulary are of two models: install taiwa again")
    return Loaded(Network(numbers, made.vocabulary), made)


NAME = "builtin"


class BuiltinModel(InProcessModel["Loaded"]):
    """The model that comes along: `builtin`. What it did not learn, it says in words of the program's.

    Raises:
        ConfigError: an option follows its name.
    """

    def __init__(self, name: str = NAME, known: Capabilities | None = None) -> None:
        super().__init__(name, known or capabilities("builtin", ""))
        if name != NAME:
            raise ConfigError(f"the built-in model takes no options and runs in numpy: use {NAME!r}, not {name!r}")

    def load(self) -> "Loaded":
        """Load it from the package.

        Raises:
            ConfigError: the files are missing or broken.
        """

        return load()

    def stream(self, request: Request) -> Generator[Chunk]:
        """Answer in chunks, the last one `StreamEnd`; a request that the model cannot read is answered in words that say so.

        Raises:
            ConfigError: the model cannot be loaded.
            DeadEndError: the constraint leaves no token.
            InputError: the constraint cannot be read, or the prefix does not fit it.
            ModelError: `UnsupportedError` for a value or a list of probabilities that the model did not learn to give.
        """
        if read(request) is None:
            yield TextDelta(refusal(request))
            yield StreamEnd("stop", None, Usage(), self.name)
        else:
            yield from super().stream(_likeliest(request))


def _likeliest(request: Request) -> Request:
    """The request with the likeliest text wanted, where it does not say how tokens are drawn: so small a model errs enough."""
    if request.sampling.temperature is not None:
        return request
    return replace(request, sampling=replace(request.sampling, temperature=0.0))


Row: TypeAlias = tuple[str, str]

CAN: tuple[Row, ...] = (
    ("quantities", "word problems of every day, worked out by the calculator: taiwa solve"),
    ("chemistry", "formulas, molar masses, percentages, equations, limiting reagents, by tools: taiwa solve"),
    ("orders", "a café's order desk with state, corrections and totals, in English and Japanese: taiwa chat order"),
    ("asking back", "five scores of a question to documents, a question back, a stand-alone query: taiwa ask"),
)
"""What it learned, and the command that uses it."""


def card() -> Mapping[str, Json]:
    """The card; empty where there is none."""
    try:
        found: Json = json.loads((files("taiwa.models.builtin") / "data" / "card.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def is_there() -> bool:
    """Whether this copy of the program has the model."""
    return (files("taiwa.models.builtin") / "data" / "weights.safetensors").is_file()


def figures(told: Mapping[str, Json]) -> Iterator[Row]:
    """The sizes, the training, what is written exactly of what was held out, and the evaluations, as far as the card says it."""
    size = _inner(told, "size")
    if number := _card_number(size, "parameters"):
        yield "parameters", f"{number:,.0f} ({_card_number(size, 'bytes') / 1e6:.1f} MB)"
    if number := _card_number(size, "context"):
        yield "reads", f"{number:,.0f} tokens at most; {_card_number(size, 'vocab'):,.0f} different ones"
    training = _inner(told, "training")
    if number := _card_number(training, "tokens"):
        yield "trained", f"on {number / 1e6:,.1f} million tokens in {_card_number(training, 'minutes'):,.0f} minutes"
    held = _inner(told, "held_out")
    for name in held:
        whole = _inner(_inner(held, name), "all")
        if _card_number(whole, "of"):
            share, of = _card_number(whole, "share"), _card_number(whole, "of")
            yield f"exact: {name}", f"{share:.1%} of {of:,.0f} held-out samples{_interval(whole)}"
    yield from _evaluated(told.get("headline"))
    yield from _speeds(_inner(told, "speed"))


def _evaluated(rows: Json) -> Iterator[Row]:
    """What came of it on text that no one here wrote; the held-out samples are told before."""
    for row in rows if isinstance(rows, list) else ():
        if (
            isinstance(row, dict)
            and _card_number(row, "of")
            and not str(row.get("what", "held-out")).startswith("held-out")
        ):
            shown = "{:.3f}" if row.get("unit") == "AUC" else "{:.1%}"
            yield (
                str(row["what"]),
                f"{shown.format(_card_number(row, 'value'))} of {_card_number(row, 'of'):,.0f}{_interval(row, shown)}",
            )


def _speeds(told: Mapping[str, Json]) -> Iterator[Row]:
    rows = told.get("rows")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(row.get("name"), str) and _card_number(row, "tokens_a_second"):
            yield f"speed: {row['name']}", f"{_card_number(row, 'tokens_a_second'):,.0f} tokens a second on one core"


def _interval(told: Mapping[str, Json], shown: str = "{:.1%}") -> str:
    bounds = told.get("interval")
    if not isinstance(bounds, list) or len(bounds) != 2:
        return ""
    low, high = (bound if isinstance(bound, (int, float)) else 0.0 for bound in bounds)
    return f" ({shown.format(low)} to {shown.format(high)})"


def _inner(told: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    found = told.get(name)
    return found if isinstance(found, dict) else {}


def _card_number(told: Mapping[str, Json], name: str) -> float:
    found = told.get(name)
    return float(found) if isinstance(found, (int, float)) else 0.0
