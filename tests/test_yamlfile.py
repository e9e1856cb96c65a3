import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.yamlfile import Items, Location, Scalar, Table, Tree, parse_yaml, read_settings, read_yaml, to_json

Problems = list[tuple[Location, str, str]]


def parse(text: str, problems: Problems | None = None, line: int = 1) -> Tree | None:
    found: Problems = [] if problems is None else problems
    tree = parse_yaml(text, lambda at, message, hint: found.append((at, message, hint)), line)
    assert problems is not None or found == []
    return tree


def read(text: str) -> object:
    tree = parse(text)
    assert tree is not None
    return to_json(tree)


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
    values = read(f"a: {written}")

    assert values == {"a": meant}
    assert type(values["a"]) is type(meant)  # type: ignore[index]


def test_keys_are_always_texts_and_a_merge_key_is_a_key_like_any_other() -> None:
    assert read("1: a\ntrue: b\nnull: c\n<<: { a: 1 }\n") == {"1": "a", "true": "b", "null": "c", "<<": {"a": 1}}


def test_everything_knows_its_place() -> None:
    tree = parse("a:\n  - b\n  - {c: d}\n", line=10)

    assert isinstance(tree, Table)
    assert tree.at == Location(10, 1)
    items = tree.entries[0].value
    assert isinstance(items, Items)
    assert [item.at for item in items.items] == [Location(11, 5), Location(12, 5)]
    inner = items.items[1]
    assert isinstance(inner, Table)
    assert (inner.entries[0].at, inner.entries[0].value.at) == (Location(12, 6), Location(12, 9))


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_only_what_an_editor_shows_as_a_line_counts_as_one(sign: str) -> None:
    tree = parse(f'a: "x{sign}y"\nb: 1\n')

    assert isinstance(tree, Table)
    assert tree.entries[1].at == Location(2, 1)


def test_a_scalar_knows_where_it_ends() -> None:
    text = "a: 'it''s' # so\nb: plain words\n"

    tree = parse(text)

    assert isinstance(tree, Table)
    spans = [entry.value.span for entry in tree.entries if isinstance(entry.value, Scalar)]
    assert [text[start:end] for start, end in spans] == ["'it''s'", "plain words"]


def test_twenty_brackets_are_read_and_twenty_one_are_not() -> None:
    problems: Problems = []

    assert parse("[" * 20 + "]" * 20, problems) is not None
    assert problems == []
    assert parse("[" * 21 + "]" * 21, problems) is None
    assert [message for _, message, _ in problems] == ["nested deeper than 20"]


def test_nothing_is_read_from_nothing() -> None:
    problems: Problems = []

    assert parse("# only a comment\n", problems) is None
    assert problems == []


def test_a_text_above_the_bound_is_not_parsed() -> None:
    problems: Problems = []

    assert parse_yaml("a: 1", lambda *problem: problems.append(problem), max_chars=3) is None
    assert problems == [(Location(0), "4 characters are too many (at most 3)", "make it smaller")]


def test_a_text_of_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taiwa.yamlfile.MAX_NODES", 10)

    with pytest.raises(ConfigError, match=r"^a\.yaml:1: more than 10 values; divide the file$"):
        read_yaml(f"[{'x, ' * 10}x]", "a.yaml")
    assert read_yaml(f"[{'x, ' * 8}x]", "a.yaml") is not None


def test_the_first_of_two_values_of_a_key_stays_and_the_second_is_reported() -> None:
    problems: Problems = []

    tree = parse("a: 1\nb: 2\na: 3\n", problems)

    assert tree is not None
    assert to_json(tree) == {"a": 1, "b": 2}
    assert problems == [(Location(3, 1), "'a' is set twice (first in line 1)", "keep one")]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: &x 1\nb: *x\n", "f:1: the anchor '&x'; "),
        ("a: 1\nb: [\n", "f:3: not YAML: "),
        ("a: !t 1", "f:1: the tag '!t'; "),
    ],
)
def test_the_first_problem_is_raised_with_its_line(text: str, where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_yaml(text, "f")

    assert caught.value.message.startswith(where)


def test_settings_keep_every_text_as_written_and_a_null_sets_nothing() -> None:
    text = "a: 0.10\nb: 1e999999\nc: yes\nd: ~\ne: {f: 012, g: 'null'}\n"

    assert {keys: scalar.text for keys, scalar in read_settings(text, "f").items()} == {
        ("a",): "0.10", ("b",): "1e999999", ("c",): "yes", ("e", "f"): "012", ("e", "g"): "null",
    }  # fmt: skip


def test_the_spans_of_entries_and_tables_end_before_the_comments_behind_them() -> None:
    text = "a:\n  b: 1 # one\n  c: [x,\n    y]\n# end\nd: {e: f} # so\n"

    tree = parse(text)

    assert isinstance(tree, Table)
    assert [text[slice(*entry.span)] for entry in tree.entries] == ["a:\n  b: 1 # one\n  c: [x,\n    y]", "d: {e: f}"]
    assert [text[slice(*entry.value.span)] for entry in tree.entries] == ["b: 1 # one\n  c: [x,\n    y]", "{e: f}"]
