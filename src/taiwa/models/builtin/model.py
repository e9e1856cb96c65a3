"""The built-in model: loading, answering, and its model card."""

import json
import math
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from taiwa import constraints
from taiwa.constraints.guide import Guide, GuideState, intersection
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.messages import Chunk, Regex, Request, StreamEnd, TextDelta, Usage
from taiwa.models.builtin.confidence import confidence
from taiwa.models.builtin.copy_constraint import CopyGuide, find_digits
from taiwa.models.builtin.line_check import (
    CALL_END,
    CALL_START,
    check_step,
    is_checkable,
    is_last_line,
    is_step_doubtful,
    next_step,
    readings,
    steps_of,
)
from taiwa.models.builtin.network import Network, load_weights
from taiwa.models.builtin.order_app import DELTA_LINE, Order
from taiwa.models.builtin.order_edits import choose_reply, meant_replies, settle
from taiwa.models.builtin.order_reply import (
    HARD,
    Changes,
    after_sum,
    ask_back,
    likeliest_changes,
    opens_sum,
    read_reply,
    sum_of,
    weigh,
    write_delta,
)
from taiwa.models.builtin.prompts import ANSWER, OUTPUTS, BuiltinPrompt, read_request, refusal_text, unsupported
from taiwa.models.builtin.tokenizer import Tokens, builtin_tokens
from taiwa.models.http_api.capabilities import Capabilities, capabilities, fit_attachments
from taiwa.models.inprocess.generator import Encode, InProcessModel, PreparedRequest

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

DATA: "Traversable" = files("taiwa.models.builtin") / "data"

RESERVED_TOKENS = 320
"""Tokens of the context that are reserved for the answer. A longer prompt is cut to its end, an order to its beginning."""
MAX_TOKENS = {"solve": 512, "desk": 512, "number": 24, "assess": 1}
"""Maximum tokens of an answer by task: a longer answer only repeats itself."""
LABEL = Regex("[1-5]")
UNSURE = (0.01, 0.9)
"""The range of confidence in which rejected readings are searched."""
LEAST_LEFT = 0.02


@dataclass(frozen=True, slots=True)
class Loaded:
    """The model in memory; see `taiwa.models.inprocess.generator.LoadedModel`."""

    network: Network
    tokens: Tokens

    @property
    def encode(self) -> Encode:
        """Tokenize a text."""
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
        guides = tuple(self._guides(prompt, request.prefix))
        return PreparedRequest(tokens, guides, MAX_TOKENS[prompt.task], reuse=prompt.task != "assess")

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
        if request.task == "clarify_question":  # the program words its questions better than a model of this size
            yield TextDelta("{}")
            yield StreamEnd("stop", None, Usage(), self.name)
        elif (prompt := read_request(request)) is None:
            yield TextDelta(refusal_text(request))
            yield StreamEnd("stop", None, Usage(), self.name)
        elif prompt.order is not None and _is_plain(request):
            yield from self._order_turn(request, prompt, prompt.order)
        else:
            text = [request.prefix]
            for chunk in self._checked(request, prompt):
                if isinstance(chunk, TextDelta):
                    text.append(chunk.text)
                is_last = isinstance(chunk, StreamEnd) and chunk.finish == "stop" and not chunk.stop
                yield self._with_confidence(request, chunk, prompt, "".join(text)) if is_last else chunk

    def _order_turn(self, request: Request, prompt: BuiltinPrompt, order: Order) -> Iterator[Chunk]:
        """Yield the reply to a guest and its delta: those that the rules derive if they can read the guest's text.

        A call of the calculator gets the total of the order; a reply that contradicts the order becomes a clarifying question.
        """
        rest = after_sum(order, request.prefix)
        if rest is None:
            text, end = self._whole(replace(request, stop=(*request.stop, DELTA_LINE)))
        else:
            text, end = (
                rest,
                StreamEnd("stop", DELTA_LINE, Usage(len(self.generator().loaded.prepare(request).tokens)), self.name),
            )
        said = prompt.text.rpartition(">")[2].strip()
        if end.finish == "length" and request.sampling.max_tokens is None and not request.prefix:  # it would not end
            text, end = ask_back(order, said), replace(end, finish="stop", stop=DELTA_LINE)
        if end.finish != "stop" or (request.prefix and end.stop != DELTA_LINE):
            yield from (TextDelta(text), end)
            return
        head = request.prefix + text
        meant = meant_replies(order, said, prompt.before)
        if not request.prefix:
            head, call, _ = text.partition(CALL_START)
            if call and not opens_sum(head):
                yield from (TextDelta(text), end)
                return
            loaded = self.generator().loaded
            asked = loaded.network, loaded.tokens, loaded.prepare(request).tokens
            head = head if call else settle(order, said, head)
            faults = weigh(order, said, head)
            chosen = choose_reply(*asked, head, faults, {reply: cost for reply, (cost, _) in meant.items()})
            head = ask_back(order, said) if chosen == head and faults >= HARD and head not in meant else chosen
        nothing: Changes = {}
        reply = head.partition(CALL_START)[0]
        changes = meant[reply][1] if reply in meant else likeliest_changes(order, said, head)
        if not request.prefix and (changes is None or (opens_sum(head) and not sum_of(order, changes))):
            head, changes = ask_back(order, said), nothing
        changes = changes or nothing
        text = head.removeprefix(request.prefix)
        if not request.prefix and opens_sum(head):
            text = f"{head}{CALL_START}calculator: {sum_of(order, changes)}"
            if CALL_END in request.stop:
                yield from (TextDelta(text), replace(end, stop=CALL_END, usage=self._usage(end, text)))
                return
            yield TextDelta(f"{text}{CALL_END}")
            text, end = self._whole(replace(request, prefix=f"{text}{CALL_END}", stop=(*request.stop, DELTA_LINE)))
        text += DELTA_LINE + write_delta(order, read_reply(head), changes)
        yield from (TextDelta(text), replace(end, stop=None, usage=self._usage(end, text)))

    def _whole(self, request: Request) -> tuple[str, StreamEnd]:
        """Return the text of an answer, and its end chunk."""
        *chunks, end = super().stream(request)
        assert isinstance(end, StreamEnd), "a stream ends with its end"
        return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)), end

    def _usage(self, end: StreamEnd, text: str) -> Usage:
        return replace(end.usage or Usage(), output_tokens=self._size(text))

    def _checked(self, request: Request, prompt: BuiltinPrompt) -> Iterator[Chunk]:
        """Yield the chunks of an answer. If a check changes a line of a solution, generation continues after the changed line."""
        is_free = request.constraint is None and not request.top_logprobs
        if prompt.task != "solve" or not is_free or not is_checkable(prompt.text):
            yield from super().stream(request)
            return
        left: Request | None = request
        while left is not None:
            left = yield from self._up_to_change(left, request, prompt.text)

    def _up_to_change(self, request: Request, first: Request, question: str) -> Generator[Chunk, None, Request | None]:
        """Yield the chunks of a solution up to a line that a check changes, and the changed line; return the request that
        continues it.

        `request` continues `first` after the lines that were changed before.
        """
        text, at = request.prefix, len(request.prefix)
        with closing(super().stream(request)) as chunks:
            for chunk in chunks:
                text += chunk.text if isinstance(chunk, TextDelta) else ""
                end = chunk if isinstance(chunk, StreamEnd) else None
                whole = text + ((end and end.stop) or "")
                shown = at
                while (piece := next_step(whole, at, is_ended=end is not None)) is not None:
                    checked = self._check(first, question, whole[:at], piece.text) if piece.is_line else piece.text
                    if checked != piece.text and self._may_follow(first, whole[:at] + checked):
                        yield from _text(text[shown:at])
                        return (yield from self._changed(first, whole[:at], checked))
                    at += len(piece.text)
                yield from _text(text[shown:at])
                if end is not None:
                    yield self._counted(end, first, request)
        return None

    def _check(self, request: Request, question: str, before: str, step: str) -> str:
        """Return a step after the checks; if it cannot be right, the first alternative reading that can."""
        checked = check_step(question, before, step)
        if not is_step_doubtful(question, before, checked) or request.sampling.temperature:
            return checked
        for other in islice(self._readings(request, before), 1, None):
            other_checked = check_step(question, before, other)
            if not is_step_doubtful(question, before, other_checked):
                return other_checked
        return checked

    def _readings(self, request: Request, before: str) -> Iterator[str]:
        """Yield the readings of the step after a text, most likely first."""
        loaded = self.generator().loaded
        prepared = loaded.prepare(request)
        written = loaded.encode(before)
        state = _state_behind(prepared, written)
        return readings(loaded.network, loaded.tokens, (*prepared.tokens, *written), state, before)

    def _left(self, request: Request, question: str, text: str) -> float:
        """Return the remaining probability after excluding likelier readings of steps that cannot be right."""
        loaded, left = self.generator().loaded, 1.0
        for at, step in steps_of(text):
            if not at and CALL_START not in step:
                continue
            for other in self._readings(request, text[:at]):
                if other.startswith(step) or not is_step_doubtful(question, text[:at], other):
                    break
                known = (*loaded.prepare(request).tokens, *loaded.encode(text[:at]))
                left -= math.exp(math.fsum(loaded.network.log_probabilities(known, loaded.encode(other))))
        return max(left, LEAST_LEFT)

    def _may_follow(self, first: Request, text: str) -> bool:
        """Return true if the guides allow the answer to begin with a text, and the answer may be longer than the model's own part
        of it.
        """
        most = first.sampling.max_tokens
        if most is not None and most <= self._size(text[len(first.prefix) :]):
            return False
        loaded = self.generator().loaded
        try:
            _state_behind(loaded.prepare(first), loaded.encode(text))
        except InputError:
            return False
        return True

    def _changed(self, first: Request, before: str, line: str) -> Generator[Chunk, None, Request | None]:
        """Yield a line; return the request that continues it, or None if a stop string ends the answer in it."""
        line += "" if before or line.endswith(CALL_END) or is_last_line(line) else "\n"
        ends = [(line.find(stop) + len(stop), -len(stop), stop) for stop in first.stop if stop and stop in line]
        if ends:
            end, size, stop = min(ends)
            yield from _text(line[: end + size])
            read = len(self.generator().loaded.prepare(first).tokens) + self._size(first.prefix)
            yield StreamEnd("stop", stop, Usage(read, self._size(before[len(first.prefix) :] + line)), self.name)
            return None
        yield from _text(line)
        prefix, most = before + line, first.sampling.max_tokens
        left = None if most is None else most - self._size(prefix[len(first.prefix) :])
        return replace(first, prefix=prefix, sampling=replace(first.sampling, max_tokens=left))

    def _counted(self, end: StreamEnd, first: Request, request: Request) -> StreamEnd:
        """Return an end chunk whose usage includes the text written before the last request."""
        written, used = self._size(request.prefix[len(first.prefix) :]), end.usage
        if used is None or not written:
            return end
        return replace(
            end,
            usage=replace(used, input_tokens=used.input_tokens - written, output_tokens=used.output_tokens + written),
        )

    def _size(self, text: str) -> int:
        return len(self.generator().loaded.encode(text))

    def _with_confidence(self, request: Request, end: Chunk, prompt: BuiltinPrompt, text: str) -> Chunk:
        if prompt.task != "solve" or not isinstance(end, StreamEnd):
            return end
        loaded = self.generator().loaded
        found = confidence(loaded.network, loaded.tokens, prompt.text, text)
        if UNSURE[0] < found < UNSURE[1]:
            found = min(found / self._left(replace(request, prefix=""), prompt.text, text), 1.0)
        return replace(end, confidence=found)

    def completed(self, request: Request) -> Request:
        """Return the request for the network: greedy by default, since sampling adds errors in such a small model."""
        request = super().completed(request)
        if request.sampling.temperature is not None:
            return request
        return replace(request, sampling=replace(request.sampling, temperature=0.0))


def _state_behind(prepared: PreparedRequest, written: Iterable[int]) -> GuideState:
    """Return the state of the guides of a request behind these tokens of its answer.

    Raises:
        InputError: the guides do not allow them.
    """
    state = intersection(*prepared.guides).start()
    for token in written:
        state = state.advance(token)
    return state


def _text(text: str) -> Iterator[Chunk]:
    if text:
        yield TextDelta(text)


def _is_plain(request: Request) -> bool:
    """Return true if a request asks for the complete text of an answer: it may stop only at a tool call."""
    has_limit = request.sampling.max_tokens is not None or not {*request.stop} <= {CALL_END}
    return request.constraint is None and not request.top_logprobs and not has_limit


Row: TypeAlias = tuple[str, str]

SKILLS: tuple[Row, ...] = (
    ("quantities", "everyday word problems, worked out by the calculator: taiwa solve"),
    ("chemistry", "formulas, molar masses, percentages, equations, limiting reagents, by tools: taiwa solve"),
    ("orders", "a café's order desk with state, corrections and totals, in English and Japanese: taiwa chat order"),
    ("clarification", "five scores of a question about documents: taiwa ask"),
)
"""The trained tasks of the model, and the commands that use them."""


def read_card() -> dict[str, Any]:
    """Read the model card."""
    card: dict[str, Any] = json.loads((DATA / "card.json").read_text("utf-8"))
    return card


def card_rows(card: Mapping[str, Any]) -> Iterator[Row]:
    """Yield dimensions, training, accuracy on held-out samples, evaluations and speeds, as far as the card has them."""
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
        if row["of"] and not row["what"].startswith("held-out"):  # these have separate rows
            style = "{:.3f}" if row["unit"] == "AUC" else "{:.1%}"
            yield row["what"], f"{style.format(row['value'])} of {row['of']:,}{_interval(row, style)}"
    for row in card.get("speed", {}).get("rows", ()):
        if "tokens_a_second" in row:
            yield f"speed: {row['name']}", f"{row['tokens_a_second']:,.0f} tokens a second on one core"


def _interval(row: Mapping[str, Any], style: str) -> str:
    low, high = row["interval"]
    return f" ({style.format(low)} to {style.format(high)})"
