"""Files of tokenizers and of weights that lie: each is read or refused in one line, and none takes more than it weighs."""

import json
import os
from base64 import b64encode
from pathlib import Path
from random import Random
from typing import Any

import pytest

from taiwa.constraints.vocabulary import read_vocabulary
from taiwa.kernel.errors import InputError
from taiwa.safetensors_file import parse_header

SEED = int(os.environ.get("EXPLORE_SEED", "20261128"))
ROUNDS = int(os.environ.get("EXPLORE_ROUNDS", "300"))
TEKKEN: dict[str, Any] = {
    "config": {"default_vocab_size": 8, "default_num_special_tokens": 4, "pattern": r"\w+|\s+"},
    "vocab": [{"token_bytes": b64encode(word).decode()} for word in (b"a", b"b", b"ab", b" ")],
    "special_tokens": [{"rank": 3, "token_str": "<pad>"}],
}
TOKENIZER: dict[str, Any] = {
    "model": {"vocab": {"a": 0, "b": 1, "<0x0A>": 2, "</s>": 3}},
    "added_tokens": [{"content": "</s>", "id": 3, "special": True}],
    "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}]},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Metaspace"}]},
}
HEADER: dict[str, Any] = {
    "__metadata__": {"format": "pt"},
    "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    "b": {"dtype": "I8", "shape": [8], "data_offsets": [24, 32]},
}


def nested(depth: int) -> Any:
    inner: Any = {"type": "ByteLevel"}
    for _ in range(depth):
        inner = {"type": "Sequence", "decoders": [inner]}
    return inner


ODD: tuple[Any, ...] = (
    None, True, -1, 0, 3, 2**31, 2**63, 10**18, 10**400, float("inf"), float("nan"), 1.5, "", "a", "\ud800", "<0xZZ>", "＜0x0A＞", "=", "(((",
    [], [[]], [None], {}, {"a": 0}, [10**4000] * 9, nested(50), nested(150),
)  # fmt: skip


def mutated(node: Any, random: Random) -> Any:
    """Return some JSON with one part, anywhere in it, replaced, dropped, doubled or renamed."""
    if not isinstance(node, dict | list) or not node or random.random() < 0.15:
        return random.choice(ODD)
    keys: list[Any] = [*node] if isinstance(node, dict) else [*range(len(node))]
    key = random.choice(keys)
    copy: Any = dict(node) if isinstance(node, dict) else list(node)
    match random.randrange(8):
        case 0:
            del copy[key]
        case 1 if isinstance(copy, list):
            copy.append(copy[key])
        case 1:
            copy[random.choice(("", "a", "\ud800", "<0xZZ>", "vocab", "config"))] = copy.pop(key)
        case _:
            copy[key] = mutated(copy[key], random)
    return copy


@pytest.mark.fuzz
@pytest.mark.parametrize("valid", [TEKKEN, TOKENIZER, ["a", "b", "<end>"]], ids=["tekken", "tokenizer", "list"])
def test_a_vocabulary_is_read_or_refused(valid: Any, tmp_path: Path) -> None:
    random, file, refused = Random(SEED), tmp_path / "tokenizer.json", list[str]()
    for _ in range(ROUNDS):
        file.write_text(json.dumps(mutated(valid, random)))
        try:
            read_vocabulary(file)
        except InputError as error:
            refused.append(error.message)
    assert all("\n" not in each and len(each) < 1_000 for each in refused)


@pytest.mark.parametrize("deep", ['{"type": "Sequence", "decoders": [' * 480 + "]}" * 480, "[" * 100_000])
def test_a_vocabulary_that_is_nested_too_deep_is_refused(deep: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(TOKENIZER | {"decoder": None}).replace('"decoder": null', f'"decoder": {deep}'))

    with pytest.raises(InputError, match=r"is not (a tokenizer\.)?json|JSON"):
        read_vocabulary(file)


@pytest.mark.fuzz
def test_a_header_of_weights_is_read_or_refused() -> None:
    random, refused = Random(SEED), list[str]()
    for _ in range(ROUNDS):
        text = json.dumps(mutated(HEADER, random)).encode()
        size = random.choice((len(text), len(text), random.randrange(2 * len(text) + 1), 2**63))
        data = size.to_bytes(8, "little") + text
        try:
            parse_header(data, len(data) + random.choice((32, 0)))
        except ValueError as error:
            refused.append(str(error))
    assert all("\n" not in each and len(each) < 1_000 for each in refused)


@pytest.mark.parametrize("shape", [[10**4000] * 400, [1] * 1_000_000])
def test_a_shape_costs_nothing_to_refuse(shape: list[int]) -> None:
    text = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4]}}).encode()
    data = len(text).to_bytes(8, "little") + text + b"1234"

    with pytest.raises(ValueError, match="shape") as refused:
        parse_header(data, len(data))

    assert len(str(refused.value)) < 1_000


def test_tensors_that_share_their_bytes_are_refused() -> None:
    tensors = {f"t{n}": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]} for n in range(100)}
    text = json.dumps(tensors).encode()
    data = len(text).to_bytes(8, "little") + text + bytes(4000)

    with pytest.raises(ValueError, match="overlap"):
        parse_header(data, len(data))
