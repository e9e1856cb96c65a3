"""Vocabularies read from what tokenizers are kept in: tekken and tiktoken files, and Hugging Face tokenizers."""

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from taiwa.guide.vocabulary import END, Vocabulary, parts
from taiwa.kernel.errors import InputError

__all__ = ["from_hf", "from_tekken", "from_tiktoken"]

SPACE = "▁"
"""What sentencepiece writes for a space."""
MOST_TOKENS = 4_000_000
MOST_BYTES = 512 << 20
LONGEST = 20_000
"""So many characters are divided at once."""
FIRST_OF_TEKKEN = ("<unk>", "<s>", "</s>")
END_OF_TEKKEN = 2
PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
"""How cl100k divides a text before its merges."""


def from_tekken(path: str | Path) -> Vocabulary:
    """Read a `tekken.json`, as Mistral's tokenizers are kept.

    Raises:
        InputError: it cannot be read, or is none.
    """
    where = Path(path)
    try:
        held: Any = json.loads(_bytes(where))
        config = held["config"]
        size, named = int(config["default_vocab_size"]), int(config["default_num_special_tokens"])
        pieces = [b64decode(item["token_bytes"]) for item in held["vocab"][: size - named]]
        names = _tekken_names(held.get("special_tokens") or (), named)
        pattern = str(config["pattern"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{where} is no tekken file: {error!r}") from None
    divide = _Merges(pieces, pattern, named)
    return Vocabulary((*names, *pieces), END_OF_TEKKEN, range(named), encode=divide, name=where.stem)


def _tekken_names(held: Iterable[Mapping[str, Any]], count: int) -> tuple[bytes, ...]:
    names = [*FIRST_OF_TEKKEN, *(f"<SPECIAL_{rank}>" for rank in range(len(FIRST_OF_TEKKEN), count))]
    for item in held:
        names[int(item["rank"])] = str(item["token_str"])
    return tuple(name.encode() for name in names)


def from_tiktoken(
    source: str | Path | Mapping[bytes, int],
    *,
    pattern: str = PATTERN,
    special: Mapping[str, int] | None = None,
    end: str = END,
) -> Vocabulary:
    """Read a file of ranks as tiktoken keeps them (`base64 rank` on each line), or take the ranks themselves.

    `special` gives the special tokens their ids; without it the end is put behind the last token.

    Raises:
        InputError: it cannot be read, is none, or has no token `end`.
    """
    ranks = source if isinstance(source, Mapping) else _ranks(Path(source))
    top = max(ranks.values(), default=-1) + 1
    named = {end: top} if special is None else dict(special)
    if end not in named:
        raise InputError(f"no special token is called {end!r}: name the one that ends a text")
    tokens = _table(ranks.items(), named)
    divide = _Merges(ranks, pattern, 0)
    name = "" if isinstance(source, Mapping) else Path(source).stem
    return Vocabulary(tokens, named[end], named.values(), encode=divide, name=name)


def _ranks(where: Path) -> dict[bytes, int]:
    try:
        lines = (line.split() for line in _bytes(where).splitlines() if line.strip())
        return {b64decode(token): int(rank) for token, rank in lines}
    except (ValueError, Base64Error) as error:
        raise InputError(f"{where} is no file of tiktoken ranks: {error}") from None


def _table(spelled: Iterable[tuple[bytes, int]], named: Mapping[str, int]) -> list[bytes]:
    pairs = [*spelled, *((name.encode(), token) for name, token in named.items())]
    top = max((token for _, token in pairs), default=-1) + 1
    if top > MOST_TOKENS or any(token < 0 for _, token in pairs):
        raise InputError(f"a vocabulary has ids from 0 to {MOST_TOKENS - 1}, not {top - 1}")
    tokens = [b""] * top
    for text, token in pairs:
        tokens[token] = text
    return tokens


def _bytes(where: Path) -> bytes:
    try:
        if where.stat().st_size > MOST_BYTES:
            raise InputError(f"{where} is larger than {MOST_BYTES >> 20} MB: no vocabulary")
        return where.read_bytes()
    except OSError as error:
        raise InputError(f"{where} cannot be read: {error.strerror}") from None


class _Merges:
    """A tokenizer made of ranks and a pattern; built when it is first asked, because few texts need it."""

    def __init__(self, ranks: Sequence[bytes] | Mapping[bytes, int], pattern: str, offset: int) -> None:
        self._ranks = ranks
        self._pattern = pattern
        self._offset = offset

    def __call__(self, text: str) -> tuple[int, ...]:
        alone = self._alone.get(text)  # what many a constraint begins with needs no merges
        if alone is not None:
            return (alone,)
        return tuple(rank + self._offset for part in parts(text, LONGEST) for rank in self._built.tokenize_str(part))

    @cached_property
    def _alone(self) -> dict[str, int]:
        """The tokens that write one character of ASCII."""
        ranks = self._ranks
        pairs = ranks.items() if isinstance(ranks, Mapping) else ((piece, rank) for rank, piece in enumerate(ranks))
        return {chr(piece[0]): rank + self._offset for piece, rank in pairs if len(piece) == 1 and piece[0] < 128}

    @cached_property
    def _built(self) -> Any:  # noqa: ANN401  (the wheel declares no type for this constructor)
        from taiwa.guide.matching import merging_tokenizer

        ranks = self._ranks
        table = dict(ranks) if isinstance(ranks, Mapping) else {piece: rank for rank, piece in enumerate(ranks)}
        return merging_tokenizer(table, self._pattern)


def from_hf(tokenizer: Any, *, end: int | Iterable[int] | None = None, size: int = 0) -> Vocabulary:  # noqa: ANN401
    """Read a tokenizer of transformers or tokenizers, which is not imported for it.

    `end` are the ids that end a text, if the tokenizer does not know all of them; `size` is the number of rows of the
    model's output, where it is larger than the vocabulary.

    Raises:
        InputError: the tokenizer does not say which bytes its tokens write, or which token ends a text.
    """
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        raise InputError(f"a {type(tokenizer).__name__} does not say what its tokens write: give a fast tokenizer")
    held = json.loads(backend.to_str())
    vocab = held["model"]["vocab"]
    pairs = [(str(piece), int(token)) for piece, token in _pairs(vocab)]
    added = {str(item["content"]): int(item["id"]) for item in held.get("added_tokens") or ()}
    special = {text: token for text, token in added.items() if _is_special(held, text)}
    read = _reader(held)
    plain = [(read(piece) if piece not in added else piece.encode(), token) for piece, token in pairs]
    plain += [(text.encode(), token) for text, token in added.items()]
    tokens = _table(plain, special)
    tokens += [b""] * (size - len(tokens))
    known = end if end is not None else getattr(tokenizer, "eos_token_id", None)
    if known is None:
        raise InputError("the tokenizer names no token that ends a text: pass end=")
    name = str(getattr(tokenizer, "name_or_path", "") or "")
    return Vocabulary(tokens, known, special.values(), encode=_encoder(backend), name=name)


def _pairs(vocab: object) -> Iterable[tuple[str, int]]:
    if isinstance(vocab, Mapping):
        return cast("Mapping[str, int]", vocab).items()
    return [(piece, token) for token, (piece, _) in enumerate(cast("list[tuple[str, float]]", vocab))]


def _is_special(held: Mapping[str, Any], text: str) -> bool:
    return any(item["content"] == text and item.get("special") for item in held["added_tokens"])


def _encoder(backend: Any) -> Any:  # noqa: ANN401  (a tokenizer of the `tokenizers` library)
    def encode(text: str) -> tuple[int, ...]:
        return tuple(backend.encode(text, add_special_tokens=False).ids)

    return encode


def _reader(held: Mapping[str, Any]) -> Callable[[str], bytes]:
    """How the tokens are written is told by the decoder: in the alphabet of GPT-2, or by sentencepiece."""
    kinds = set(_kinds(held.get("decoder"))) | set(_kinds(held.get("pre_tokenizer")))
    if "ByteLevel" in kinds:
        return partial(_of_alphabet, _alphabet())
    if kinds & {"Metaspace", "ByteFallback", "Replace"}:
        return _of_sentencepiece
    if "WordPiece" in kinds:
        raise InputError("a WordPiece tokenizer joins its pieces with spaces of its own: a guide cannot follow it")
    return str.encode


def _kinds(part: object) -> Iterable[str]:
    if isinstance(part, Mapping):
        node = cast("Mapping[str, Any]", part)
        yield str(node.get("type"))
        for inner in (*(node.get("decoders") or ()), *(node.get("pretokenizers") or ())):
            yield from _kinds(inner)


def _alphabet() -> dict[str, int]:
    """GPT-2's alphabet: each byte as a letter that can be seen (`bytes_to_unicode` of its encoder.py)."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(shown)]
    return {chr(byte): byte for byte in shown} | {chr(256 + place): byte for place, byte in enumerate(hidden)}


def _of_alphabet(alphabet: Mapping[str, int], piece: str) -> bytes:
    try:
        return bytes(alphabet[char] for char in piece)
    except KeyError:
        return piece.encode()


def _of_sentencepiece(piece: str) -> bytes:
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes([int(piece[3:5], 16)])
    return piece.replace(SPACE, " ").encode()
