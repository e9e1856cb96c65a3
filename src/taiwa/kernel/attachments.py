"""Files of the user, read within limits; attachments: images, PDFs and text files in a message, named by the hash of their bytes."""

import json
import os
import re
from base64 import b64encode
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from errno import EFBIG, EINVAL, EISDIR, ELOOP
from functools import cache
from hashlib import sha256
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path
from stat import S_ISDIR, S_ISFIFO, S_ISREG
from typing import BinaryIO, Literal, TypeAlias, cast, get_args

from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json, value
from taiwa.kernel.wording import Wording

INHERITED = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")
"""Folders in which a shell passes a pipe by name, as in `taiwa import <(zcat chat-1.jsonl.gz)`."""


NOT_REGULAR, FOLDER = "is not a regular file", "is a folder"


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file, or a pipe that a shell passes by name and that has a writer. Other files may block or never end.

    Raises:
        OSError: it cannot be opened, or is a folder, a named pipe, a socket or a device.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except ValueError:
        raise OSError(EINVAL, "invalid file name") from None
    mode = os.fstat(descriptor).st_mode
    if S_ISREG(mode) or (S_ISFIFO(mode) and str(path).startswith(INHERITED)):
        if not S_ISREG(mode):
            os.set_blocking(descriptor, True)
        file = os.fdopen(descriptor, "rb")
        try:
            # Some files of the system can be opened and not be read; None means one that would wait.
            if S_ISREG(mode) and not file.peek(1) and cast("bytes | None", file.read(1)) is None:
                raise OSError(EINVAL, NOT_REGULAR)
        except OSError:
            file.close()
            raise
        return file
    os.close(descriptor)
    raise IsADirectoryError(EISDIR, FOLDER) if S_ISDIR(mode) else OSError(EINVAL, NOT_REGULAR)


def read_regular(path: Path, most: int) -> bytes:
    """Return the bytes of a file as `open_regular` opens it.

    Raises:
        OSError: it cannot be opened or read, or has more than `most` bytes.
    """
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(EFBIG, f"more than {most:,} bytes")
    return data


def read_regular_text(path: Path) -> str:
    """Return the text of a file in UTF-8 as `read_regular`, with or without a byte order mark, with line feeds only.

    Raises:
        OSError: as `read_regular`. UnicodeDecodeError: it is not UTF-8.
    """
    return TextIOWrapper(BytesIO(read_regular(path, MAX_BYTES)), "utf-8-sig").read()


def open_file(path: Path) -> BinaryIO:
    """Open a file as `open_regular`.

    Raises:
        InputError: it cannot be opened, or is a folder, a named pipe, a socket or a device.
    """
    try:
        return open_regular(path)
    except OSError as error:
        reason = error.strerror
    if reason in (NOT_REGULAR, FOLDER):
        raise InputError(f"{path} {reason}{'; pipe its content in and pass -' if reason == NOT_REGULAR else ''}")
    raise InputError(f"{path}: {reason}")


MAX_FILE_BYTES = 256 << 20
"""Maximum bytes of a file that is read completely."""


def read_bytes(file: BinaryIO, where: str) -> bytes:
    """Read a stream to its end.

    Raises:
        InputError: it has more than `MAX_FILE_BYTES`.
    """
    raw = file.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise InputError(f"{where} is too large; at most {MAX_FILE_BYTES:,} bytes are read")
    return raw


def read_file(path: Path) -> str:
    """Read a text file as `decode` does.

    Raises:
        InputError: it cannot be read, is too large, or is not UTF-8.
    """
    with open_file(path) as file:
        return decode(read_bytes(file, str(path)), str(path))


def decode(raw: bytes, where: str) -> str:
    """Decode UTF-8, or UTF-16 with a byte order mark, as PowerShell writes it; a line ends in `\\n`.

    Raises:
        InputError: the bytes are neither.
    """
    if raw.startswith(b"SQLite format 3\0"):
        what = f"{where} is an SQLite database; give what `taiwa export` writes of a store"
        raise InputError(f"{what}, or `llm logs -n 0 --json` of a log of llm")
    try:
        text = raw.decode("utf-16" if raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 at byte {error.start:,}; convert it, for instance with iconv") from None
    return text.replace("\r\n", "\n")


def read_json_object(path: Path) -> dict[str, Json]:
    """Read a file that holds a JSON object, such as a JSON Schema.

    Raises:
        InputError: it cannot be read, or holds anything else.
    """
    try:
        found: object = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON Schema; it must hold an object")
    return cast("dict[str, Json]", found)


def path_kind(path: str | Path) -> Literal["file", "folder", "other", ""]:
    """Return what a path leads to; "" if it does not exist, as one that is too long for a name. Files of /proc may wait: "other".

    >>> path_kind("/"), path_kind("a" * 1000)
    ('folder', '')
    """
    try:
        found = Path(path).stat()
    except OSError as error:
        return "other" if error.errno == ELOOP else ""
    except ValueError:
        return ""
    if S_ISDIR(found.st_mode):
        return "folder"
    return "file" if S_ISREG(found.st_mode) and found.st_dev != _proc() else "other"


def real_path(path: str | Path) -> Path:
    """Return an absolute path without links; of links in a loop, a path that cannot be opened."""
    return Path(os.path.realpath(path))


@cache
def _proc() -> int | None:
    """Return the device of the files of /proc, None where there is none."""
    with suppress(OSError):
        return Path("/proc/self").stat().st_dev
    return None


MediaType: TypeAlias = Literal[
    "image/png", "image/jpeg", "image/webp", "image/gif", "application/pdf", "text/plain"
]  # fmt: skip
InputKind: TypeAlias = Literal["images", "pdf"]
"""Kinds of attachments that a model may read; every model reads text files, as text."""
MAX_BYTES = 20_000_000
"""Bytes of one attachment."""
MAX_RESULT_BYTES = 5_000_000
"""Bytes of the attachments of one tool result; providers accept no larger image."""
MAX_COUNT = 20
"""Attachments of one message."""
MAX_NAME_CHARS = 200
MAX_IMAGE_TOKENS = 50_000
"""A bound on the input tokens of an image: gpt-4o-mini counts 48,169 for the largest image, others fewer."""
MAX_PDF_TOKENS = 1_000_000
"""A bound on the input tokens of a PDF, the window of the largest models: its pages cannot be counted without reading it."""
SIGNATURES: tuple[tuple[bytes, MediaType], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
"""Bytes that text does not contain."""


@value(tag="attachment")
class Attachment:
    """A file in a message of the user: an image (PNG, JPEG, WebP, GIF), a PDF, or text in UTF-8.

    `sha256` is the hash of its bytes, 64 hex characters; `size` is their number. `data` are the bytes. Records, hashes and
    comparisons leave them out; they are empty if a store has them, which fills them in before sending.

    >>> Attachment.from_bytes(b"GIF89a...", "cat.gif").media_type
    'image/gif'
    """

    sha256: str
    media_type: MediaType
    size: int
    name: str = ""
    data: bytes = field(default=b"", compare=False, repr=False)

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "") -> "Attachment":
        """Create an attachment from bytes; the first bytes decide the media type, and `name` is shown to the model.

        Raises:
            InputError: they are empty, more than 20 MB, or neither an image, a PDF nor UTF-8 text.
        """
        label = _clean_name(name)
        if len(data) > MAX_BYTES:
            name = label or "the attachment"
            raise InputError(f"{name} is too large; an attachment may have {MAX_BYTES:,} bytes")
        return cls(sha256(data).hexdigest(), _media_type(data, label), len(data), label, bytes(data))

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> "Attachment":
        """Read a file.

        Raises:
            InputError: it is a URL, cannot be read, is not a regular file, or as `from_bytes`.
        """
        if isinstance(path, str) and is_url(path):
            raise InputError(f"attachments are not downloaded: save {path.strip()[:80]!r} as a file and attach that")
        file = Path(path)
        with open_file(file) as stream:
            data = stream.read(MAX_BYTES + 1)
        return cls.from_bytes(data, file.name)

    @property
    def kind(self) -> InputKind | None:
        """The kind that a model must be able to read; None for a text file."""
        if self.media_type == "text/plain":
            return None
        return "pdf" if self.media_type == "application/pdf" else "images"

    @property
    def text(self) -> str:
        """The text of a text file, without a byte order mark.

        Raises:
            InputError: its bytes are missing.
        """
        return self.require_data().decode("utf-8-sig")

    def require_data(self) -> bytes:
        """Return the bytes.

        Raises:
            InputError: they are missing.
        """
        if not self.data:
            raise InputError(
                f"the bytes of the attachment {self.label} are missing: an import left them out; "
                "import the conversation again, from an export with attachments"
            )
        return self.data

    @property
    def base64(self) -> str:
        """Its bytes in base64.

        Raises:
            InputError: they are missing.
        """
        return b64encode(self.require_data()).decode("ascii")

    @property
    def data_uri(self) -> str:
        """The attachment as a data URI, the form of OpenAI's protocols.

        Raises:
            InputError: its bytes are missing.
        """
        return f"data:{self.media_type};base64,{self.base64}"

    @property
    def label(self) -> str:
        """Its name, or the beginning of its hash."""
        return self.name or f"{self.sha256[:8]}.{self.media_type.rpartition('/')[2]}"

    @property
    def max_tokens(self) -> int:
        """A bound on the input tokens that a provider counts for it; a token of text has at least one byte."""
        return {None: self.size, "images": MAX_IMAGE_TOKENS, "pdf": MAX_PDF_TOKENS}[self.kind]

    def reference(self) -> dict[str, Json]:
        """Return the reference of a node to it, as JSON; `read_reference` is the inverse."""
        reference: dict[str, Json] = {"sha256": self.sha256, "type": self.media_type, "size": self.size}
        return reference | {"name": self.name} if self.name else reference


def is_url(path: str) -> bool:
    """Report whether a path is a URL, which is never fetched."""
    return path.strip().lower().startswith(("http://", "https://", "ftp://", "data:"))


AttachmentSource: TypeAlias = Attachment | str | os.PathLike[str] | bytes
"""An attachment, the path of a file, or bytes."""


def read_attachments(sources: Iterable[AttachmentSource]) -> tuple[Attachment, ...]:
    """Return attachments; read those given as paths or bytes.

    Raises:
        InputError: there are more than 20, one cannot be read, or one is neither an image, a PDF nor text.
    """
    if isinstance(sources, (str, bytes, os.PathLike, Attachment)):
        raise InputError("attachments must be a list, such as [path]")
    attachments = tuple(map(_attachment, sources))
    if len(attachments) > MAX_COUNT:
        raise InputError(f"a message can have at most {MAX_COUNT} attachments, got {len(attachments)}")
    return attachments


def _attachment(source: AttachmentSource) -> Attachment:
    if isinstance(source, Attachment):
        return source
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Attachment.from_bytes(bytes(source))
    if isinstance(source, (str, os.PathLike)):  # a caller may not check types
        return Attachment.from_path(source)
    raise InputError(f"an attachment must be a path, bytes or an Attachment, got a {type(source).__name__}")


def read_reference(data: object) -> Attachment:
    """Rebuild an attachment, without its bytes, from its reference, which is untrusted.

    Raises:
        InputError: it is not one.
    """
    fields = cast("dict[str, Json]", data) if isinstance(data, dict) else {}
    name, size, called = fields.get("sha256"), fields.get("size"), fields.get("name", "")
    media_type = next((known for known in get_args(MediaType) if known == fields.get("type")), None)
    if (
        fields.keys() <= {"sha256", "type", "size", "name"}
        and isinstance(name, str)
        and re.fullmatch("[0-9a-f]{64}", name)
        and media_type is not None
        and type(size) is int
        and 0 < size <= MAX_BYTES
        and isinstance(called, str)
        and called == _clean_name(called)
    ):
        return Attachment(name, media_type, size, called)
    raise InputError("an attachment must have sha256, type, size and perhaps a name")


def _media_type(data: bytes, label: str) -> MediaType:
    what = label or "the attachment"
    if not data:
        raise InputError(f"{what} is empty")
    for signature, media_type in SIGNATURES:
        if data.startswith(signature):
            return media_type
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        if not CONTROL.search(data):
            return "text/plain"
    raise InputError(Wording("{name} is neither a PNG, JPEG, WebP or GIF image, a PDF, nor text in UTF-8", name=what))


def _clean_name(name: str) -> str:
    """Return the last part of a path without control characters and lone surrogates."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(char for char in last if char.isprintable())[-MAX_NAME_CHARS:].strip()
