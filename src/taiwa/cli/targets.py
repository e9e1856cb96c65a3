"""What a person names as a type: `module:Type`, or the file of a JSON Schema."""

import importlib
import json
import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeGuard, cast

from taiwa.kernel.errors import InputError, TaiwaError

if TYPE_CHECKING:
    from taiwa.kernel.records import Json
    from taiwa.shape import Shape

__all__ = ["load_shape"]


def load_shape(target: str) -> "Shape[Any]":
    """Find a type. `module:Type` imports the module, and so runs it, as `python -m` would, from the current folder.

    Raises:
        InputError: there is no such type, it cannot be used, or the module failed.
    """
    from taiwa.shape import Shape

    if target.endswith(".json"):
        return _from_file(Path(target))
    module, sign, path = target.partition(":")
    if not sign or not module or not path:
        raise InputError(f"{target!r} names no type: give module:Type, or a JSON Schema in a file that ends in .json")
    found: Any = _imported(module)
    for name in path.split("."):
        if not hasattr(found, name):
            here = getattr(found, "__name__", module)
            raise InputError(f"{here} has no {name!r}{_nearest(found, name)}")
        found = getattr(found, name)
    return found if _is_shape(found) else Shape[Any](found)


def _is_shape(found: object) -> TypeGuard["Shape[Any]"]:
    from taiwa.shape import Shape

    return isinstance(found, Shape)


def _imported(module: str) -> object:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    with _Foreign(module):
        return importlib.import_module(module)
    raise AssertionError  # the guard above always raises


def _nearest(found: object, name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, [each for each in dir(found) if not each.startswith("_")], 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _from_file(path: Path) -> "Shape[Any]":
    from taiwa.cli.opening import read_file
    from taiwa.shape import Shape

    try:
        schema = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise InputError(f"{path} is no JSON Schema: it must be an object")
    named = cast("dict[str, Json]", schema)
    try:
        return Shape.from_json_schema(named, name=_named(path.stem) if "title" not in schema else "")
    except InputError as error:
        raise InputError(f"{path}: {error.message}") from error


def _named(stem: str) -> str:
    words = "".join(word.capitalize() for word in "".join(c if c.isalnum() else " " for c in stem).split())
    return words if words.isidentifier() else ""


class _Foreign:
    """Whatever somebody else's module raises while it runs is a fault of the input, and no crash of ours."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, (KeyboardInterrupt, TaiwaError)):
            return
        root = self._module.partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and error.name in (self._module, root):
            raise InputError(f"there is no module {self._module!r}, here ({Path.cwd()}) or installed") from error
        words = " ".join(str(error).split())
        raise InputError(f"{self._module} cannot be imported: {type(error).__name__}: {words}") from error
