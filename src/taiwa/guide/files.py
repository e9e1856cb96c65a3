"""A vocabulary by the file that holds it: the form is told by what the file says, not by its name."""

import json
from pathlib import Path
from typing import Any, cast

from taiwa.guide.tokenizers import from_hf, from_tekken, from_tiktoken
from taiwa.guide.vocabulary import Vocabulary
from taiwa.kernel.errors import InputError

__all__ = ["read_vocabulary"]

MOST_BYTES = 512 << 20
PLAIN_END = "<end>"
ENDS = ("</s>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<eos>", "<end_of_turn>", PLAIN_END)


def read_vocabulary(path: str | Path) -> Vocabulary:
    """Read `tekken.json`, tiktoken ranks, a `tokenizer.json`, or a JSON list of texts one of which is `<end>`.

    Of a `tokenizer.json` the tokens are read and not the merges, so a text is divided by the longest token that fits.

    Raises:
        InputError: it cannot be read, or is none of these.
    """
    where = Path(path)
    try:
        if where.stat().st_size > MOST_BYTES:
            raise InputError(f"{where} is larger than {MOST_BYTES >> 20} MB: no vocabulary")
        held = where.read_bytes()
    except OSError as error:
        raise InputError(f"{where} cannot be read: {error.strerror}") from None
    if not held.strip():
        raise InputError(f"{where} is empty: no vocabulary")
    if held.lstrip()[:1] not in (b"{", b"["):
        return from_tiktoken(where)
    try:
        data: Any = json.loads(held)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON: {error}") from None
    if isinstance(data, list):
        return _of_texts(cast("list[object]", data), where)
    if "config" in data and "vocab" in data:
        return from_tekken(where)
    if "model" in data:
        return _of_tokenizer(held.decode("utf-8", "replace"), data, where)
    raise InputError(
        f"{where} is no vocabulary: expected a tekken file, a tokenizer.json, tiktoken ranks or a list of texts"
    )


def _of_texts(held: list[object], where: Path) -> Vocabulary:
    texts = [text for text in held if isinstance(text, str)]
    if len(texts) < len(held) or texts.count(PLAIN_END) != 1:
        raise InputError(f"{where}: a list of tokens holds texts, and {PLAIN_END!r} once, which ends a text")
    return Vocabulary([text.encode() for text in texts], texts.index(PLAIN_END), name=where.stem)


class _Written:
    """A tokenizer as its file says it: enough to read its tokens from."""

    def __init__(self, text: str) -> None:
        self._text = text

    def to_str(self) -> str:
        """The file."""
        return self._text


def _of_tokenizer(text: str, data: Any, where: Path) -> Vocabulary:  # noqa: ANN401  (any JSON object)
    try:
        special = {str(each["content"]): int(each["id"]) for each in data.get("added_tokens") or ()}
        end = next((special[name] for name in ENDS if name in special), None)
        if end is None:
            raise InputError(f"{where} has none of the special tokens that end a text: {', '.join(ENDS)}")
        found = from_hf(_Written(text), end=end)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{where} is no tokenizer.json: {error!r}") from None
    return Vocabulary(found.tokens, found.end, found.special, name=where.stem)
