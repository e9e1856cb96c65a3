import base64
import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa import constraints
from taiwa.constraints import Vocabulary
from taiwa.constraints.vocabulary import PROBES, split_text
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Regex

BYTES = Vocabulary.of_bytes()
RANKS = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"abc": 257, b" a": 258}


@given(st.text())
def test_bytes_write_every_text(text: str) -> None:
    assert BYTES.decode(BYTES.encode(text)) == text.encode()
    assert BYTES.spells(text.encode())


def test_the_bytes_have_no_fault() -> None:
    assert BYTES.check().faults == ()


def test_a_special_token_writes_nothing_and_is_shown_by_its_name() -> None:
    vocabulary = Vocabulary((b"a", b"<end>"), 1)

    assert vocabulary.decode((0, 1, 0)) == b"aa"
    assert [vocabulary.show(token) for token in (0, 1)] == ["'a'", "<end>"]


@pytest.mark.parametrize("end", [2, -1])
def test_an_end_that_is_no_token_is_refused(end: int) -> None:
    with pytest.raises(InputError, match="end token"):
        Vocabulary((b"a", b"b"), end)


def test_a_vocabulary_without_an_end_is_refused() -> None:
    with pytest.raises(InputError, match="needs a token that ends"):
        Vocabulary((b"a",), ())


def test_equal_tokens_are_an_equal_vocabulary() -> None:
    assert Vocabulary((b"a", b"<end>"), 1) == Vocabulary([b"a", b"<end>"], [1], name="other")
    assert Vocabulary((b"ab", b"c", b"<end>"), 2) != Vocabulary((b"a", b"bc", b"<end>"), 2)
    assert Vocabulary((b"a", b"b", b"<end>"), 2) != Vocabulary((b"a", b"b", b"<end>"), 2, special=(1,))


def test_where_the_tokenizer_is_not_known_the_longest_token_is_taken() -> None:
    vocabulary = Vocabulary((b"a", b"ab", b"b", b"<end>"), 3)

    assert vocabulary.encode("abab") == (1, 1)
    assert not vocabulary.is_canonical
    with pytest.raises(InputError, match="no token writes byte 1"):
        vocabulary.encode("ac")


def test_a_word_is_spelled_by_any_sequence_of_tokens() -> None:
    vocabulary = Vocabulary((b"aa", b"aaa", b"<end>"), 2)

    assert [size for size in range(8) if vocabulary.spells(b"a" * size)] == [0, 2, 3, 4, 5, 6, 7]


def test_what_cannot_be_written_is_found() -> None:
    tokens = [token for token in BYTES.tokens[:256] if token not in (b" ", b"{")]
    found = Vocabulary((*tokens, b"", b"a", b"{}", b"<end>"), 257).check()

    assert found.missing == b" "
    assert "no token writes 1 of the bytes of UTF-8: ' '" in found.faults[0]


def test_a_tokenizer_that_loses_something_is_found() -> None:
    found = Vocabulary(BYTES.tokens, 256, encode=lambda text: tuple(text.replace(" ", "").encode())).check()

    assert set(found.broken) == {probe for probe in PROBES if " " in probe}
    assert "do not come back" in found.faults[0]


def tiktoken_file(folder: Path) -> Path:
    path = folder / "small.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(token) + f" {rank}\n".encode() for token, rank in RANKS.items()))
    return path


def test_a_tiktoken_file_is_read_with_its_own_division(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_tiktoken(tiktoken_file(tmp_path))

    assert (len(vocabulary), vocabulary.end, vocabulary.tokens[-1]) == (260, (259,), b"<|endoftext|>")
    assert vocabulary.encode("abc ab ac") == (257, 32, 256, 258, 99)
    assert vocabulary == Vocabulary.from_tiktoken(RANKS)
    assert vocabulary.check().faults == ()


def test_special_tokens_of_ranks_have_the_ids_that_are_given() -> None:
    vocabulary = Vocabulary.from_tiktoken(RANKS, special={"<end>": 300, "<user>": 301}, end="<end>")

    assert (len(vocabulary), vocabulary.end, vocabulary.tokens[301]) == (302, (300,), b"<user>")
    assert not any(vocabulary.tokens[259:300])
    with pytest.raises(InputError, match="no special token is called '<eos>'"):
        Vocabulary.from_tiktoken(RANKS, special={"<end>": 300}, end="<eos>")


def test_a_tekken_file_is_read(tmp_path: Path) -> None:
    vocab = [{"rank": rank, "token_bytes": base64.b64encode(token).decode()} for token, rank in RANKS.items()]
    config = {"pattern": r"\S+|\s+", "default_vocab_size": 269, "default_num_special_tokens": 10}
    path = tmp_path / "tekken.json"
    special = [{"rank": 3, "token_str": "[INST]", "is_control": True}]
    path.write_text(json.dumps({"config": config, "vocab": vocab, "special_tokens": special}), encoding="utf-8")

    vocabulary = Vocabulary.from_tekken(path)

    assert (len(vocabulary), vocabulary.end) == (269, (2,))
    assert [vocabulary.tokens[token] for token in (2, 3, 9)] == [b"</s>", b"[INST]", b"<SPECIAL_9>"]
    assert vocabulary.encode("abc") == (267,)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"config": 1, "vocab": []}', "not json"])
def test_what_is_no_vocabulary_is_refused_by_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text or "x y z", encoding="utf-8")

    with pytest.raises(InputError, match=r"wrong\.json is not a tekken file"):
        Vocabulary.from_tekken(path)
    with pytest.raises(InputError, match=r"wrong\.json is not a file of tiktoken ranks|has ids"):
        Vocabulary.from_tiktoken(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none\.json"):
        Vocabulary.from_tekken(tmp_path / "none.json")


def hub(model: dict[str, Any], decoder: dict[str, Any] | None, **more: Any) -> Any:
    """A tokenizer as far as it is looked at."""
    held = {"model": model, "decoder": decoder, "added_tokens": [{"id": 3, "content": "</s>", "special": True}]}
    backend = SimpleNamespace(to_str=lambda: json.dumps(held), encode=lambda text, **_: SimpleNamespace(ids=[0]))
    return SimpleNamespace(backend_tokenizer=backend, eos_token_id=3, **more)


def test_a_byte_level_tokenizer_is_read_through_its_alphabet() -> None:
    vocabulary = Vocabulary.from_hf(hub({"vocab": {"Ġa": 0, "æĹ": 1, "Ċ": 2}}, {"type": "ByteLevel"}))

    assert vocabulary.tokens == (b" a", "日".encode()[:2], b"\n", b"</s>")


def test_a_sentencepiece_tokenizer_is_read_through_its_marks() -> None:
    decoder = {"type": "Sequence", "decoders": [{"type": "Replace"}, {"type": "ByteFallback"}]}
    vocabulary = Vocabulary.from_hf(hub({"vocab": [["▁a", 0.0], ["<0x0A>", 0.0], ["日", 0.0]]}, decoder), size=6)

    assert vocabulary.tokens == (b" a", b"\n", "日".encode(), b"</s>", b"", b"")


def test_a_tokenizer_that_does_not_say_what_it_writes_is_refused() -> None:
    with pytest.raises(InputError, match="use a fast tokenizer"):
        Vocabulary.from_hf(object())
    with pytest.raises(InputError, match="WordPiece"):
        Vocabulary.from_hf(hub({"vocab": {"##a": 0}}, {"type": "WordPiece"}))
    nameless = hub({"vocab": {"a": 0}}, None)
    nameless.eos_token_id = None
    with pytest.raises(InputError, match="pass end="):
        Vocabulary.from_hf(nameless)


def test_a_real_tokenizer_of_the_hub_s_library_is_read() -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="comes with transformers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, special_tokens=["<end>"], show_progress=False
    )
    made.train_from_iterator(["a b ab abc 日本語の文"] * 50, trainer)

    vocabulary = Vocabulary.from_hf(made, end=made.token_to_id("<end>"))

    assert vocabulary.check().faults == ()
    assert vocabulary.encode("日本語の文") == tuple(made.encode("日本語の文").ids)


@pytest.fixture(scope="module")
def tekken() -> Vocabulary:
    found = find_spec("mistral_common")
    if found is None or found.origin is None:
        pytest.skip("mistral_common is not installed, which brings a vocabulary of 131,072 tokens")
    return Vocabulary.from_tekken(Path(found.origin).parent / "data" / "tekken_240911.json")


@pytest.mark.parametrize("longest", [60, 2_000])
def test_a_long_text_is_divided_as_if_it_were_divided_at_once(tekken: Vocabulary, longest: int) -> None:
    text = "Water boils at 100 °C;\n\n    水は100度で沸く。  It (H2O) freezes  at 0 °C.\t" * 200

    found = [token for part in split_text(text, longest) for token in tekken.encode(part)]

    assert found == list(tekken.encode(text))


def test_a_word_of_two_hundred_thousand_letters_is_divided(tekken: Vocabulary) -> None:
    assert tekken.decode(tekken.encode("a" * 200_000)) == b"a" * 200_000
    assert len(constraints.compile(Regex("a{100000}"), tekken).start().forced()) > 10_000
