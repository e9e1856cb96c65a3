"""Value classes: frozen, slotted dataclasses that can be recorded and that cost little to import."""

from collections.abc import Callable
from dataclasses import Field, FrozenInstanceError, dataclass, fields
from operator import attrgetter
from typing import Any, TypeVar, cast, dataclass_transform

__all__ = ["name_of", "registry", "value"]

T = TypeVar("T")

KEPT = ("taiwa.kernel.", "taiwa.conversation.node")
"""Where the classes live that stores keep: their names never depend on the file they are written in."""

registry: dict[str, type[Any]] = {}
"""Every value class by the name it has in records."""


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Make a class a frozen, slotted dataclass that can be recorded.

    Fields and slots come from `dataclass`; the methods are closures, and `__init__` is compiled when the first instance is
    made. Letting `dataclass` compile six methods for every class is half of the time that importing the kernel takes.

    Raises:
        TypeError: another class of ours has that name, and a record would not say which of the two it holds.
    """
    name, known = name_of(cls), registry.get(name_of(cls))
    if known is not None and known.__module__ != cls.__module__:
        raise TypeError(f"{name} is already the name of {known.__module__}.{known.__qualname__}: choose another")
    own = {name: part for name, part in cls.__dict__.items() if name not in {"__dict__", "__weakref__"}}
    made = dataclass(init=False, eq=False, repr=False, slots=True)(cls)
    layout = fields(cast("type[Any]", made))
    for method in (_first_init(made, own), *_comparing(made, layout), *_copying(made, layout), *_freezing()):
        if method.__name__ not in own:
            setattr(made, method.__name__, method)
    registry[name] = made
    return made


def name_of(cls: type[Any]) -> str:
    """Name a class in records: by its bare name where stores keep it, with its module elsewhere."""
    if cls.__module__.startswith(KEPT):
        return cls.__name__
    return f"{cls.__module__.removeprefix('taiwa.')}.{cls.__qualname__}"


def _first_init(made: type[Any], own: dict[str, Any]) -> Callable[..., None]:
    names = {"__annotations__", *own.get("__annotations__", {})}

    def __init__(self: object, *arguments: object, **named: object) -> None:  # noqa: N807
        like = type(made.__name__, (), {name: part for name, part in own.items() if name in names})
        compiled: Callable[..., None] = vars(dataclass(frozen=True, eq=False, repr=False)(like))["__init__"]
        type.__setattr__(made, "__init__", compiled)
        compiled(self, *arguments, **named)

    return __init__


def _comparing(made: type[Any], layout: tuple[Field[Any], ...]) -> tuple[Callable[..., object], ...]:
    compared = [field.name for field in layout if field.compare]
    values: Callable[[object], object] = attrgetter(*compared) if compared else lambda _: ()

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        return self is other or (other.__class__ is made and bool(values(self) == values(other)))

    def __hash__(self: object) -> int:  # noqa: N807
        return hash((made, values(self)))

    return __eq__, __hash__


def _copying(made: type[Any], layout: tuple[Field[Any], ...]) -> tuple[Callable[..., object], ...]:
    names = tuple(field.name for field in layout)
    shown = tuple(field.name for field in layout if field.repr)

    def __repr__(self: object) -> str:  # noqa: N807
        return f"{made.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __reduce__(self: object) -> tuple[object, ...]:  # noqa: N807
        return made, tuple(getattr(self, name) for name in names)

    return __repr__, __reduce__


def _freezing() -> tuple[Callable[..., object], ...]:
    def __setattr__(self: object, name: str, _: object) -> None:  # noqa: N807
        raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot change: make another with dataclasses.replace")

    def __delattr__(self: object, name: str) -> None:  # noqa: N807
        raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be removed")

    return __setattr__, __delattr__
