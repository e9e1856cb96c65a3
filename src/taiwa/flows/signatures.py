"""What a class of annotated functions says of itself: names, parameters, results, and what each function does to the world."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_type_hints

from taiwa.kernel.errors import InputError
from taiwa.shape import Shape
from taiwa.shape.form import About, ArrayNode, Form, Node, retold

__all__ = ["UNKNOWN", "Access", "Function", "Parameter", "Signatures", "reads", "signatures", "writes"]

F = TypeVar("F", bound=Callable[..., object])
Access: TypeAlias = Literal["read", "write"]
"""A function that reads changes nothing, however often it is called; one that writes may."""

UNKNOWN = "unknown"
MARK = "__taiwa_access__"
FOREIGN = ("builtins", "typing", "typing_extensions")
"""Where the bases are whose functions are nobody's API: object, Protocol, Generic."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}\Z")


def reads(function: F) -> F:
    """Declare that a function of an API changes nothing: it runs in a dry run, beside others, and without being confirmed."""
    return _marked(function, "read")


def writes(function: F) -> F:
    """Declare that a function of an API changes something: it is confirmed, runs alone, and not in a dry run."""
    return _marked(function, "write")


def _marked(function: F, access: Access) -> F:
    setattr(function, MARK, access)
    return function


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `node` is its type in the form of all signatures."""

    name: str
    shape: Shape[Any]
    node: Node
    required: bool


@dataclass(frozen=True, slots=True)
class Function:
    """One function of an API."""

    name: str
    about: str
    access: Access
    parameters: tuple[Parameter, ...]
    returns: Shape[Any]
    node: Node

    @property
    def fewest(self) -> int:
        """How many arguments it needs."""
        return sum(each.required for each in self.parameters)

    @property
    def head(self) -> str:
        """Its name and parameters in short: `buy(drink, cups?)`."""
        return f"{self.name}({', '.join(each.name + ('' if each.required else '?') for each in self.parameters)})"


@dataclass(frozen=True, slots=True)
class Signatures:
    """All functions of an API by name, and the one form in which their types can be compared."""

    name: str
    about: str
    functions: dict[str, Function]
    form: Form


@dataclass(frozen=True, slots=True)
class _Found:
    """A function as Python knows it, without `self`."""

    name: str
    function: Callable[..., object]
    parameters: tuple[inspect.Parameter, ...]
    types: dict[str, Any]

    @property
    def all_types(self) -> list[Any]:
        """The types of its parameters, then that of its result."""
        return [*(self.types[each.name] for each in self.parameters), self.types["return"]]

    def finish(self, nodes: Iterator[Node], undeclared: Access) -> Function:
        """Make the function of an API; `nodes` gives those of its types."""
        parameters = tuple(
            Parameter(
                each.name,
                Shape(self.types[each.name], name=each.name),
                _with_default(next(nodes), each.default),
                each.default is each.empty,
            )
            for each in self.parameters
        )
        about = " ".join((inspect.getdoc(self.function) or "").split())
        access: Access = getattr(self.function, MARK, undeclared)
        return Function(self.name, about, access, parameters, Shape(self.types["return"], name="result"), next(nodes))


def signatures(source: type | ModuleType, undeclared: Access) -> Signatures:
    """Read the public functions of a class or module, in the order in which they are written.

    Raises:
        InputError: a function cannot be called by name with values of known types.
    """
    name = source.__name__.rpartition(".")[2]
    found = tuple(_found(name, each, given, source) for each, given in _given(source).items())
    if not found:
        raise InputError(f"{name} has no public function, so no program can call anything")
    types = tuple(part for each in found for part in each.all_types)
    form = Shape(cast("Any", tuple)[types]).bare  # one form for all, in which a name means one type
    assert isinstance(form.root, ArrayNode), "a tuple is a list"
    nodes = iter(form.root.prefix)
    functions = {each.name: each.finish(nodes, undeclared) for each in found}
    about = " ".join(inspect.cleandoc(vars(source).get("__doc__") or "").split())
    return Signatures(name, about, functions, form)


def _given(source: type | ModuleType) -> dict[str, object]:
    """The public attributes that are functions; a class takes over those of its bases."""
    if isinstance(source, ModuleType):
        own = {name: part for name, part in vars(source).items() if getattr(part, "__module__", "") == source.__name__}
        places = [own]
    else:
        bases = [each for each in reversed(source.__mro__) if each.__module__ not in FOREIGN]
        places = [dict(vars(each)) for each in bases]
    found = {name: part for place in places for name, part in place.items()}
    kinds = (staticmethod, classmethod)
    return {
        name: part
        for name, part in found.items()
        if not name.startswith("_") and (inspect.isfunction(part) or isinstance(part, kinds))
    }


def _found(api: str, name: str, given: Any, source: type | ModuleType) -> _Found:  # noqa: ANN401  (any kind of method)
    function: Callable[..., object] = getattr(given, "__func__", given)
    where = f"{api}.{name}"
    if name == UNKNOWN or not NAME.match(name):
        why = "it says that the API cannot do something" if name == UNKNOWN else "use at most 64 letters, digits and _"
        raise InputError(f"{where}: no function may be called {name!r}: {why}")
    if inspect.iscoroutinefunction(function):
        raise InputError(f"{where} is asynchronous; a program calls plain functions")
    parameters = tuple(inspect.signature(function).parameters.values())
    if not isinstance(source, ModuleType) and not isinstance(given, staticmethod):
        parameters = parameters[1:]
    try:
        types = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise InputError(f"{where}: its types cannot be read: {error}") from error
    for each in parameters:
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            raise InputError(f"{where}: {each.name!r} must be an ordinary parameter, which can be given by its name")
    missing = [each for each in (*(part.name for part in parameters), "return") if each not in types]
    if missing:
        raise InputError(f"{where}: {missing[0]!r} needs a type")
    if any(
        before.default is not before.empty and after.default is after.empty for before, after in pairwise(parameters)
    ):
        raise InputError(f"{where}: parameters with a default come last, because arguments are given in order")
    return _Found(name, function, parameters, types)


def _with_default(node: Node, default: object) -> Node:
    if not isinstance(default, (bool, int, float, str, type(None))):
        return node
    return retold(node, About(default=default))
