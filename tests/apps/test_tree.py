import pytest

from taiwa.apps.faults import Faults, Spot
from taiwa.apps.tree import Items, Scalar, Table, json_of, read_tree


def read(text: str) -> object:
    faults = Faults()
    tree = read_tree(text, 1, faults)
    assert faults.found == []
    assert tree is not None
    return json_of(tree)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("3", 3),
        ("-0", 0),
        ("+7", 7),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ('"3"', "3"),
        ("'true'", "true"),
        ("|\n  3", "3"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("12:30:00", "12:30:00"),
        ("2024-01-01", "2024-01-01"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        ("=", "="),
        ("文", "文"),
    ],
)
def test_plain_words_mean_what_yaml_1_2_says(written: str, meant: object) -> None:
    held = read(f"a: {written}")

    assert held == {"a": meant}
    assert type(held["a"]) is type(meant)  # type: ignore[index]  # pyright: ignore[reportIndexIssue]


def test_keys_are_always_texts_and_a_merge_key_is_a_key_like_any_other() -> None:
    assert read("1: a\ntrue: b\nnull: c\n<<: { a: 1 }\n") == {"1": "a", "true": "b", "null": "c", "<<": {"a": 1}}


def test_everything_knows_its_place() -> None:
    tree = read_tree("a:\n  - b\n  - {c: d}\n", 10, Faults())

    assert isinstance(tree, Table)
    assert tree.at == Spot(10, 1)
    items = tree.entries[0].value
    assert isinstance(items, Items)
    assert [item.at for item in items.items] == [Spot(11, 5), Spot(12, 5)]
    inner = items.items[1]
    assert isinstance(inner, Table)
    assert (inner.entries[0].at, inner.entries[0].value.at) == (Spot(12, 6), Spot(12, 9))


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_only_what_an_editor_shows_as_a_line_counts_as_one(sign: str) -> None:
    tree = read_tree(f'a: "x{sign}y"\nb: 1\n', 1, Faults())

    assert isinstance(tree, Table)
    assert tree.entries[1].at == Spot(2, 1)


def test_a_scalar_knows_where_it_ends() -> None:
    text = "a: 'it''s' # so\nb: plain words\n"

    tree = read_tree(text, 1, Faults())

    assert isinstance(tree, Table)
    spans = [entry.value.span for entry in tree.entries if isinstance(entry.value, Scalar)]
    assert [text[start:end] for start, end in spans] == ["'it''s'", "plain words"]


def test_twenty_brackets_are_read_and_twenty_one_are_not() -> None:
    faults = Faults()

    assert read_tree("[" * 20 + "]" * 20, 1, faults) is not None
    assert faults.found == []
    assert read_tree("[" * 21 + "]" * 21, 1, faults) is None
    assert [fault.message for fault in faults.found] == ["nested deeper than 20"]


def test_nothing_is_read_from_nothing() -> None:
    faults = Faults()

    assert read_tree("# only a comment\n", 1, faults) is None
    assert faults.found == []
