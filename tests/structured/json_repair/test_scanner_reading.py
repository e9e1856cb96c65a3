"""What is mended, how sure each mend is, and what is never done."""

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from taiwa.kernel import OutputValidationError
from taiwa.structured import Fix, OutputType, ParseOptions, ParseResult, parse
from taiwa.structured.parse import STANDARD


class Item(BaseModel):
    sku: str
    count: int = 1


class Order(BaseModel):
    name: str
    items: list[Item] = []
    note: str | None = None


ORDER = OutputType(Order)
ANY = OutputType(Any)
PLAIN = '{"name": "Ana", "items": [{"sku": "a", "count": 2}], "note": "x"}'
WHOLE = Order(name="Ana", items=[Item(sku="a", count=2)], note="x")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def codes(reading: ParseResult[Any]) -> list[str]:
    return [f"{fix.code}:{fix.level}" for fix in reading.fixes]


def refused(shape: OutputType[Any], text: str, rules: ParseOptions = STANDARD) -> str:
    with pytest.raises(OutputValidationError) as caught:
        shape.read(text, rules)
    assert all("\n" not in line for line in caught.value.diagnostics)
    return caught.value.diagnostics[0]


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_valid_json_is_never_altered(data: Any, indent: int | None, escaped: bool) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=escaped)

    reading = ANY.read(text)

    assert reading == ParseResult(data)
    assert json.dumps(reading.value) == json.dumps(data)  # which tells 1 from 1.0 and from true


@given(JSON)
def test_valid_json_around_which_somebody_talks_is_not_altered_either(data: Any) -> None:
    shape = OutputType(dict[str, Any])
    text = f"Here you are:\n```json\n{json.dumps({'answer': data}, indent=2)}\n```\nAnything else?"

    reading = shape.read(text)

    assert reading.value == {"answer": data}
    assert not reading.guessed


@pytest.mark.parametrize(
    ("text", "fixes"),
    [
        (f"```json\n{PLAIN}\n```", ["fence:safe"]),
        (f"<think>\nPerhaps {{'name': 'Bo'}}?\n</think>\n{PLAIN}", ["thinking:safe"]),
        (f"Perhaps {{'name': 'Bo'}}?\n</think>\n{PLAIN}", ["thinking:safe"]),
        (f"[THINK]{{[/THINK]{PLAIN}<|im_end|>", ["thinking:safe"]),
        (f"The {{order}} is [as asked]: {PLAIN}", []),
        (f"{PLAIN}\n\nNote: {{placeholder}} was left out [see above].", []),
        (f"```\n{PLAIN}\n```\nIs that right?", []),
        (json.dumps(PLAIN), ["json-in-string:safe"]),
        (PLAIN.replace('"', '\\"'), ["escaped-quotes:likely"]),
        (PLAIN.replace('"', "'"), ["quotes:safe"]),
        (PLAIN.replace('": "', "”： “").replace('"', "“"), ["quotes:safe", "punctuation:safe"]),
        (PLAIN.replace(", ", "，").replace(": ", "："), ["punctuation:safe"]),
        (PLAIN.replace("{", "｛").replace("}", "｝").replace("2", "２"), ["punctuation:safe"]),
        (PLAIN.replace(" ", "\u00a0\u3000"), ["nbsp-indent:safe"]),
        ("\ufeff" + PLAIN, []),
        (PLAIN.replace("}]", "},]"), ["trailing-comma:safe"]),
        (PLAIN.replace(', "note"', ', // a "note", {here}\n # more\n /* and [more] */ "note"'), ["comment:safe"] * 3),
        (PLAIN.replace('"name":', "name:"), ["unquoted-key:likely"]),
        (PLAIN.replace('"name":', '"name" ='), ["separator:likely"]),
        (PLAIN.replace('"name":', '"name"'), ["missing-colon:likely"]),
        (PLAIN.replace('"Ana",', '"Ana"'), ["missing-comma:likely"]),
        (PLAIN.replace("2", "+2"), ["number:safe"]),
        (PLAIN.replace('"x"', "'''x'''"), ["quotes:safe", "wide-quotes:likely"]),
        (PLAIN + "}", ["extra-closer:likely"]),
        (PLAIN.replace("{", "{{").replace("}", "}}"), ["doubled-braces:guess"]),
        (PLAIN.replace('{"name', '"name'), ["missing-opener:guess"]),
        (PLAIN.replace("}]", "]"), ["missing-closer:guess"]),
        (PLAIN.replace("}]", "}}]"), ["extra-closer:guess"]),
        (PLAIN.replace('"Ana",', '"Ana,'), ["missing-quote:guess"]),
        (PLAIN.replace('"items"', 'items"'), ["missing-quote:guess"]),
        (PLAIN.replace('"items"', '"items'), ["missing-quote:guess"]),
        (PLAIN.replace('"Ana"', "Ana"), ["bare-string:guess"]),
        (PLAIN[:-1], ["missing-closer:guess"]),
        (PLAIN.replace("}]", "}"), ["missing-closer:guess"]),
        (PLAIN.replace('"note"', '"name": "Ana", "note"'), ["duplicate-key:likely"]),
        (PLAIN.replace('"note"', '"note": "y", "note"'), ["duplicate-key:guess"]),
        ('{"order": ' + PLAIN + "}", ["unwrapped:likely"]),
    ],
)
def test_each_mend_is_named_with_how_sure_it_is(text: str, fixes: list[str]) -> None:
    reading = ORDER.read(text)

    assert reading.value == WHOLE
    assert codes(reading) == fixes
    assert reading.complete == (text != PLAIN[:-1])
    assert reading.guessed == any(each.endswith(":guess") for each in fixes)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": True, "b": None}', {"a": True, "b": None}),
        ("{'a': 'it\\'s', 'b': 'it's'}", {"a": "it's", "b": "it's"}),
        ('{"a": "the word "awesome" appears", "b": 1}', {"a": 'the word "awesome" appears', "b": 1}),
        ('{"a": "say "yes, no", then go", "b": 1}', {"a": 'say "yes, no", then go', "b": 1}),
        ('{"a": "see {"x": 1, "y": [2]}, then", "b": 2}', {"a": 'see {"x": 1, "y": [2]}, then', "b": 2}),
        ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}),
        (r'{"a": "\d+ \x41 C:\Users"}', {"a": "\\d+ A C:\\Users"}),
        (r'{"a": "\ud83d\ude00", b: 1}', {"a": "😀", "b": 1}),
        (
            '{"a": -.5, "b": 5., "c": 1_000, "d": -2,000.50, "e": 1}',
            {"a": -0.5, "b": 5.0, "c": 1000, "d": -2000.5, "e": 1},
        ),
        ("{'a': (1, 2), 'b': {'x', 'y'}}", {"a": [1, 2], "b": ["x", "y"]}),
        ('{"id": ObjectId("5f"), "n": NumberLong(7)}', {"id": "5f", "n": 7}),
        ('{"a": "x" + "y"}', {"a": "xy"}),
        ('[1, 2 3\n"a" "b"]', [1, 2, 3, "a", "b"]),
        ('{"a": hello world, "b": http://x.org/?a=1&b=2}', {"a": "hello world", "b": "http://x.org/?a=1&b=2"}),
        ('[{"a": 1, "b": [2}, {"a": 3}]', [{"a": 1, "b": [2]}, {"a": 3}]),
        ('["a": 1, "b": 2]', [{"a": 1, "b": 2}]),
        ('[{"a": 1, {"a": 2}, {"b": "x", {"b": "y"}]', [{"a": 1}, {"a": 2}, {"b": "x"}, {"b": "y"}]),
        ("[{'x', 'y'}, {'z'}]", [["x", "y"], ["z"]]),
        ('{\'a\': """x \\n "y" """, \'b\': 1}', {"a": 'x \n "y" ', "b": 1}),
        ('{"a": "one \\\ntwo", b: 1}', {"a": "one \ntwo", "b": 1}),
        ('{"a": "x"; "b": "y"}', {"a": "x", "b": "y"}),
        ('{"a": [1, 2}}', {"a": [1, 2]}),
        ('{"a": 1] , "b": 2}', {"a": 1, "b": 2}),
        ('{"a": new Date("x"), "b": f(1, 2)}', {"a": "x", "b": "f(1, 2)"}),
        ('{"a": 05, "b": 1/3, "c": 10-20}', {"a": "05", "b": "1/3", "c": "10-20"}),
    ],
)
def test_what_people_and_models_write_for_json_is_understood(text: str, value: Any) -> None:
    assert ANY.read(text).value == value


def test_of_several_values_the_last_that_fits_is_taken_and_the_choice_is_a_guess() -> None:
    reading = ORDER.read('First {"name": "Ana"} but then {"name": "Bo"}, not {"names": 1}.')

    assert reading.value == Order(name="Bo")
    assert codes(reading) == ["other-answer:guess"]


def test_the_same_value_twice_is_one_answer() -> None:
    assert ORDER.read(f"{PLAIN}\n{PLAIN}") == ParseResult(WHOLE)


def test_values_side_by_side_are_the_list_that_was_wanted() -> None:
    reading = OutputType(list[Item]).read('{"sku": "a"}\n{"sku": "b"}')

    assert reading.value == [Item(sku="a"), Item(sku="b")]
    assert reading.guessed


def test_an_object_inside_of_a_broken_one_is_never_promoted() -> None:
    refused(ORDER, '{"name": 1: 2, "inner": {"name": "Bo"}}')
    refused(ORDER, '{"names": [1: 2], "inner": {"name": "Bo"}}')


def test_a_stray_bracket_in_prose_does_not_hide_the_answer() -> None:
    assert ORDER.read("Step [one: choose. Then: " + PLAIN).value == WHOLE


@pytest.mark.parametrize("end", range(1, len(PLAIN) - 1))
def test_a_text_that_is_cut_is_no_success(end: int) -> None:
    refused(ORDER, PLAIN[:end])


def test_where_only_the_last_brackets_are_missing_and_nothing_could_follow_the_value_stands_and_is_marked() -> None:
    reading = ORDER.read(PLAIN[:-1])

    assert reading.value == WHOLE
    assert reading.guessed
    assert not reading.complete
    assert "ends before the value does" in refused(ORDER, '{"name": "Ana", "items": []')  # a note could follow
    assert "ends before the value does" in refused(ORDER, PLAIN.replace("}]", "}").removesuffix(', "note": "x"}'))


def test_a_fence_that_closes_tells_that_the_text_was_not_cut() -> None:
    reading = ORDER.read('```json\n{"name": "Ana", "items": []\n```')

    assert reading == ParseResult(Order(name="Ana"), (Fix("missing-closer", 36, "guess"),), complete=True, guessed=True)


@pytest.mark.parametrize("end", range(1, len(PLAIN) - 1))
def test_a_cut_text_gives_a_partial_value_on_request_only_and_says_so(end: int) -> None:
    try:
        reading = ANY.read(PLAIN[:end], ParseOptions(partial=True))
    except OutputValidationError:
        return

    assert not reading.complete


def test_an_ellipsis_is_no_whole_answer() -> None:
    assert "leaves something out" in refused(OutputType(list[int]), "[1, 2, ...]")


@pytest.mark.parametrize(
    "text", ['["a" + "b', "```\n[1,\n```", '```\n{"a": 1,\n```', '```\n{"a":\n```', '{"a": 1, ...}', '{"a": x', '{"a" ']
)
def test_what_breaks_off_inside_of_a_fence_or_a_token_is_not_whole(text: str) -> None:
    assert "ends before the value does" in refused(ANY, text)


def test_the_final_channel_of_a_model_that_names_its_channels_is_the_answer() -> None:
    text = f"<|channel|>analysis<|message|>Maybe {{'name': 'Bo'}}.<|end|><|channel|>final<|message|>{PLAIN}<|return|>"

    assert ORDER.read(text) == ParseResult(WHOLE, (Fix("thinking", 0, "safe"),))


def test_thinking_that_never_ends_holds_no_answer() -> None:
    assert refused(ORDER, f"<think> maybe {PLAIN}") == "$: the text ends inside the thinking"


def test_nothing_is_invented() -> None:
    assert refused(ORDER, '{"items": []}') == "$.name: missing (string)"
    assert refused(OutputType(list[int]), "nothing") == "$: no JSON value in the text"


def test_a_null_for_an_optional_key_is_left_out_and_no_other() -> None:
    shape = OutputType.fields("Delta", {"mood": str, "count": int}, required=frozenset({"count"}))

    assert shape.read('{"mood": null, "count": 1}') == ParseResult({"count": 1}, (Fix("null-for-omitted", 0, "safe"),))
    assert refused(shape, '{"count": null}') == "$.count = null: must be integer"


def test_a_string_that_holds_json_is_opened_where_no_string_fits() -> None:
    reading = ORDER.read('{"name": "[1]", "items": "[{\\"sku\\": \\"a\\"}]"}')

    assert reading.value == Order(name="[1]", items=[Item(sku="a")])
    assert codes(reading) == ["json-in-string:likely"]


@pytest.mark.parametrize(
    ("annotation", "text", "value", "guessed"),
    [
        (int, "42", 42, False),
        (int, '{"value": 42}', 42, False),
        (int, "**42**", 42, False),
        (bool, "Yes.", True, False),
        (Literal["yes", "no"], '"yes"', "yes", False),
        (Literal["yes", "no"], "Yes", "yes", False),
        (Literal["yes", "no"], "The answer is yes.", "yes", True),
        (str, '"said"', "said", False),
        (str, "said without quotes", "said without quotes", True),
        (list[int], "```\n[1, 2,]\n```", [1, 2], False),
    ],
)
def test_a_scalar_is_read_in_its_wrapping_and_bare(annotation: Any, text: str, value: Any, guessed: bool) -> None:
    reading = parse(text, annotation)

    assert reading.value == value
    assert reading.guessed == guessed


def test_of_two_labels_in_prose_none_is_taken() -> None:
    refused(OutputType(Literal["yes", "no"]), "yes and no")


def test_a_guess_is_refused_on_request() -> None:
    assert "missing-closer at character 64" in refused(ORDER, PLAIN[:-1], ParseOptions(guess=False))
    assert ORDER.read(PLAIN.replace('"', "'"), ParseOptions(guess=False)).value == WHOLE


@pytest.mark.parametrize(
    ("text", "diagnostic"),
    [
        ("[NaN]", "$[0] is no number that JSON has"),
        ('{"a": [Infinity]}', "$.a[0] is no number that JSON has"),
        ('{"a": -1e999}', "$.a is no number that JSON has"),
        ("{'a': -Infinity}", "$.a is no number that JSON has"),
        ('{"a": "\\ud800"}', "$.a holds half a character (U+D800)"),
        ('{"a": "\ud800"}', "$: half a character (U+D800) at character 7"),
        ("[" * 129 + "]" * 129, "$: nested deeper than 128"),
        ("[" * 1_000_000, "$: nested deeper than 128 at character 128"),
        ("x" * (1 << 20) + "{}", "$: 1048578 characters, at most 1048576"),
        ("", "$: no JSON value in the text"),
    ],
)
def test_what_is_no_json_value_is_refused_with_its_place(text: str, diagnostic: str) -> None:
    assert diagnostic in refused(ANY, text)


def test_large_integers_and_nul_characters_are_plain_json() -> None:
    assert ANY.read(f'{{"a": {2**100}, "b": "\\u0000"}}') == ParseResult({"a": 2**100, "b": "\0"})
    assert ANY.read('{"b": "x\0y"}').value == {"b": "x\0y"}


def test_half_a_character_is_refused_by_a_raw_schema_as_well() -> None:
    assert "half a character" in refused(OutputType.from_json_schema({"type": "object"}), '{"a": "\\ud800"}')
