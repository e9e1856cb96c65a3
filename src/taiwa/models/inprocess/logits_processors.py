"""Guides for `generate()` of transformers and for llama-cpp-python."""

from typing import TYPE_CHECKING, Any, Protocol

from taiwa.constraints.guide import Coverage, Guide, GuideState, empty_mask
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.models.inprocess.transformers_network import torch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["GuideMask", "LogitsHook", "vocabulary_of"]


class GuideMask:
    """A logits processor that lets through what a guide allows, for one or more texts that `generate()` writes together.

    The text begins where `generate()` begins to write: at the length of the first input that comes. Use a new one for each
    call. Beams are not followed: they go back to places where other tokens were taken.
    """

    def __init__(self, guide: Guide) -> None:
        self._guide = guide
        self._states: list[GuideState] = []
        self._length = 0
        self._mask = empty_mask(len(guide.vocabulary))

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ANN401  (torch's tensors, (B, T) and (B, V))
        """The scores with minus infinity for what may not come.

        Raises:
            DeadEndError: the guide lets nothing through.
            InputError: a token was taken that may not come.
        """
        import numpy as np

        library = torch()
        if not self._states:
            self._states = [self._guide.start() for _ in range(len(input_ids))]
        else:
            for number, tokens in enumerate(input_ids[:, self._length :].tolist()):
                for token in tokens:
                    if not self._states[number].is_ended:  # behind its end a text is filled up
                        self._states[number] = self._states[number].advance(token)
        self._length = input_ids.shape[1]
        closed = np.ones(scores.shape, dtype=bool)
        for number, state in enumerate(self._states):
            if state.is_ended:
                closed[number] = False
                continue
            state.mask(self._mask)
            if not self._mask.any():
                raise NoValidTokenError("the constraint leaves no token")
            opened = np.unpackbits(self._mask.view(np.uint8), bitorder="little")[: scores.shape[1]]
            np.equal(opened, 0, out=closed[number, : len(opened)])
        return scores.masked_fill(library.from_numpy(closed).to(scores.device), float("-inf"))


class Llama(Protocol):
    """What is used of `llama_cpp.Llama`."""

    def n_vocab(self) -> int:
        """How many tokens there are."""
        ...

    def token_eos(self) -> int:
        """The token that ends a text."""
        ...

    def detokenize(self, tokens: list[int], prev_tokens: list[int] | None = None, special: bool = False) -> bytes:
        """The bytes of some tokens; of special ones none, unless `special` is set."""
        ...

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        """The tokens of a text."""
        ...


def vocabulary_of(llama: Llama) -> Vocabulary:
    """The vocabulary of a loaded model, token by token, with its own way to divide a text."""
    count, end = llama.n_vocab(), llama.token_eos()
    written = [llama.detokenize([token]) for token in range(count)]
    named = [text or llama.detokenize([token], special=True) for token, text in enumerate(written)]
    special = [token for token, text in enumerate(written) if not text and named[token]]

    def encode(text: str) -> list[int]:
        return llama.tokenize(text.encode(), add_bos=False)

    return Vocabulary(named, end, special, encode=encode)


class LogitsHook:
    """Follows an answer under a guide, and takes from the logits (V,) every token that may not come next."""

    def __init__(self, guide: Guide) -> None:
        self.guide = guide
        self.state: GuideState = guide.start()
        self._prompt: int | None = None

    @property
    def coverage(self) -> Coverage:
        """What of the constraint is enforced; the rest must be checked."""
        return self.guide.coverage

    def __call__(self, input_ids: "NDArray[np.intc]", scores: "NDArray[np.single]") -> "NDArray[np.single]":
        """Mask the logits of the next token; what stands in `input_ids` at the first call is the prompt.

        Raises:
            InputError: the answer is not the one that was followed until now.
        """
        import numpy as np

        if self._prompt is None:
            self._prompt = len(input_ids)
        said = tuple(int(token) for token in input_ids[self._prompt :])
        if said[: len(self.state.tokens)] != self.state.tokens:
            raise InputError("a hook holds one answer: make a new one for the next")
        for token in said[len(self.state.tokens) :]:
            self.state = self.state.advance(token)
        count = len(self.guide.vocabulary)
        mask = empty_mask(count)
        self.state.mask(mask)
        allowed = np.unpackbits(mask.view(np.uint8), count=count, bitorder="little").astype(bool)
        held = np.full_like(scores, -np.inf)
        np.copyto(held[:count], scores[:count], where=allowed)
        return held
