"""Hypothesis strategies: values of a type, small programs, oracles."""

from collections.abc import Callable
from functools import partial
from typing import cast

from hypothesis import strategies as st

from taiwa.kernel.errors import OutputValidationError
from taiwa.kernel.records import Json
from taiwa.laws.programs import (
    Always,
    Arrow,
    Ask,
    Catch,
    ChooseByAnswer,
    CompleteAbout,
    Fail,
    Get,
    Notify,
    Oracle,
    Parallel,
    ProgramTerm,
    Pure,
    Put,
    PutAnswer,
    Then,
)
from taiwa.structured import OutputType
from taiwa.structured.ir import (
    AnyNode,
    ArrayNode,
    BoolNode,
    LiteralNode,
    Node,
    NullNode,
    NumberNode,
    ObjectNode,
    StringNode,
    TypeIR,
    UnionNode,
    resolve,
)

letters = st.characters(exclude_categories=["Cs"])
_few = st.sampled_from(["a", "b", "ab"])
_alike = st.sampled_from(["Ａ", "A ", "が", "か\u3099", "abc", ""])
texts = st.one_of(_few, _few, _few, _alike, st.text(letters, max_size=8))
"""Short texts, many of which equal or contain another, to exercise reducers."""
small_values: st.SearchStrategy[Json] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from(["", "a", "b"]),
    st.lists(st.integers(0, 2), max_size=2),
)  # pyright: ignore[reportAssignmentType]  # a list of JSON, which is invariant
any_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
MAX_ITEMS = 3
MAX_NUMBER = 10**6


def oracles(*, counting: bool) -> st.SearchStrategy[Callable[[], Oracle]]:
    """Draw factories that make the same oracle at every call; with `counting`, also oracles that count their calls."""
    counts = st.booleans() if counting else st.just(False)
    drawn = st.tuples(st.integers(0, 99), counts, st.sampled_from([0, 0, 3]))
    return drawn.map(lambda arguments: partial(Oracle, *arguments))


def _composite_terms(inner: st.SearchStrategy[ProgramTerm]) -> st.SearchStrategy[ProgramTerm]:
    return st.one_of(
        st.builds(Catch, inner, inner),
        st.builds(Parallel, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Then, inner, _arrows(inner)),
    )


def _arrows(inner: st.SearchStrategy[ProgramTerm]) -> st.SearchStrategy[Arrow]:
    return st.one_of(
        st.builds(Always, inner),
        st.builds(CompleteAbout, st.sampled_from("pq")),
        st.just(PutAnswer()),
        st.builds(ChooseByAnswer, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    )


_words = st.sampled_from("xyz")
terms: st.SearchStrategy[ProgramTerm] = st.recursive(
    st.one_of(
        st.builds(Ask, _words),
        st.builds(Pure, small_values),
        st.builds(Put, small_values),
        st.builds(Notify, _words),
        st.just(Get()),
        st.builds(Fail, _words),
    ),
    _composite_terms,
    max_leaves=6,
)
arrows = _arrows(terms)


def values(output_type: OutputType[dict[str, Json]]) -> st.SearchStrategy[dict[str, Json]]:
    """Draw values of a type, as its validator returns them."""

    def fits(data: Json) -> bool:
        try:
            output_type.validate(data)
        except OutputValidationError:
            return False
        return True

    return _values(output_type.type_ir.root, output_type.type_ir).filter(fits).map(output_type.validate)


def _values(node: Node, form: TypeIR) -> st.SearchStrategy[Json]:
    match resolve(node, form):
        case NullNode():
            return st.none()
        case BoolNode():
            return st.booleans()
        case NumberNode() as number:
            return _numbers(number)
        case StringNode(shortest, longest, pattern):
            if pattern:
                return st.from_regex(pattern)
            return texts if shortest == 0 and longest is None else st.text(letters, min_size=shortest, max_size=longest)
        case LiteralNode(options):
            return st.sampled_from(options)
        case ArrayNode() as array:
            return _lists(array, form)
        case ObjectNode() as table:
            return _objects(table, form)
        case UnionNode(options):
            return st.one_of([_values(option, form) for option in options])
        case AnyNode() | _:
            return any_values


def _numbers(node: NumberNode) -> st.SearchStrategy[Json]:
    low = -MAX_NUMBER if node.minimum is None else node.minimum
    high = MAX_NUMBER if node.maximum is None else node.maximum
    if node.integer:
        return st.integers(int(low), int(high))
    written = st.integers(int(low * 100), int(high * 100)).map(lambda number: number / 100)
    return written | st.floats(low, high, allow_nan=False, allow_infinity=False)


def _lists(node: ArrayNode, form: TypeIR) -> st.SearchStrategy[Json]:
    first = [_values(part, form) for part in node.prefix]
    most = max(node.min_items, MAX_ITEMS) if node.max_items is None else min(node.max_items, node.min_items + MAX_ITEMS)
    rest = st.lists(
        st.deferred(lambda: _values(node.items, form)), min_size=max(node.min_items - len(first), 0), max_size=most
    )
    return st.tuples(st.tuples(*first), rest).map(lambda pair: [*pair[0], *pair[1]])


def _objects(node: ObjectNode, form: TypeIR) -> st.SearchStrategy[Json]:
    def part(inner: Node) -> st.SearchStrategy[Json]:
        return st.deferred(lambda: _values(inner, form))

    named = st.fixed_dictionaries(
        {each.name: part(each.node) for each in node.properties if each.required},
        optional={each.name: part(each.node) for each in node.properties if not each.required},
    )
    if node.properties or node.extra is None:
        return cast("st.SearchStrategy[Json]", named)
    return st.dictionaries(
        texts, part(node.extra), min_size=node.min_properties, max_size=node.min_properties + MAX_ITEMS
    )
