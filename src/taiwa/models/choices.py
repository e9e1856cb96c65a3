"""What stands behind the `?` in the name of a model: `name=value`, with `&` between them."""

from collections.abc import Sequence
from difflib import get_close_matches

from taiwa.kernel.errors import ConfigError

__all__ = ["chosen", "whole"]


def chosen(given: str, known: Sequence[str], kind: str) -> dict[str, str]:
    """Read the options of a model of some kind.

    Raises:
        ConfigError: one is not known.
    """
    found: dict[str, str] = {}
    for option in filter(None, given.split("&")):
        name, _, text = option.partition("=")
        if name not in known:
            near = get_close_matches(name, known, 1, 0.0)[0]
            raise ConfigError(f"{name!r} is no option of a {kind} model: did you mean {near!r}? ({', '.join(known)})")
        found[name] = text
    return found


def whole(name: str, text: str) -> int:
    """Read an option that is a number.

    Raises:
        ConfigError: it is none.
    """
    if not text.isdecimal() or len(text) > 9:
        raise ConfigError(f"{name} is a whole number, not {text!r}")
    return int(text)
