"""The hook for `llama-cpp-python`, with a fake of its documented interface: that library takes long to build, and is no part
of the tests.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from taiwa.constraints import Vocabulary, compile
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import JsonSchema, Regex
from taiwa.models.inprocess.logits_processors import LlamaCppLogitsProcessor, llama_cpp_vocabulary

WORDS = (b"<s>", b"</s>", b"", *(bytes((byte,)) for byte in range(256)), "文".encode(), b"true")
END = 1


class FakeLlama:
    """`n_vocab`, `token_eos`, `detokenize` and `tokenize` as `llama_cpp.Llama` has them; it prefers what comes last."""

    def n_vocab(self) -> int:
        return len(WORDS)

    def token_eos(self) -> int:
        return END

    def detokenize(self, tokens: list[int], prev_tokens: list[int] | None = None, special: bool = False) -> bytes:
        return b"".join(WORDS[token] for token in tokens if special or token > END)

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        return [*([0] if add_bos else []), *(WORDS.index(bytes((byte,))) for byte in text)]

    def generate(self, prompt: str, processors: list[LlamaCppLogitsProcessor], most: int = 40) -> str:
        """As `create_completion` does with a `LogitsProcessorList`, greedily."""
        tokens = self.tokenize(prompt.encode())
        begun = len(tokens)
        for _ in range(most):
            # Three more rows than tokens: some files pad their output head.
            logits: NDArray[np.single] = np.arange(len(WORDS) + 3, dtype=np.single)
            for processor in processors:
                logits = processor(np.array(tokens, dtype=np.intc), logits)
            token = int(logits.argmax())
            if token == END:
                break
            tokens.append(token)
        return self.detokenize(tokens[begun:]).decode()


@pytest.fixture
def llama() -> FakeLlama:
    return FakeLlama()


def test_the_vocabulary_knows_special_tokens_and_gaps(llama: FakeLlama) -> None:
    vocabulary = llama_cpp_vocabulary(llama)

    assert vocabulary.tokens == WORDS
    assert vocabulary.special == {0, 1}
    assert vocabulary.end == (END,)
    assert vocabulary.encode("ab") == (WORDS.index(b"a"), WORDS.index(b"b"))


def test_an_answer_is_held_to_its_guide(llama: FakeLlama) -> None:
    guide = compile(JsonSchema({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2}), llama_cpp_vocabulary(llama), whitespace="compact")  # fmt: skip

    assert llama.generate("Say: ", [LlamaCppLogitsProcessor(guide)]) == "[true,true]"


def test_tokens_of_several_bytes_are_held_as_well(llama: FakeLlama) -> None:
    guide = compile(Regex("文{2}"), llama_cpp_vocabulary(llama))

    assert llama.generate("", [LlamaCppLogitsProcessor(guide)]) == "文文"


def test_a_hook_tells_what_it_does_not_hold_and_serves_one_answer(llama: FakeLlama) -> None:
    hook = LlamaCppLogitsProcessor(compile(Regex("[ab]{3}"), llama_cpp_vocabulary(llama)))
    assert hook.coverage.whole
    llama.generate("one", [hook])

    with pytest.raises(InputError, match="make a new one"):
        llama.generate("another prompt, and longer", [hook])


def test_padding_of_the_output_head_can_never_come(llama: FakeLlama) -> None:
    hook = LlamaCppLogitsProcessor(compile(Regex("a"), llama_cpp_vocabulary(llama)))
    logits = np.zeros(len(WORDS) + 3, dtype=np.single)

    held = hook(np.array([0], dtype=np.intc), logits)

    assert np.isneginf(held[len(WORDS) :]).all()
    assert np.flatnonzero(~np.isneginf(held)).tolist() == [WORDS.index(b"a")]
    assert Vocabulary.of_bytes() != hook.guide.vocabulary
