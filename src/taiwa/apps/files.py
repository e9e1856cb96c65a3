"""Reading a text file of bounded size."""

from pathlib import Path

from taiwa.kernel.errors import InputError

__all__ = ["bounded"]


def bounded(path: Path, most: int, too_large: str, *, where: str = "") -> tuple[bytes, str]:
    """Read the bytes of a UTF-8 file, and the text that they are; `where` is what errors call it, if not by its path.

    Raises:
        InputError: it cannot be read, is not UTF-8, or has more than `most` bytes, of which `too_large` speaks.
    """
    where = where or str(path)
    try:
        with path.open("rb") as stream:
            raw = stream.read(most + 1)
    except OSError as error:
        raise InputError(f"{where}: {error.strerror}") from None
    if len(raw) > most:
        raise InputError(f"{where} {too_large}")
    try:
        return raw, raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}:{raw.count(10, 0, error.start) + 1}: not UTF-8 at byte {error.start:,}") from None
