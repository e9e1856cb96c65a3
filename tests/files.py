"""Small files of the types that can be attached."""

import struct
import zlib

__all__ = ["FILES", "GIF", "JPEG", "PDF", "PNG", "TEXT", "WEBP", "png"]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(red: int = 255, green: int = 0, blue: int = 0) -> bytes:
    """A complete PNG of one pixel."""
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes([0, red, green, blue]))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


PNG = png()
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00"
GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
WEBP = b"RIFF\x1a\x00\x00\x00WEBPVP8L"
PDF = b"%PDF-1.4\n%%EOF\n"
TEXT = "two teas, 三つ\n".encode()
FILES = {
    "image/png": PNG,
    "image/jpeg": JPEG,
    "image/gif": GIF,
    "image/webp": WEBP,
    "application/pdf": PDF,
    "text/plain": TEXT,
}
"""One file of each media type."""
