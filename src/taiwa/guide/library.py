"""The engine itself. It comes with an extra, and nothing is imported before a guide is compiled."""

from importlib import import_module
from typing import Any

from taiwa.kernel.errors import ConfigError

__all__ = ["library"]


def library() -> Any:  # noqa: ANN401  (a module)
    """The module `llguidance`.

    Raises:
        ConfigError: the extra is not installed.
    """
    try:
        import_module("numpy")  # masks are its arrays
        return import_module("llguidance")
    except ImportError:
        raise ConfigError("constraints for local models need an extra: pip install 'taiwa[guide]'") from None
