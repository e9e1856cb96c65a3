"""Random small JSON Schemas of the kinds that every engine knows, and JSON values that might fit them."""

from typing import Any

from hypothesis import strategies as st

DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-20, 20) | st.text('aé"', max_size=3) | st.sampled_from([0.5, "x.y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
SIZES = st.integers(0, 3)
LEAVES = st.one_of(
    st.sampled_from([{"type": "null"}, {"type": "boolean"}, {"type": "number"}, {"type": "string"}]),
    st.tuples(st.integers(-20, 5), st.integers(6, 120)).map(
        lambda pair: {"type": "number", "minimum": pair[0], "maximum": pair[1]}
    ),
    st.tuples(st.sampled_from(["minimum", "exclusiveMinimum"]), st.integers(-20, 5), st.integers(7, 20)).map(
        lambda three: {"type": "integer", three[0]: three[1], "maximum": three[2]}
    ),
    st.tuples(SIZES, SIZES).map(lambda pair: {"type": "string", "minLength": min(pair), "maxLength": max(pair)}),
    st.lists(st.sampled_from(["a", "x.y", 1, None, True]), min_size=1, max_size=3, unique_by=str).map(
        lambda options: {"enum": options}
    ),
    st.sampled_from([{"const": "x.y"}, {"type": "string", "pattern": "^a"}, {"type": ["integer", "null"]}]),
)


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Small schemas."""
    return st.recursive(LEAVES, _larger, max_leaves=5)


def _larger(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.tuples(inner, SIZES, SIZES).map(
            lambda three: {"type": "array", "items": three[0], "minItems": min(three[1:]), "maxItems": max(three[1:])}
        ),
        st.tuples(
            st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3), st.sets(st.sampled_from("abc"))
        ).map(
            lambda two: {
                "type": "object",
                "properties": two[0],
                "required": sorted(two[1] & set(two[0])),
                "additionalProperties": False,
            }
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts}),
    )
