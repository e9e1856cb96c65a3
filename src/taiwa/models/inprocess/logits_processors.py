"""Guides as logits processors for `generate()` of transformers and for llama-cpp-python."""

from typing import TYPE_CHECKING, Any

from taiwa.constraints.guide import Coverage, Guide, GuideState, empty_mask
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.models.inprocess.transformers_model import torch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from taiwa.constraints.guide import Mask


def _allowed(state: GuideState, mask: "Mask") -> "NDArray[np.bool_]":
    """Write a mask and return whether each token is allowed."""
    import numpy as np

    state.mask(mask)
    return np.unpackbits(mask.view(np.uint8), bitorder="little").view(np.bool_)


class GuideLogitsProcessor:
    """A logits processor for `generate()` of transformers, for one or more texts of a batch.

    A text begins after the input of the first call. Use a new processor for each `generate()`. Beam search is not supported,
    because it returns to places where other tokens were taken.
    """

    def __init__(self, guide: Guide) -> None:
        self._guide = guide
        self._states: list[GuideState] = []
        self._length = 0
        self._mask = empty_mask(len(guide.vocabulary))

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ANN401  (torch's tensors, (B, T) and (B, V))
        """Set the scores of tokens that are not allowed to minus infinity.

        Raises:
            NoValidTokenError: the guide allows no token.
            InputError: a token was taken that the guide does not allow.
        """
        import numpy as np

        library = torch()
        if not self._states:
            self._states = [self._guide.start() for _ in range(len(input_ids))]
        else:
            for number, tokens in enumerate(input_ids[:, self._length :].tolist()):
                for token in tokens:
                    if not self._states[number].is_ended:  # after its end a text is padded
                        self._states[number] = self._states[number].advance(token)
        self._length = input_ids.shape[1]
        forbidden = np.ones(scores.shape, dtype=bool)
        for number, state in enumerate(self._states):
            if state.is_ended:
                forbidden[number] = False
                continue
            allowed = _allowed(state, self._mask)[: scores.shape[1]]
            if not allowed.any():
                raise NoValidTokenError("the constraint allows no token")
            np.logical_not(allowed, out=forbidden[number, : len(allowed)])
        return scores.masked_fill(library.from_numpy(forbidden).to(scores.device), float("-inf"))


def llama_cpp_vocabulary(llama: Any) -> Vocabulary:  # noqa: ANN401  (a `llama_cpp.Llama`)
    """Return the vocabulary of a model that llama-cpp-python has loaded, with its own tokenizer."""
    plain = [llama.detokenize([token]) for token in range(llama.n_vocab())]
    names = [text or llama.detokenize([token], special=True) for token, text in enumerate(plain)]
    special = [token for token, text in enumerate(plain) if not text and names[token]]

    def encode(text: str) -> list[int]:
        return list(llama.tokenize(text.encode(), add_bos=False))

    return Vocabulary(names, llama.token_eos(), special, encode=encode)


class LlamaCppLogitsProcessor:
    """A logits processor for llama-cpp-python: follows one answer and masks its logits (V,)."""

    def __init__(self, guide: Guide) -> None:
        self.guide = guide
        self.state: GuideState = guide.start()
        self._prompt: int | None = None

    @property
    def coverage(self) -> Coverage:
        """The part of the constraint that is enforced; validate the rest."""
        return self.guide.coverage

    def __call__(self, input_ids: "NDArray[np.intc]", scores: "NDArray[np.single]") -> "NDArray[np.single]":
        """Mask the logits of the next token; `input_ids` of the first call are the prompt.

        Raises:
            InputError: the answer does not continue the one of the last call.
        """
        import numpy as np

        if self._prompt is None:
            self._prompt = len(input_ids)
        answer = tuple(int(token) for token in input_ids[self._prompt :])
        if answer[: len(self.state.tokens)] != self.state.tokens:
            raise InputError("a logits processor serves one answer; make a new one for the next")
        for token in answer[len(self.state.tokens) :]:
            self.state = self.state.advance(token)
        count = len(self.guide.vocabulary)
        allowed = _allowed(self.state, empty_mask(count))[:count]
        masked = np.full_like(scores, -np.inf)
        np.copyto(masked[:count], scores[:count], where=allowed)
        return masked
