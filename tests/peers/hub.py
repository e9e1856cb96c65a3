"""A hub of model files on this machine that speaks as the Hugging Face hub does, and breaks, lies and redirects on command.

    with Hub() as hub:
        hub.files["owner/repo/file.gguf"] = content

A second server plays the one to which downloads are redirected, at another origin.
"""

import hashlib
import re
import threading
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from taiwa.models.weights.model_files import HubFile, ModelFile, Wheels

CONTENT = b"GGUF" + bytes(range(256)) * 1200
RESOLVED = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    range: str
    authorization: str
    is_elsewhere: bool


@dataclass
class Hub:
    """The files by repository and path, and the faults: each is applied to every download until it is taken back."""

    files: dict[str, bytes] = field(default_factory=dict)
    redirects: bool = False
    """Downloads are at another origin."""
    circles: bool = False
    """A download is redirected to itself."""
    sends: bytes | None = None
    """Sent in place of every file, whose hash and size are stated as they are."""
    without_length: bool = False
    ignores_range: bool = False
    status: int = 200
    cuts: list[int] = field(default_factory=list)
    """For each download the number of bytes after which the connection breaks; the later ones are whole."""
    on_cut: Callable[[], None] = lambda: None
    """Called before a connection breaks."""
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._servers = [
            ThreadingHTTPServer(("127.0.0.1", 0), self._handler(is_elsewhere)) for is_elsewhere in (False, True)
        ]
        for server in self._servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    @property
    def url(self) -> str:
        """The value of HF_ENDPOINT."""
        return f"http://127.0.0.1:{self._servers[0].server_port}"

    @property
    def downloads(self) -> list[Asked]:
        """The requests for bytes that were not redirected."""
        return [each for each in self.asked if each.method == "GET" and each.is_elsewhere == self.redirects]

    def _handler(self, is_elsewhere: bool) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name of the base class)
                pass

            def do_HEAD(self) -> None:
                self.answer(with_body=False)

            def do_GET(self) -> None:
                self.answer(with_body=True)

            def answer(self, *, with_body: bool) -> None:
                wanted, key = self.headers.get("range", ""), self.headers.get("authorization", "")
                hub.asked.append(Asked(self.command, self.path, wanted, key, is_elsewhere))
                found = RESOLVED.fullmatch(unquote(urlsplit(self.path).path))
                name = f"{found[1]}/{found[3]}" if found else unquote(self.path.strip("/"))
                content = hub.files.get(name)
                if content is None or hub.status != 200:
                    self.send_response(hub.status if content is not None else 404)
                    if content is None:
                        self.send_header("x-error-code", "EntryNotFound")
                    self.finish_empty()
                    return
                if not is_elsewhere and (hub.redirects or (hub.circles and with_body)):
                    self.send_response(302)
                    port = hub._servers[1].server_port
                    where = self.path if hub.circles else f"http://127.0.0.1:{port}{self.path}"
                    self.send_header("location", where)
                    self.describe(content)
                    self.finish_empty()
                    return
                self.send(content, wanted, with_body=with_body)

            def describe(self, content: bytes) -> None:
                self.send_header("x-repo-commit", "0" * 40)
                self.send_header("x-linked-size", str(len(content)))
                self.send_header("x-linked-etag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("etag", '"0123"')

            def finish_empty(self) -> None:
                self.send_header("content-length", "0")
                self.end_headers()

            def send(self, content: bytes, wanted: str, *, with_body: bool) -> None:
                body, start = content if hub.sends is None else hub.sends, 0
                if wanted and not hub.ignores_range:
                    start = int(wanted.removeprefix("bytes=").rstrip("-"))
                    self.send_response(206)
                    self.send_header("content-range", f"bytes {start}-{len(body) - 1}/{len(body)}")
                else:
                    self.send_response(200)
                self.describe(content)
                if hub.without_length:
                    self.send_header("connection", "close")
                    self.close_connection = True
                else:
                    self.send_header("content-length", str(len(body) - start))
                self.end_headers()
                if not with_body:
                    return
                end = len(body)
                if hub.cuts:
                    end = start + hub.cuts.pop(0)
                    self.close_connection = True
                with suppress(ConnectionError):  # the client has hung up
                    self.wfile.write(body[start:end])
                    self.wfile.flush()
                if end < len(body):
                    hub.on_cut()

        return Handler


def tiny_model(content: bytes = CONTENT, parts: int = 0) -> ModelFile:
    """A model file `tiny`, on the hub, and in the wheels of `parts` packages."""
    size = -(-len(content) // max(parts, 1))
    return ModelFile(
        "tiny", "tiny.Q4.gguf", len(content), hashlib.sha256(content).hexdigest(), HubFile("owner/tiny-GGUF", "tiny.Q4.gguf"),
        Wheels("tiny-part{n}", "1.0", "tiny_part{n}/data/part{i:02}.bin", parts, size) if parts else None,
        "MIT", ("en",), 2_000_000,
    )  # fmt: skip


def write_wheels(folder: Path, file: ModelFile, content: bytes = CONTENT) -> list[Path]:
    """Write the wheels of a file into a folder that pip takes for `--find-links`."""
    folder.mkdir(parents=True, exist_ok=True)
    assert file.wheels is not None
    written: list[Path] = []
    for number, (requirement, member) in enumerate(file.wheels.parts()):
        part = content[number * file.wheels.part_bytes :][: file.wheels.part_bytes]
        written.append(write_wheel(folder, requirement, {member: part}))
    return written


def write_wheel(folder: Path, requirement: str, members: dict[str, bytes], modes: int = 0o644) -> Path:
    """Write a wheel with these members."""
    package, _, version = requirement.partition("==")
    stem = f"{package.replace('-', '_')}-{version}"
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = modes << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, raw)
        archive.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    return path
