"""Files that come along and are broken: one typed error each, whichever file it is."""

import json
from pathlib import Path

import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.models.builtin import model
from taiwa.models.builtin.model import load
from taiwa.models.builtin.network import Config
from taiwa.models.builtin.tokenizer import Tokens, load_tokens
from tests.models.builtin.small_model import file_of, weights

MARKS = ("<end>", "<answer>", *(f"<{name}>" for name in model.MAX_TOKENS))
SCORES = ("<clarity>", "<is_question>", "<is_consultation>", "<in_internal_docs>", "<ask_person>")
WHOLE = Tokens((*MARKS, *SCORES), ("a", "b"))
CONFIG = Config(dim=16, layers=1, heads=2, hidden=12, vocab=len(WHOLE), context=600, theta=100.0, eps=1e-6)


def written(folder: Path, vocabulary: str) -> Path:
    path = folder / "weights.safetensors"
    path.write_bytes(file_of(CONFIG, weights(CONFIG).tensors, told={"vocabulary": vocabulary}))
    return path


@pytest.mark.parametrize(
    "held",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b"{}",
        b'{"special": [], "pieces": []}',
        b'{"special": ["<end>"], "pieces": [1]}',
    ],
)
def test_a_broken_tokenizer_is_one_error_that_says_what_to_do(tmp_path: Path, held: bytes) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_bytes(held)
    with pytest.raises(ConfigError, match="install taiwa again"):
        load_tokens(path)


def test_a_copy_without_the_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing from this installation"):
        load_tokens(tmp_path / "none.json")


def test_a_tokenizer_is_known_by_its_tokens_however_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.json"
    table = {"special": list(WHOLE.special), "pieces": list(WHOLE.pieces)}
    for text in (json.dumps(table), json.dumps(table, indent=1)):
        path.write_text(text)
        assert load_tokens(path).digest == WHOLE.digest
    assert Tokens(list(WHOLE.special), ("b", "a")).digest != WHOLE.digest


def test_weights_of_another_vocabulary_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "builtin_tokens", lambda: WHOLE)
    assert load(written(tmp_path, WHOLE.digest)).network.context == CONFIG.context
    assert load(written(tmp_path, "")).network.context == CONFIG.context  # files that were written before
    with pytest.raises(ConfigError, match="belong to different models"):
        load(written(tmp_path, "0" * 64))


def test_a_vocabulary_that_lacks_a_control_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "builtin_tokens", lambda: Tokens((*MARKS, "<other>", *SCORES[1:]), ("a", "b")))
    with pytest.raises(ConfigError, match="lacks <clarity>"):
        load(written(tmp_path, ""))
