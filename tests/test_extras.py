"""The command that a hint prints installs into this copy, however it was installed; imports need no POSIX system."""

import json
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from taiwa import extras
from taiwa.kernel.errors import ConfigError
from tests.house.source import ROOT


class Installed(Distribution):
    """A distribution with the given files of metadata."""

    def __init__(self, **files: str) -> None:
        self.files_of_metadata = files

    def read_text(self, filename: str) -> str | None:
        return self.files_of_metadata.get(filename.removesuffix(".json"))

    def locate_file(self, path: object) -> Path:
        raise NotImplementedError


def direct(**origin: object) -> str:
    return json.dumps(origin)


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ("", ["taiwa[serve]"]),
        (direct(url="file:///src/my%20taiwa", dir_info={}), ["/src/my taiwa[serve]"]),
        (direct(url="file:///src/taiwa", dir_info={"editable": True}), ["-e", "/src/taiwa[serve]"]),
        (
            direct(url="file:///dist/taiwa-0.1.0-py3-none-any.whl", archive_info={}),
            ["taiwa[serve] @ file:///dist/taiwa-0.1.0-py3-none-any.whl"],
        ),
        (
            direct(url="https://example.org/taiwa", vcs_info={"vcs": "git", "commit_id": "abc"}),
            ["taiwa[serve] @ git+https://example.org/taiwa@abc"],
        ),
    ],
    ids=["an index", "a folder", "an editable folder", "a wheel", "a repository"],
)
def test_a_hint_names_the_place_where_this_copy_came_from(
    monkeypatch: pytest.MonkeyPatch, origin: str, words: list[str]
) -> None:
    monkeypatch.setattr(extras, "_distribution", lambda: Installed(direct_url=origin))

    command = shlex.split(extras.install_command("serve"))

    assert command[: -len(words)][-1] == "install"
    assert command[-len(words) :] == words


def test_a_copy_of_uv_is_extended_by_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_distribution", lambda: Installed(INSTALLER="uv\n"))
    extras._installer.cache_clear()

    assert extras.install_command("serve").startswith("uv pip install --python ")
    extras._installer.cache_clear()


def test_a_copy_of_pipx_is_extended_by_pipx(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pipx_metadata.json").touch()
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    extras._installer.cache_clear()

    assert extras.install_command("serve").startswith("pipx runpip taiwa install ")
    extras._installer.cache_clear()


def test_every_extra_is_known_with_what_it_installs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = project["optional-dependencies"].keys() - {"dev", "bench"}

    assert set(extras.MODULES) == set(extras.EXTRAS) == declared


def test_the_error_of_a_missing_extra_is_one_line_with_the_command() -> None:
    message = extras.missing_extra("the server", "serve").message

    assert message.startswith("the server needs the extra serve; install it with: ")
    assert message.endswith(extras.install_command("serve"))
    assert "\n" not in message


def test_what_needs_posix_is_refused_on_windows_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    extras.require_posix("a store")
    monkeypatch.setattr("sys.platform", "win32")

    with pytest.raises(ConfigError, match="a store needs Linux or macOS; on Windows, install taiwa in WSL"):
        extras.require_posix("a store")


WINDOWS = """
import asyncio, click, concurrent.futures, ctypes, importlib, multiprocessing, os, pkgutil, pydantic, select, signal, socket, subprocess, sys, tempfile
import numpy, rich.console, sysconfig, tantivy, uvicorn
sysconfig.get_config_vars()
for name in ("fcntl", "grp", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None
for module, names in (
    (os, "fork register_at_fork getuid geteuid killpg fchmod fwalk getloadavg memfd_create sched_getaffinity sysconf"),
    (os, "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK"), (select, "poll POLLIN POLLOUT"),
    (signal, "SIGALRM SIGHUP SIGKILL SIGUSR1 setitimer"), (socket, "AF_UNIX socketpair send_fds recv_fds"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
sys.platform = "win32"
import taiwa
for module in pkgutil.walk_packages(taiwa.__path__, "taiwa."):
    if module.name.rpartition(".")[2] != "__main__":
        try:
            importlib.import_module(module.name)
        except Exception as error:
            print(module.name, type(error).__name__, error)
"""


@pytest.mark.slow
def test_no_module_fails_to_be_imported_on_windows() -> None:
    done = subprocess.run([sys.executable, "-c", WINDOWS], check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
