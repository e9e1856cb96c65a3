"""Filters over the attributes of documents."""

from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.serialization import Json
from taiwa.retrieval.index import COMPARISONS, documents_that_fit, fits

VALUES = st.one_of(st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False), st.text(max_size=2))
OPPOSITES = {"eq": "ne", "in": "nin"}


@given(st.sampled_from(COMPARISONS), VALUES, st.dictionaries(st.sampled_from("ab"), VALUES))
def test_every_comparison_answers_and_its_opposite_says_the_opposite(kind, value, attributes):  # type: ignore[no-untyped-def]
    wanted = [value] if kind in ("in", "nin") else value
    found = fits({"type": kind, "key": "a", "value": wanted}, attributes)
    if kind in OPPOSITES:
        assert fits({"type": OPPOSITES[kind], "key": "a", "value": wanted}, attributes) is not found


def test_a_document_is_looked_up_by_its_id_and_its_index_once() -> None:
    asked: list[str] = []

    def attributes(index: str) -> dict[str, dict[str, int]]:
        asked.append(index)
        return {"file-c2hvcC9hLm1k": {"year": 1}, "file-" + "0" * 24: {"year": 1}}

    fit = documents_that_fit({"type": "eq", "key": "year", "value": 1}, attributes)
    paths = ("a.md", "b.md", f"file-{'0' * 24}/c.md")
    assert [fit("shop", path) for path in paths] == [True, False, True]
    assert asked == ["shop"]


def test_what_is_no_filter_fits_nothing() -> None:
    wrong: list[Json] = [
        None,
        [],
        1,
        {"type": "and"},
        {"type": "or", "filters": [1]},
        {"type": "x", "key": "a", "value": 1},
    ]
    assert not any(fits(each, {"a": 1}) for each in wrong)
