"""From the files that come along to a model that can be asked, and from a request to its tokens and guides."""

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from taiwa import constraints
from taiwa.constraints.guide import Guide
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.values import Regex, Request
from taiwa.models.builtin.copying import copying
from taiwa.models.builtin.figures import written
from taiwa.models.builtin.network import Network
from taiwa.models.builtin.reading import read
from taiwa.models.builtin.reading.asking import TOLD
from taiwa.models.builtin.reading.told import ANSWER, Told, unsupported
from taiwa.models.builtin.tokens import Tokens, tokens
from taiwa.models.builtin.weights import loaded
from taiwa.models.decoding.scribe import Posed
from taiwa.models.decoding.source import Source
from taiwa.models.decoding.splicing import Divide

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

__all__ = ["DATA", "Loaded", "load"]

DATA: "Traversable" = files("taiwa.models.builtin") / "data"
ROOM = 320
"""So many tokens are left for an answer: of a prompt that is longer, the end is read, and of an order the beginning."""
MOST = {"solve": 512, "desk": 512, "back": 200, "rewrite": 160, "number": 24, "assess": 1}
"""So many tokens an answer has at most: what goes on for longer goes round in circles."""
LABEL = Regex("[1-5]")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The model in memory; see `taiwa.models.decoding.scribe.Loaded`."""

    network: Source
    tokens: Tokens

    @property
    def divider(self) -> Divide:
        """How a text becomes tokens."""
        return self.tokens.encode

    def posed(self, request: Request) -> Posed:
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
        return Posed(tokens, tuple(self._guides(told, request.prefix)), MOST[told.task])

    def _guides(self, told: Told, begun: str) -> list[Guide]:
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
