"""Our guides for people who run a GGUF file with `llama-cpp-python`: a `LogitsProcessor` of its documented interface.

    llm = llama_cpp.Llama("model.gguf")
    hook = LogitsHook(guide.compile(Order, vocabulary_of(llm)))
    llm.create_completion(prompt, logits_processor=llama_cpp.LogitsProcessorList([hook]))

That library is not imported here: what is needed of it comes with the objects that it is given. It holds one answer at a
time; make a new one for the next.
"""

from typing import TYPE_CHECKING, Protocol

from taiwa.constraints.guide import Coverage, Guide, GuideState, empty_mask
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Llama", "LogitsHook", "vocabulary_of"]


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
