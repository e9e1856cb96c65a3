"""Vocabularies: the bytes that each token writes, the end tokens, and the tokenizer's own division of a text."""

import json
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from struct import pack
from typing import Any, TypeAlias, cast

from taiwa.extras import missing_extra
from taiwa.kernel.attachments import read_regular
from taiwa.kernel.errors import InputError, NoValidTokenError, file_errors
from taiwa.kernel.serialization import parse_json, value
from taiwa.kernel.text import truncate


def import_llguidance() -> Any:  # noqa: ANN401  (a module)
    """Return the module `llguidance`.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import_module("numpy")  # masks are its arrays
        return import_module("llguidance")
    except ImportError:
        raise missing_extra("constrained decoding", "constraints") from None


Encode: TypeAlias = Callable[[str], Sequence[int]]
"""A tokenizer: the canonical tokens of a text, without special ones."""

DIGEST_BYTES = 16
EXAMPLES = 8
LOOKED_THROUGH = 400
END = "<|endoftext|>"
UTF8_BYTES = (9, 10, 13, *range(0x20, 0x7F), *range(0x80, 0xC0), *range(0xC2, 0xF5))
"""The bytes of text; most control characters and bytes that UTF-8 never uses are left out."""
PROBES = (
    "a b",
    ' {\n  "key": [1.5, true, null]}',
    "<<name: input>>",
    "naïve – “ja”",
    "日本語の文。",
    "中文，句子",
    "🙂",
    "\t\n\n  x",
)
"""Texts that must survive encoding and decoding: a wrongly parsed table loses a space or a letter of one of them."""

BLANK = re.compile(r"(?<=\S) (?=\S)")


def split_text(text: str, longest: int) -> Iterator[str]:
    """Split a long text at harmless places: before the last single space within `longest` characters, if there is one.

    The time of byte-pair merging grows with the square of a word's length, and some implementations fail on very long words.

    >>> list(split_text("one two three", 9)), list(split_text("aaaaa", 3))
    (['one two', ' three'], ['aaa', 'aa'])
    """
    start = 0
    while len(text) - start > longest:
        end = max(
            (found.start() for found in BLANK.finditer(text, start + 1, start + longest)), default=start + longest
        )
        yield text[start:end]
        start = end
    yield text[start:]


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the number of tokens or bytes with which both begin."""
    shortest = min(len(one), len(other))
    return next((index for index in range(shortest) if one[index] != other[index]), shortest)


FAULTS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What reading a file raises that is not what it seems."""
MAX_SHOWN = 200


@value
class VocabularyReport:
    """Irregularities of a vocabulary: `missing` are bytes of UTF-8 that no token contains, so that some texts are unreachable,
    `broken` probe texts that the tokenizer does not return unchanged.
    """

    missing: bytes = b""
    broken: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """One line for each irregularity that makes constraints unreachable; empty for a sound vocabulary."""
        lines: list[str] = []
        if self.missing:
            some = ", ".join(repr(chr(byte)) if byte < 0x7F else f"0x{byte:02X}" for byte in self.missing[:8])
            some += " …" if len(self.missing) > 8 else ""
            lines.append(f"no token writes {len(self.missing)} of the bytes of UTF-8: {some}")
        if self.broken:
            shown = ", ".join(repr(probe) for probe in self.broken[:3])
            lines.append(f"{len(self.broken)} of {len(PROBES)} texts do not come back from the tokenizer: {shown}")
        return tuple(lines)


class Vocabulary:
    """The tokens of a model; vocabularies with equal digests are equal.

    `tokens[i]` are the bytes that token i writes. `b""` is a gap: an id that is never used. The bytes of a special token are its
    name, and it writes nothing; `end` are the tokens that end a text.
    """

    __slots__ = ("__dict__", "__weakref__", "_encode", "end", "name", "special", "tokens")

    def __init__(
        self,
        tokens: Iterable[bytes],
        end: int | Iterable[int],
        special: Iterable[int] = (),
        *,
        encode: Encode | None = None,
        name: str = "",
    ) -> None:
        self.tokens = tuple(tokens)
        self.end = (end,) if isinstance(end, int) else tuple(end)
        self.special = frozenset(special) | frozenset(self.end)
        self.name = name
        self._encode = encode
        if not self.end:
            raise InputError("a vocabulary needs a token that ends a text")
        for token in sorted(self.special):
            if not 0 <= token < len(self.tokens):
                kind = "end" if token in self.end else "special"
                raise InputError(
                    f"the {kind} token {token} is not among the {len(self.tokens)} tokens of the vocabulary"
                )

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({self.name or self.digest[:8]}: {len(self)} tokens)"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Vocabulary) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """A digest of what the tokens write; the tokenizer's own division is not part of it."""
        lengths = [len(token) for token in self.tokens]
        named = sorted(self.special)
        made = blake2b(pack(f"<{len(lengths)}I", *lengths), digest_size=DIGEST_BYTES)
        made.update(b"".join(self.tokens))
        made.update(pack(f"<{len(self.end)}I", *self.end) + b"|" + pack(f"<{len(named)}I", *named))
        return made.hexdigest()

    @property
    def is_canonical(self) -> bool:
        """Whether the tokenizer's own division of a text is known."""
        return self._encode is not None

    def decode(self, tokens: Iterable[int]) -> bytes:
        """Return the bytes that tokens write; special ones write nothing."""
        return b"".join(self.tokens[token] for token in tokens if token not in self.special)

    def encode(self, text: str) -> tuple[int, ...]:
        """Tokenise a text as the tokenizer does; if that is unknown, take the longest token each time.

        Raises:
            InputError: the tokens cannot write the text.
        """
        if self._encode is not None:
            return tuple(self._encode(text))
        return self.divide(text.encode("utf-8"))

    def divide(self, text: bytes) -> tuple[int, ...]:
        """Tokenise bytes by taking the longest token each time.

        Raises:
            InputError: no token writes the next byte.
        """
        divided: list[int] = []
        here = 0
        while here < len(text):
            for there in range(min(here + self._longest, len(text)), here, -1):
                if (same := self.tokens_by_text.get(text[here:there])) is not None:
                    break
            else:
                raise InputError(f"no token writes byte {here} of the text, {text[here : here + 1]!r}")
            divided.append(same[0])
            here = there
        return tuple(divided)

    def spells(self, text: bytes) -> bool:
        """Return whether some sequence of tokens writes these bytes."""
        reached = [True] + [False] * len(text)
        for here in range(len(text)):
            if reached[here]:
                for there in range(here + 1, min(here + self._longest, len(text)) + 1):
                    reached[there] = reached[there] or text[here:there] in self.tokens_by_text
        return reached[-1]

    def check_spells(self, words: Iterable[str]) -> None:
        """Check that the tokens can write each of some words.

        Raises:
            NoValidTokenError: they cannot write one, which would change a choice of these words.
        """
        for word in words:
            if not self.spells(word.encode()):
                hint = "drop it, or use a vocabulary that can"
                raise NoValidTokenError(f"no sequence of tokens spells {word!r}: {hint}", state=word)

    def show(self, token: int) -> str:
        """Return a token for display: its text in quotes, a special one by its name.

        >>> Vocabulary(["文".encode(), b"\\xe6\\x96", b"<end>"], 2).show(1)
        "'\\\\xe6\\\\x96'"
        """
        written = self.tokens[token]
        if token in self.special:
            return written.decode("utf-8", "backslashreplace")
        try:
            return repr(written.decode())
        except UnicodeDecodeError:  # a part of a character
            return repr(written)[1:]

    def examples(self, tokens: Sequence[int]) -> tuple[str, ...]:
        """Return a few of some tokens for display: readable ones from all parts of the vocabulary, and the end tokens."""
        ends = [token for token in tokens if token in self.end]
        readable = [
            token
            for token in tokens[:: max(1, len(tokens) // LOOKED_THROUGH)]
            if token not in self.end and self.tokens[token].decode("utf-8", "replace").isprintable()
        ]
        room = EXAMPLES - len(ends)
        some = (
            [readable[number * len(readable) // room] for number in range(room)] if len(readable) > room else readable
        )
        return tuple(map(self.show, (*some, *ends) or tokens[:EXAMPLES]))

    @cached_property
    def tokens_by_text(self) -> dict[bytes, list[int]]:
        """The tokens that write each text; gaps and special tokens write nothing."""
        by_text: dict[bytes, list[int]] = {}
        for token, text in enumerate(self.tokens):
            if text and token not in self.special:
                by_text.setdefault(text, []).append(token)
        return by_text

    @cached_property
    def numbers(self) -> frozenset[int]:
        """The tokens that write digits only."""
        return frozenset(token for token, text in enumerate(self.tokens) if text.strip().isdigit())

    @cached_property
    def single_bytes(self) -> frozenset[int]:
        """The bytes that have a token of their own."""
        return frozenset(text[0] for text in self.tokens_by_text if len(text) == 1)

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.tokens_by_text), default=0)

    def check(self) -> "VocabularyReport":
        """Report what prevents constraints from being written with these tokens."""
        inside = frozenset(b"".join(self.tokens_by_text))
        return VocabularyReport(
            missing=bytes(byte for byte in UTF8_BYTES if byte not in inside),
            broken=tuple(probe for probe in PROBES if not self._comes_back(probe)),
        )

    def _comes_back(self, probe: str) -> bool:
        try:
            return self.decode(self.encode(probe)) == probe.encode()
        except (InputError, IndexError):
            return False

    @classmethod
    def from_tekken(cls, path: str | Path) -> "Vocabulary":
        """Read a `tekken.json`, the format of Mistral's tokenizers.

        Raises:
            InputError: it cannot be read, or is in another format.
        """
        file = Path(path)
        try:
            data: Any = parse_json(_read_bytes(file))
            config = data["config"]
            size, special = int(config["default_vocab_size"]), int(config["default_num_special_tokens"])
            if special > MOST_TOKENS:
                raise ValueError(f"{special} special tokens")
            pieces = [b64decode(item["token_bytes"]) for item in data["vocab"][: size - special]]
            names = [*FIRST_OF_TEKKEN, *(f"<SPECIAL_{rank}>" for rank in range(len(FIRST_OF_TEKKEN), special))]
            for item in data.get("special_tokens") or ():
                names[int(item["rank"])] = str(item["token_str"])
            pattern = str(config["pattern"])
            tokens = (*map(str.encode, names), *pieces)
        except FAULTS as error:
            raise InputError(f"{file} is not a tekken file: {truncate(repr(error), MAX_SHOWN)}") from None
        encode = _BytePairEncoder({piece: rank for rank, piece in enumerate(pieces)}, pattern, special)
        return cls(tokens, END_OF_TEKKEN, range(special), encode=encode, name=file.stem)

    @classmethod
    def from_tiktoken(
        cls, source: "str | Path | Mapping[bytes, int]", *, special: Mapping[str, int] | None = None, end: str = END
    ) -> "Vocabulary":
        """Read a file of tiktoken ranks (`base64 rank` on each line), or take the ranks themselves.

        `special` maps the special tokens to their ids; without it the end token follows the last token.

        Raises:
            InputError: it cannot be read, is in another format, or has no token `end`.
        """
        ranks = source if isinstance(source, Mapping) else _read_ranks(Path(source))
        special = {end: max(ranks.values(), default=-1) + 1} if special is None else special
        if end not in special:
            raise InputError(f"no special token is called {end!r}; pass the one that ends a text")
        name = "" if isinstance(source, Mapping) else Path(source).stem
        encode = _BytePairEncoder(ranks, CL100K_PATTERN, 0)
        return cls(_table(ranks.items(), special), special[end], special.values(), encode=encode, name=name)

    @classmethod
    def from_hf(cls, tokenizer: Any, *, end: int | Iterable[int] | None = None, size: int = 0) -> "Vocabulary":  # noqa: ANN401
        """Read a tokenizer of transformers or tokenizers.

        `end` are the ids that end a text, if the tokenizer does not know all of them; `size` is the number of rows of the model's
        output, if it is larger than the vocabulary.

        Raises:
            InputError: the tokenizer does not define which bytes its tokens write, or which token ends a text.
        """
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if not hasattr(backend, "to_str"):
            raise InputError(
                f"a {type(tokenizer).__name__} does not tell which bytes its tokens write; use a fast tokenizer"
            )
        end = end if end is not None else getattr(tokenizer, "eos_token_id", None)
        if end is None:
            raise InputError("the tokenizer has no end token; pass end=")
        tokens, special = _read_tokenizer_json(json.loads(backend.to_str()))

        def encode(text: str) -> tuple[int, ...]:
            return tuple(backend.encode(text, add_special_tokens=False).ids)

        name = str(getattr(tokenizer, "name_or_path", "") or "")
        return cls([*tokens, *[b""] * (size - len(tokens))], end, special.values(), encode=encode, name=name)

    @classmethod
    def of_bytes(cls) -> "Vocabulary":
        """Return the 256 bytes and an end token: every text can be written, one byte at a time."""
        tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")
        return cls(tokens, 256, encode=lambda text: tuple(text.encode()), name="bytes")


SPACE = "▁"
"""The character that sentencepiece writes for a space."""
MOST_TOKENS = 4_000_000
MOST_BYTES = 512 << 20
LONGEST = 20_000
"""The number of characters that are tokenised at once."""
FIRST_OF_TEKKEN = ("<unk>", "<s>", "</s>")
END_OF_TEKKEN = 2
CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
"""The pattern by which cl100k splits a text before merging."""


def _read_ranks(file: Path) -> dict[bytes, int]:
    try:
        lines = (line.split() for line in _read_bytes(file).splitlines() if line.strip())
        return {b64decode(token): int(rank) for token, rank in lines}
    except (ValueError, Base64Error) as error:
        raise InputError(f"{file} is not a file of tiktoken ranks: {error}") from None


def _table(texts: Iterable[tuple[bytes, int]], special: Mapping[str, int]) -> list[bytes]:
    pairs = [*texts, *((name.encode(), token) for name, token in special.items())]
    top = max((token for _, token in pairs), default=-1) + 1
    if top > MOST_TOKENS or any(token < 0 for _, token in pairs):
        raise InputError(f"a vocabulary has ids from 0 to {MOST_TOKENS - 1}, not {top - 1}")
    tokens = [b""] * top
    for text, token in pairs:
        tokens[token] = text
    return tokens


def _read_bytes(file: Path) -> bytes:
    with file_errors(f"read {file}", InputError):
        return read_regular(file, MOST_BYTES)


class _BytePairEncoder:
    """A tokenizer of ranks and a pattern; built on first use, because few texts need it."""

    def __init__(self, ranks: Mapping[bytes, int], pattern: str, offset: int) -> None:
        self._ranks = ranks
        self._pattern = pattern
        self._offset = offset

    def __call__(self, text: str) -> tuple[int, ...]:
        if len(text) == 1 and text.isascii() and (rank := self._ranks.get(text.encode())) is not None:
            return (rank + self._offset,)  # single characters, with which many constraints begin, need no merging
        return tuple(
            rank + self._offset for part in split_text(text, LONGEST) for rank in self._tokenizer.tokenize_str(part)
        )

    @cached_property
    def _tokenizer(self) -> Any:  # noqa: ANN401  (the wheel declares no type for this constructor)
        top = len(self._ranks)
        return import_llguidance().LLTokenizer.from_tiktoken(
            encoder=dict(self._ranks), special_tokens={"": top}, pattern=self._pattern, eos_token=top, n_vocab=top + 1, slices=[]
        )  # fmt: skip


def _read_tokenizer_json(data: Any) -> tuple[list[bytes], dict[str, int]]:  # noqa: ANN401  (any JSON object)
    """Return the bytes of the tokens and the special tokens of a `tokenizer.json`."""
    vocab: Mapping[str, int] | list[tuple[str, float]] = data["model"]["vocab"]
    ids = vocab if isinstance(vocab, Mapping) else {piece: token for token, (piece, _) in enumerate(vocab)}
    added = data.get("added_tokens") or ()
    names = {str(item["content"]): int(item["id"]) for item in added}
    special = {str(item["content"]): int(item["id"]) for item in added if item.get("special")}
    to_bytes = _piece_decoder(data)
    texts = [(piece.encode() if piece in names else to_bytes(piece), int(token)) for piece, token in ids.items()]
    return _table([*texts, *((name.encode(), token) for name, token in names.items())], special), special


def _piece_decoder(data: Mapping[str, Any]) -> Callable[[str], bytes]:
    """Return the decoder of token texts: GPT-2's alphabet, sentencepiece, or plain UTF-8."""
    kinds = {*_kinds(data.get("decoder")), *_kinds(data.get("pre_tokenizer"))}
    if "ByteLevel" in kinds:
        # GPT-2's alphabet: each byte as a visible character (`bytes_to_unicode` of its encoder.py)
        shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        hidden = [byte for byte in range(256) if byte not in set(shown)]
        alphabet = {chr(byte): byte for byte in shown} | {chr(256 + at): byte for at, byte in enumerate(hidden)}
        return lambda piece: (
            bytes(map(alphabet.__getitem__, piece)) if alphabet.keys() >= set(piece) else piece.encode()
        )
    if kinds & {"Metaspace", "ByteFallback", "Replace"}:
        return _of_sentencepiece
    if "WordPiece" in kinds:
        raise InputError("WordPiece tokenizers are not supported: they insert spaces of their own")
    return str.encode


def _kinds(part: object) -> Iterable[str]:
    if isinstance(part, Mapping):
        node = cast("Mapping[str, Any]", part)
        yield str(node.get("type"))
        for inner in (*(node.get("decoders") or ()), *(node.get("pretokenizers") or ())):
            yield from _kinds(inner)


def _of_sentencepiece(piece: str) -> bytes:
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes([int(piece[3:5], 16)])
    return piece.replace(SPACE, " ").encode()


PLAIN_END = "<end>"
ENDS = ("</s>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<eos>", "<end_of_turn>", PLAIN_END)


def read_vocabulary(path: str | Path) -> Vocabulary:
    """Read `tekken.json`, tiktoken ranks, a `tokenizer.json`, or a JSON list of texts that contains `<end>`.

    The format is recognised by content. The merges of a `tokenizer.json` are not read, so the longest token is taken each time.

    Raises:
        InputError: it cannot be read, or is in none of these formats.
    """
    file = Path(path)
    text = _read_bytes(file)
    if not text.strip():
        raise InputError(f"{file} is empty")
    if text.lstrip()[:1] not in (b"{", b"["):
        return Vocabulary.from_tiktoken(file)
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not JSON: {error}") from None
    if isinstance(data, list):
        return _of_texts(cast("list[object]", data), file)
    if "config" in data and "vocab" in data:
        return Vocabulary.from_tekken(file)
    if "model" not in data:
        raise InputError(
            f"{file} is not a vocabulary; expected a tekken file, a tokenizer.json, tiktoken ranks or a list of texts"
        )
    try:
        names = {str(item["content"]): int(item["id"]) for item in data.get("added_tokens") or ()}
        end = next((names[name] for name in ENDS if name in names), None)
        if end is None:
            raise InputError(f"{file} has none of the special tokens that end a text: {', '.join(ENDS)}")
        tokens, special = _read_tokenizer_json(data)
        return Vocabulary(tokens, end, special.values(), name=file.stem)
    except FAULTS as error:
        raise InputError(f"{file} is not a tokenizer.json: {truncate(repr(error), MAX_SHOWN)}") from None


def _of_texts(data: list[object], file: Path) -> Vocabulary:
    texts = [text for text in data if isinstance(text, str)]
    if len(texts) < len(data) or texts.count(PLAIN_END) != 1:
        raise InputError(f"{file}: a list of tokens contains texts, and {PLAIN_END!r} once, which ends a text")
    try:
        return Vocabulary([text.encode() for text in texts], texts.index(PLAIN_END), name=file.stem)
    except UnicodeEncodeError as error:
        raise InputError(f"{file}: half a character is not a token: {error.object!r}") from None


SMALL_END = b"<end>"
JSON = '{" "} ": ":" ", "," "], [" {} [] [{ }] }} }, ]} "" \\" \\n ": " ": { ": [ true false null ": true, ": false, ": null, -1 0. 1. e+ e-'
NUMBERS = " ".join(str(number) for number in (*range(10, 100), *range(100, 1000, 100), 1000, 2000, 2024, 2025, 2026))
ENGLISH = (
    "the and of to in is it you that for on with as are be this have or not can all your one two name value type id size "
    "date time text number count price total order item items note answer question title city color email address kind "
    "yes no tea coffee hello world ing ed er est ion tion ment able ly al an at en es he re st th ti on ou"
)
JAPANESE = "です ます した する こと もの これ それ ある いる ない から まで の は が を に で と も て 日本 東京 今日 名前 値段 注文 お茶 抹茶 コーヒー はい いいえ ありがとう こんにちは 。 、 「 」"
CHINESE = "的 是 不 我 你 他 们 这 那 有 在 和 了 中国 北京 今天 名字 茶 咖啡 谢谢 你好"
SPACED = "the and of to in is it a for not value name tea coffee"
INDENTS = tuple(b" " * width for width in (2, 4, 8)) + tuple(b"\n" + b" " * width for width in (0, 2, 4))


@cache
def small_vocabulary() -> Vocabulary:
    """Return a small vocabulary for looking at guides: every byte, pieces of JSON, and words of three languages.

    It belongs to no model. Its tokenizer takes the longest token each time; its last token ends a text.

    >>> vocabulary = small_vocabulary()
    >>> [vocabulary.tokens[token].decode() for token in vocabulary.encode('{"name":"抹茶"}')]
    ['{"', 'name', '":"', '抹茶', '"}']
    """
    single = [bytes([byte]) for byte in range(256)]
    words = f"{JSON} {NUMBERS} {ENGLISH} {JAPANESE} {CHINESE}".split()
    pieces = [*(word.encode() for word in words), *(f" {word}".encode() for word in SPACED.split()), *INDENTS]
    tokens = [*dict.fromkeys((*single, *pieces)), SMALL_END]
    plain = Vocabulary(tokens, len(tokens) - 1)
    return Vocabulary(tokens, len(tokens) - 1, encode=lambda text: plain.divide(text.encode()), name="small")
