"""A rationale: what a model said on its way to an answer, what it called, what was put in, and how it ended."""

from typing import Literal, TypeAlias

from taiwa.kernel.records import Json, value
from taiwa.kernel.values import ToolResult

__all__ = ["AnsweredBy", "Bounds", "Called", "Ending", "OnTrouble", "Rationale", "Said", "Spliced", "Way"]

OnTrouble: TypeAlias = Literal["report", "let_model_answer", "stop"]
"""What follows a failed call: the model reads the error · the model writes the result · the rationale ends."""
Way: TypeAlias = Literal["prefill", "stop", "native"]
"""How tool results are returned to the model: its own text continues behind them · its text is stopped and it is asked to
continue · they answer a function call."""
Ending: TypeAlias = Literal[
    "end", "calls", "repeat", "tool", "stops", "tokens", "limit", "length", "interrupted", "refusal"
]
"""Why a rationale ended: by itself · no call was left · the same call too often · a tool's trouble · too many false stops ·
its bound on tokens · a limit of the run · as the model's finish says."""
AnsweredBy: TypeAlias = Literal["typed", "line", "prompt", "none"]
"""Where the answer comes from: a typed answer · the last line · a second question about it · nowhere."""


@value(tag="call-bounds")
class Bounds:
    """What one rationale may use.

    The same call is done once and answered from memory until it was asked for `repeats` times; once more is the end. False
    stops are those at a mark that closes no call. Seconds and cost are limits of the run.
    """

    calls: int = 10
    tokens: int | None = 2_000
    repeats: int = 3
    false_stops: int = 20


@value(tag="text-part")
class Said:
    """What the model wrote."""

    text: str


@value(tag="inserted-text")
class Spliced:
    """What the program put into the text: a result, the mark at which a server had stopped, a native call as text, or a cue."""

    text: str
    kind: Literal["result", "stop", "call", "cue"] = "result"


@value(tag="executed-call")
class Called:
    """One call, with its input as the model wrote it.

    The result is whole, however little of it was put into the text (`shown`). One of `origin` "memo" had been given before;
    one of `origin` "model" was left to the model, and its text is what the model wrote in its place. `fault` is for a
    person: what went wrong, in full. `discarded` is what the model had written behind the call before it was interrupted.
    """

    name: str
    input: str
    result: ToolResult
    shown: str = ""
    fault: str = ""
    discarded: str = ""


@value(tag="rationale")
class Rationale:
    """A train of thought with its calls, and the answer that was read from it ('' where there is none).

    `value` is the answer as JSON where a type was asked for.
    """

    parts: tuple[Said | Spliced, ...] = ()
    calls: tuple[Called, ...] = ()
    ending: Ending = "end"
    way: Way = "prefill"
    answer: str = ""
    answered_by: AnsweredBy = "none"
    value: Json = None

    @property
    def text(self) -> str:
        """The transcript; in the native way, as it would have been written in the text."""
        return "".join(part.text for part in self.parts)

    @property
    def complete(self) -> bool:
        """Whether the model came to its end by itself; nothing else may count as a right answer."""
        return self.ending == "end"
