"""`typing.TypedDict` on Python 3.11: it keeps no record of its bases, so pydantic refuses it and takes that of typing_extensions."""

import sys
from types import UnionType
from typing import (
    Annotated,
    Any,
    NotRequired,
    Required,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from typing_extensions import TypedDict

from taiwa.kernel.errors import InputError

REFUSED = "typed-dict-version"
"""The code of pydantic's error."""
TAKE_OTHER = (
    "on Python 3.11 a TypedDict of typing loses its type parameters and its bases, so one that is generic, refers to itself, or "
    "is a field of a dataclass must come from typing_extensions"
)


def with_bases_resolved(annotation: Any) -> Any:  # noqa: ANN401  (no static type says "a type expression")
    """Return an annotation with each `typing.TypedDict` as one of typing_extensions that has the same keys.

    Whether a key is required is that of the class which declares it, or its own `Required` and `NotRequired`.

    Raises:
        InputError: a TypedDict has a generic one as its base, whose argument is lost.
    """
    return annotation if sys.version_info >= (3, 12) else _resolved(annotation, ())


def _resolved(annotation: Any, within: tuple[type, ...]) -> Any:  # noqa: ANN401
    if is_typeddict(annotation) and type(annotation).__module__ == "typing":
        if annotation in within or _parameters(annotation):
            return annotation  # pydantic refuses it
        return _copied(annotation, (*within, annotation))
    arguments = get_args(annotation)
    resolved = tuple(_resolved(each, within) for each in arguments)
    if resolved == arguments:
        return annotation
    origin: Any = get_origin(annotation)
    constructor: Any = {Annotated: Annotated, UnionType: Union}.get(origin, origin)
    return constructor[resolved]


def _parameters(hint: Any) -> tuple[object, ...]:  # noqa: ANN401
    return (hint,) if isinstance(hint, TypeVar) else cast("tuple[object, ...]", getattr(hint, "__parameters__", ()))


def _copied(cls: Any, within: tuple[type, ...]) -> Any:  # noqa: ANN401
    """Make a TypedDict of typing_extensions with the keys of one of typing, inherited ones too."""
    keys: dict[str, Any] = {}
    for name, hint in get_type_hints(cls, include_extras=True).items():
        if _parameters(hint):
            raise InputError(f"the class {cls.__name__} cannot be an output type: {TAKE_OTHER}")
        kind = get_origin(hint)
        if kind in (Required, NotRequired):
            keys[name] = kind[_resolved(get_args(hint)[0], within)]
        else:
            resolved = _resolved(hint, within)
            keys[name] = resolved if name in cls.__required_keys__ else NotRequired[resolved]
    made = cast("Any", TypedDict)(cls.__name__, keys)
    for name in ("__module__", "__qualname__", "__doc__", "__pydantic_config__"):
        if hasattr(cls, name):
            setattr(made, name, getattr(cls, name))
    return made
