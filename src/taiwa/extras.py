"""What this copy of taiwa has and lacks: its extras, how to install them into it, and what needs a POSIX system."""

import json
import shlex
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args
from urllib.parse import unquote, urlsplit

from taiwa.kernel.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

Extra: TypeAlias = Literal[
    "serve", "gguf", "local", "docs", "dense", "constraints", "typescript", "repair", "mcp", "postgres", "charts", "ray"
]
EXTRAS: tuple[Extra, ...] = get_args(Extra)
MODULES: dict[Extra, tuple[str, ...]] = {
    "serve": ("starlette", "uvicorn", "jinja2", "mdit_py_plugins", "pygments", "latex2mathml", "python_multipart"),
    "gguf": ("xllamacpp", "llguidance", "numpy", "jinja2", "huggingface_hub"),
    "local": ("torch", "transformers", "llguidance", "numpy", "huggingface_hub", "jinja2"),
    "docs": ("pypdfium2", "mammoth", "trafilatura"),
    "dense": ("tokenizers", "numpy"),
    "constraints": ("llguidance", "numpy", "lark"),
    "typescript": ("tree_sitter", "tree_sitter_typescript"),
    "repair": ("json_repair",),
    "mcp": ("mcp",),
    "postgres": ("psycopg", "psycopg_pool", "numpy"),
    "charts": ("matplotlib",),
    "ray": ("ray",),
}
"""What each extra installs, by the names under which it is imported."""


def is_installed(extra: Extra) -> bool:
    """Whether everything that an extra installs is here."""
    return all(find_spec(module) for module in MODULES[extra])


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this copy of taiwa, from the place where the copy came from.

    An index knows no name for a copy that was installed from a folder, a file or a repository.
    """
    options, requirement = _origin(extra)
    return shlex.join([*_installer(), *options, requirement])


def missing_extra(what: str, extra: Extra) -> ConfigError:
    """Return the error for a part whose extra is not installed."""
    return ConfigError(f"{what} needs the extra {extra}; install it with: {install_command(extra)}")


def require_modules(what: str, extra: Extra, *modules: str) -> None:
    """Check that modules of an extra are installed.

    Raises:
        ConfigError: one is not; the message has the command that installs the extra.
    """
    if not all(find_spec(module) for module in modules):
        raise missing_extra(what, extra)


def require_posix(what: str) -> None:
    """Check that the system has what POSIX defines: locks of files, limits of processes, sockets with a path.

    Raises:
        ConfigError: it is Windows.
    """
    if sys.platform == "win32":
        raise ConfigError(f"{what} needs Linux or macOS; on Windows, install taiwa in WSL")


def _distribution() -> "Distribution | None":
    """Return the metadata of this copy; None if it is used from its source without being installed."""
    from importlib.metadata import Distribution, PackageNotFoundError

    try:
        return Distribution.from_name("taiwa")
    except PackageNotFoundError:
        return None


@cache
def _installer() -> tuple[str, ...]:
    if (Path(sys.prefix) / "pipx_metadata.json").is_file():
        return "pipx", "runpip", "taiwa", "install"
    installed = _distribution()
    by = (installed.read_text("INSTALLER") or "").strip() if installed is not None else ""
    if by == "uv" or find_spec("pip") is None:
        return "uv", "pip", "install", "--python", sys.executable
    return sys.executable, "-m", "pip", "install"


def _origin(extra: str) -> tuple[tuple[str, ...], str]:
    """Return the options of the installer and the requirement that name this copy with an extra."""
    installed = _distribution()
    if installed is None:
        return ("-e",), f"{Path(__file__).parents[2]}[{extra}]"
    text = installed.read_text("direct_url.json")
    origin = json.loads(text) if text else {}
    url = str(origin.get("url", ""))
    if not url:
        return (), f"taiwa[{extra}]"
    if "dir_info" in origin:
        folder = unquote(urlsplit(url).path)
        return ("-e",) if origin["dir_info"].get("editable") else (), f"{folder}[{extra}]"
    revision = origin.get("vcs_info")
    if revision:
        url = f"{revision['vcs']}+{url}@{revision['commit_id']}"
    return (), f"taiwa[{extra}] @ {url}"
