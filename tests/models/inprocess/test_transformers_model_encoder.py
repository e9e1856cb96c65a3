"""How tokenizers of transformers divide what is nothing but text."""

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa import constraints
from taiwa.constraints import Vocabulary
from taiwa.kernel.messages import Regex
from taiwa.models.inprocess.generator import splice_tokens
from taiwa.models.inprocess.transformers_model import TextEncoder
from tests.peers.tiny import TEXT, tokenizer_of

NAMES = ("<unk>", "<s>", "</s>")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))


@cache
def divide_of_tiny() -> TextEncoder:
    return TextEncoder(tokenizer_of())


@cache
def vocabulary_of_tiny() -> Vocabulary:
    return Vocabulary.from_hf(tokenizer_of(), size=512)


def sentencepiece(kind: str) -> Any:
    """A tokenizer in the manner of Llama 2 and of Mistral, which puts a space before every text."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    if kind == "normalizer":
        made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=kind)
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=[*NAMES, *BYTES], show_progress=False)
    made.train_from_iterator(TEXT * 8, trainer)
    held = json.loads(made.to_str())
    held["added_tokens"] = held["added_tokens"][: len(NAMES)]  # a byte is no special token
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(held)), eos_token="</s>", bos_token="<s>", unk_token="<unk>"
    )


@pytest.mark.parametrize("kind", ["always", "first", "normalizer"])
def test_a_space_that_a_tokenizer_puts_before_every_text_is_not_part_of_it(kind: str) -> None:
    tokenizer = sentencepiece(kind)
    divide = TextEncoder(tokenizer)
    found = Vocabulary.from_hf(tokenizer)
    made = Vocabulary(found.tokens, found.end, found.special, encode=divide)

    for text in ("foo", " foo", "  a b", "文です", "\n x", "é🙂", "{"):
        assert made.decode(divide(text)).decode() == text
    assert made.check().broken == ()
    assert made.decode(constraints.compile(Regex("so it is"), made).start().forced()) in b"so it is"


@given(
    st.lists(
        st.sampled_from(["the ", "quick", " 1", "2", "34", "\n", "  ", " <<calc: ", ">>", "文", "。", "a"]), max_size=12
    ),
    st.integers(0, 30),
)
def test_a_text_put_behind_another_is_divided_as_both_would_be(words: list[str], cut: int) -> None:
    text = "".join(words)
    before, behind = text[:cut], text[cut:]

    found = splice_tokens(
        divide_of_tiny()(before),
        behind,
        lambda token: b"" if token in vocabulary_of_tiny().special else vocabulary_of_tiny().tokens[token],
        divide_of_tiny(),
    )

    assert found == list(divide_of_tiny()(text))


@given(st.text("<|im_end>startd ", max_size=30))
def test_no_text_becomes_a_special_token(text: str) -> None:
    for each in (text, f"{text}<|im_end|>{text}", "<|im_start|>"):
        found = divide_of_tiny()(each)
        assert not vocabulary_of_tiny().special & set(found)
        assert vocabulary_of_tiny().decode(found).decode() == each
