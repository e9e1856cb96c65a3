"""Random types, values, APIs and programs over them."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from taiwa.flows.plans import Api, reads, writes
from taiwa.kernel.serialization import Json


@dataclass
class Point:
    x: int
    y: float


@dataclass
class Spot:
    x: float
    y: float | None = None


class Label(TypedDict):
    x: int
    name: NotRequired[str]


class Tree(BaseModel):
    value: int
    children: "list[Tree]" = []


LEAF: Json = {"value": 1, "children": []}
Make = Callable[[Random], Json]
KINDS: list[tuple[Any, Make]] = [
    (int, lambda r: r.randint(-5, 20)),
    (float, lambda r: r.choice([0.5, -2.25, 3])),
    (bool, lambda r: r.random() < 0.5),
    (str, lambda r: r.choice(["", "a", "ab", "abc", "@ref"])),
    (None, lambda _: None),
    (Literal["a", "ab"], lambda r: r.choice(["a", "ab"])),
    (Literal[1, 2], lambda r: r.choice([1, 2])),
    (int | None, lambda r: r.choice([None, 1, 7])),
    (int | str, lambda r: r.choice(["abc", 7])),
    (list[int], lambda r: [r.randint(0, 3) for _ in range(r.randint(0, 3))]),
    (list[float], lambda r: [r.choice([0.5, 1]) for _ in range(r.randint(0, 3))]),
    (tuple[int, str], lambda r: [r.randint(0, 3), "ab"]),
    (dict[str, int], lambda r: {key: r.randint(0, 3) for key in "abx"[: r.randint(0, 3)]}),
    (Point, lambda r: {"x": r.randint(0, 3), "y": r.choice([1, 1.5])}),
    (Spot, lambda r: r.choice([{"x": 1}, {"x": 1.5, "y": 2}, {"x": 0, "y": None}])),
    (list[Point], lambda r: [{"x": r.randint(0, 3), "y": 0.5} for _ in range(r.randint(0, 2))]),
    (Label, lambda r: r.choice([{"x": 1}, {"x": 2, "name": "a"}])),
    (Tree, lambda r: {"value": r.randint(0, 3), "children": [LEAF] * r.randint(0, 2)}),
    (Any, lambda r: r.choice([None, 1, "a", [1], {"x": 1}])),
]
BOUNDED: list[tuple[Any, Make]] = [
    (Annotated[int, Field(ge=0, le=9)], lambda r: r.randint(0, 9)),
    (Annotated[int, Field(gt=0)], lambda r: r.randint(1, 20)),
    (Annotated[str, Field(min_length=2)], lambda r: r.choice(["ab", "abc"])),
    (Annotated[list[int], Field(min_length=1)], lambda r: [r.randint(0, 3) for _ in range(r.randint(1, 3))]),
]


@dataclass
class Playground:
    """A random API; what makes results of each function, and values for each of its parameters."""

    api: Api
    results: dict[str, Make]
    values: dict[str, list[Make]]


def random_api(random: Random, kinds: list[tuple[Any, Make]] = KINDS) -> Playground:
    """An API of a few functions over a few types, so that results often fit."""
    few = random.sample(kinds, min(4, len(kinds)))
    methods: dict[str, object] = {}
    made = Playground(Api(type("Random", (), {"f": method("f", [], 0, int)})), {}, {})
    for number in range(random.randint(1, 5)):
        name = f"f{number}"
        given = [random.choice(few) for _ in range(random.randint(0, 3))]
        returns, made.results[name] = random.choice(few)
        made.values[name] = [make for _, make in given]
        function = method(name, [kind for kind, _ in given], random.randint(0, len(given)), returns)
        methods[name] = random.choice([reads, writes])(function)
    made.api = Api(type("Random", (), methods))
    return made


def method(name: str, kinds: list[Any], needed: int, returns: Any) -> Callable[..., object]:
    """A method of these types; what comes after the first `needed` parameters may be left out."""

    def function(*_: object) -> None: ...

    own = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for at, kind in enumerate(kinds):
        default = inspect.Parameter.empty if at < needed else ...
        own.append(
            inspect.Parameter(f"p{at}", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
        )
    function.__name__ = function.__qualname__ = name
    function.__annotations__ = {f"p{at}": kind for at, kind in enumerate(kinds)} | {"return": returns}
    setattr(function, "__signature__", inspect.Signature(own))  # noqa: B010  (mypy does not know it)
    return function


def random_steps(random: Random, made: Playground) -> Json:
    """Steps that are often right."""
    names: list[str] = []
    steps: list[Json] = []
    for _ in range(random.randint(0, 5)):
        name = random.choice(["unknown", "nothing"]) if random.random() < 0.05 else random.choice([*made.results])
        steps.append(random_call(random, made, name, names))
        names.append(name)
    return {"@steps": steps}


def random_call(random: Random, made: Playground, name: str, before: list[str], depth: int = 2) -> Json:
    function = made.api.functions.get(name)
    if function is None:
        return {"@func": name, "@args": ["cannot do this"]}
    count = random.randint(function.fewest, len(function.parameters))
    makes = made.values[name][:count] + [KINDS[0][1]] * (random.random() < 0.03)
    return {"@func": name, "@args": [random_argument(random, made, make, before, depth) for make in makes]}


def random_argument(random: Random, made: Playground, make: Make, before: list[str], depth: int) -> Json:
    """A value that fits, something in its place, or anything at all."""
    kind = random.random()
    if kind < 0.5:
        same = [at for at, name in enumerate(before) if made.results.get(name) is make]
        if same or random.random() < 0.1:
            return {"@ref": random.choice(same or [random.randint(-1, 6)])}
    if kind < 0.6 and depth:
        same = [name for name, result in made.results.items() if result is make]
        return random_call(random, made, random.choice(same or [*made.results]), before, depth - 1)
    value = random.choice(KINDS)[1](random) if kind > 0.97 else make(random)
    if depth and isinstance(value, list):
        return [random_argument(random, made, lambda _, each=each: each, before, 0) for each in value]
    if depth and isinstance(value, dict):
        return {key: random_argument(random, made, lambda _, each=each: each, before, 0) for key, each in value.items()}
    return value
