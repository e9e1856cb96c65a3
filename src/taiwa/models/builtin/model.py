"""The built-in model: its loading, its answers, and its model card."""

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias

from taiwa import constraints
from taiwa.constraints.guide import Guide
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Chunk, Regex, Request, StreamEnd, TextDelta, Usage
from taiwa.models.builtin.confidence import confidence
from taiwa.models.builtin.copy_constraint import CopyGuide, find_digits
from taiwa.models.builtin.name_check import UNKNOWN, check_names
from taiwa.models.builtin.network import Network, load_weights
from taiwa.models.builtin.requests import ANSWER, OUTPUTS, BuiltinPrompt, read_request, refusal_text, unsupported
from taiwa.models.builtin.tokenizer import Tokens, builtin_tokens
from taiwa.models.http_api.capabilities import Capabilities, capabilities, fit_attachments
from taiwa.models.inprocess.generator import Encode, InProcessModel, PreparedRequest

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

DATA: "Traversable" = files("taiwa.models.builtin") / "data"

RESERVED_TOKENS = 320
"""Tokens of the context that are reserved for the answer. Of a longer prompt the end is read, of an order the beginning."""
MAX_TOKENS = {"solve": 512, "desk": 512, "number": 24, "assess": 1}
"""Tokens of an answer by task: a longer answer only repeats itself."""
LABEL = Regex("[1-5]")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The model in memory; see `taiwa.models.inprocess.generator.LoadedModel`."""

    network: Network
    tokens: Tokens

    @property
    def encode(self) -> Encode:
        """Divide a text into tokens."""
        return self.tokens.encode

    def prepare(self, request: Request) -> PreparedRequest:
        """Return the control token of the task, the prompt, the control token of the output, and the guides of the task.

        Raises:
            UnsupportedError: the model was not trained to answer the request.
        """
        prompt = read_request(request)
        if prompt is None:
            raise unsupported()
        special = self.tokens.special
        room = max(self.network.context - RESERVED_TOKENS, self.network.context // 2)
        encoded = self.tokens.encode(prompt.text)
        kept = encoded[:room] if prompt.task == "desk" else encoded[-room:]  # the order precedes the text of the guest
        tokens = (special[f"<{prompt.task}>"], *kept, special[f"<{prompt.output}>"])
        return PreparedRequest(tokens, tuple(self._guides(prompt, request.prefix)), MAX_TOKENS[prompt.task])

    def _guides(self, prompt: BuiltinPrompt, prefix: str) -> Iterator[Guide]:
        vocabulary = self.tokens.vocabulary
        if prompt.task == "solve":
            yield CopyGuide.for_question(prompt.text, prompt.tools, vocabulary, prefix)
        if prompt.task == "number":
            yield constraints.compile(_number_constraint(prompt.text), vocabulary)
        if prompt.output != ANSWER:
            yield constraints.compile(LABEL, vocabulary)
        if prompt.grammar is not None:
            yield constraints.compile(prompt.grammar, vocabulary)


def _number_constraint(prompt: str) -> Regex:
    """Allow the numbers of the prompt, and the word for none."""
    numbers = sorted(find_digits(prompt))
    return Regex("|".join(("none", *(f"-?{number.replace('.', '[.]')}" for number in numbers))))


def load(weights: "Traversable | Path | None" = None) -> Loaded:
    """Load the model of the package, or other weights for its vocabulary.

    Raises:
        ConfigError: the files are missing or broken.
    """
    tokens = builtin_tokens()
    loaded = load_weights(weights or DATA / "weights.safetensors")
    scores = {output.partition(".")[2] for output in OUTPUTS.values()} - {""}
    if missing := {f"<{name}>" for name in (*MAX_TOKENS, ANSWER, *scores)} - tokens.special.keys():
        raise ConfigError(f"the built-in model's vocabulary lacks {min(missing)}; install taiwa again")
    if loaded.vocabulary not in ("", tokens.digest):
        raise ConfigError("the built-in model's weights and vocabulary belong to different models; install taiwa again")
    return Loaded(Network(loaded, tokens.vocabulary), tokens)


NAME = "builtin"


class BuiltinModel(InProcessModel["Loaded"]):
    """The model of the package: `builtin`. A request that it was not trained on gets a fixed refusal.

    Raises:
        ConfigError: the name has options.
    """

    def __init__(self, name: str = NAME, known: Capabilities | None = None) -> None:
        super().__init__(name, known or capabilities("builtin", ""))
        if name != NAME:
            raise ConfigError(f"the built-in model does not take options; use {NAME!r} instead of {name!r}")

    def load(self) -> "Loaded":
        """Load the model from the package.

        Raises:
            ConfigError: the files are missing or broken.
        """
        return load()

    def stream(self, request: Request) -> Generator[Chunk]:
        """Answer in chunks, the last one `StreamEnd`; any request that the model was not trained on gets a refusal.

        Raises:
            ConfigError: the model cannot be loaded.
            NoValidTokenError: the constraint allows no token.
            InputError: the constraint is invalid, or the prefix does not match it.
            ModelError: `UnsupportedError` for a value or probabilities that the model was not trained to give.
        """
        request = fit_attachments(request, self.name, fixed=True)
        if request.task == "clarify_question":  # the program words its questions better than a model this small
            yield TextDelta("{}")
            yield StreamEnd("stop", None, Usage(), self.name)
        elif (prompt := read_request(request)) is None:
            yield TextDelta(refusal_text(request))
            yield StreamEnd("stop", None, Usage(), self.name)
        else:
            text = [request.prefix]
            for chunk in self._checked(request, prompt):
                if isinstance(chunk, TextDelta):
                    text.append(chunk.text)
                is_last = isinstance(chunk, StreamEnd) and chunk.finish == "stop" and not chunk.stop
                yield self._with_confidence(chunk, prompt, "".join(text)) if is_last else chunk

    def _checked(self, request: Request, prompt: BuiltinPrompt) -> Iterator[Chunk]:
        """Yield the chunks of an answer; behind a first line with a wrong name or formula of a substance, the right one is continued."""
        chunks = super().stream(request)
        if prompt.task != "solve" or request.prefix or request.constraint is not None or request.top_logprobs:
            yield from chunks
            return
        read: list[Chunk] = []
        line = ""
        with closing(chunks):
            for chunk in chunks:
                read.append(chunk)
                line += chunk.text if isinstance(chunk, TextDelta) else ""
                if "\n" in line or line.startswith("<"):
                    break
            line = line.partition("\n")[0]
            checked = check_names(prompt.text, line)
            if checked == line:
                yield from read
                yield from chunks
            else:
                prefix = checked if UNKNOWN.fullmatch(checked) else f"{checked}\n"
                yield from self._continued(request, prefix, read, chunks)

    def _continued(self, request: Request, prefix: str, read: list[Chunk], chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Yield an answer that begins with a prefix; the one that was begun where the request ends before the prefix does."""
        written = len(self.generator().loaded.encode(prefix))
        most = request.sampling.max_tokens
        if any(stop in prefix for stop in request.stop) or (most is not None and most <= written):
            yield from read
            yield from chunks
            return
        yield TextDelta(prefix)
        left = request.sampling if most is None else replace(request.sampling, max_tokens=most - written)
        for chunk in super().stream(replace(request, prefix=prefix, sampling=left)):
            if isinstance(chunk, StreamEnd) and (used := chunk.usage) is not None:
                counted = replace(
                    used, input_tokens=used.input_tokens - written, output_tokens=used.output_tokens + written
                )
                yield replace(chunk, usage=counted)
            else:
                yield chunk

    def _with_confidence(self, end: Chunk, prompt: BuiltinPrompt, text: str) -> Chunk:
        if prompt.task != "solve" or not isinstance(end, StreamEnd):
            return end
        loaded = self.generator().loaded
        return replace(end, confidence=confidence(loaded.network, loaded.tokens, prompt.text, text))

    def completed(self, request: Request) -> Request:
        """Return a request as the network gets it: greedy by default, since sampling adds errors to a model this small."""
        request = super().completed(request)
        if request.sampling.temperature is not None:
            return request
        return replace(request, sampling=replace(request.sampling, temperature=0.0))


Row: TypeAlias = tuple[str, str]

SKILLS: tuple[Row, ...] = (
    ("quantities", "everyday word problems, worked out by the calculator: taiwa solve"),
    ("chemistry", "formulas, molar masses, percentages, equations, limiting reagents, by tools: taiwa solve"),
    ("orders", "a café's order desk with state, corrections and totals, in English and Japanese: taiwa chat order"),
    ("asking back", "five scores of a question to documents: taiwa ask"),
)
"""What the model was trained on, and the command that uses it."""


def read_card() -> dict[str, Any]:
    """Read the model card."""
    card: dict[str, Any] = json.loads((DATA / "card.json").read_text("utf-8"))
    return card


def card_rows(card: Mapping[str, Any]) -> Iterator[Row]:
    """Yield sizes, training, accuracy on held-out samples, evaluations and speeds, as far as the card has them."""
    if size := card.get("size"):
        yield "parameters", f"{size['parameters']:,} ({size['bytes'] / 1e6:.1f} MB)"
        yield "reads", f"{size['context']:,} tokens at most; {size['vocab']:,} different ones"
    if training := card.get("training"):
        yield "trained", f"on {training['tokens'] / 1e6:,.1f} million tokens in {training['minutes']:,.0f} minutes"
    for name, part in card.get("held_out", {}).items():
        if (whole := part["all"])["of"]:
            shown = f"{whole['share']:.1%} of {whole['of']:,} held-out samples{_interval(whole, '{:.1%}')}"
            yield f"exact: {name}", shown
    for row in card.get("headline", ()):
        if row["of"] and not row["what"].startswith("held-out"):  # those have rows of their own
            style = "{:.3f}" if row["unit"] == "AUC" else "{:.1%}"
            yield row["what"], f"{style.format(row['value'])} of {row['of']:,}{_interval(row, style)}"
    for row in card.get("speed", {}).get("rows", ()):
        if "tokens_a_second" in row:
            yield f"speed: {row['name']}", f"{row['tokens_a_second']:,.0f} tokens a second on one core"


def _interval(row: Mapping[str, Any], style: str) -> str:
    low, high = row["interval"]
    return f" ({style.format(low)} to {style.format(high)})"
