import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from taiwa.constraints.vocabulary import read_vocabulary
from taiwa.kernel.errors import InputError


def written(folder: Path, data: Any) -> Path:
    path = folder / "vocabulary.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return path


def test_a_list_of_texts_is_a_vocabulary(tmp_path: Path) -> None:
    made = read_vocabulary(written(tmp_path, ["(", "文", "<end>"]))

    assert made.tokens == (b"(", "文".encode(), b"<end>")
    assert made.end == (2,)
    assert made.name == "vocabulary"


def test_tiktoken_ranks_are_told_by_what_they_say(tmp_path: Path) -> None:
    lines = "".join(f"{b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(256))

    made = read_vocabulary(written(tmp_path, lines))

    assert made.tokens[65] == b"A"
    assert len(made) == 257


def test_tekken_is_told_by_its_keys(tmp_path: Path) -> None:
    vocab = [{"rank": byte, "token_bytes": b64encode(bytes([byte])).decode(), "token_str": None} for byte in range(256)]
    data = {
        "config": {"default_vocab_size": 266, "default_num_special_tokens": 10, "pattern": "."},
        "vocab": vocab,
        "special_tokens": [],
    }

    made = read_vocabulary(written(tmp_path, data))

    assert made.tokens[10 + 65] == b"A"
    assert made.tokens[2] == b"</s>"


def test_a_tokenizer_json_gives_its_tokens_and_its_end(tmp_path: Path) -> None:
    data = {
        "model": {"type": "BPE", "vocab": {"a": 0, "Ġb": 1, "<|endoftext|>": 2}, "merges": []},
        "decoder": {"type": "ByteLevel"},
        "added_tokens": [{"id": 2, "content": "<|endoftext|>", "special": True}],
    }

    made = read_vocabulary(written(tmp_path, data))

    assert made.tokens == (b"a", b" b", b"<|endoftext|>")
    assert made.end == (2,)
    assert not made.is_canonical
    assert made.encode("a b") == (0, 1)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (" ", "is empty"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ({"some": "thing"}, "is not a vocabulary"),
        (["a", "b"], "'<end>' once"),
        (["a", 1, "<end>"], "'<end>' once"),
        ({"model": {"vocab": {"a": 0}}, "added_tokens": []}, "none of the special tokens"),
        ({"model": {}, "added_tokens": [{"id": 0, "content": "</s>", "special": True}]}, "is not a tokenizer.json"),
        ({"model": 3}, "special tokens"),
        ("not ranks at all", "tiktoken"),
    ],
)
def test_what_is_no_vocabulary_is_refused_by_name(tmp_path: Path, data: Any, why: str) -> None:
    path = written(tmp_path, data)

    with pytest.raises(InputError, match=why) as caught:
        read_vocabulary(path)

    assert str(path) in caught.value.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*gone\.json"):
        read_vocabulary(tmp_path / "gone.json")
