"""What is repaired, how certain each fix is, and what is never altered."""

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from taiwa.kernel.errors import OutputValidationError
from taiwa.structured import Fix, OutputType, ParseOptions, ParseResult, parse
from taiwa.structured.output_type import DEFAULT_OPTIONS


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


def codes(result: ParseResult[Any]) -> list[str]:
    return [f"{fix.code}:{fix.level}" for fix in result.fixes]


def refused(output_type: OutputType[Any], text: str, options: ParseOptions = DEFAULT_OPTIONS) -> str:
    with pytest.raises(OutputValidationError) as caught:
        output_type.parse(text, options)
    assert all("\n" not in line for line in caught.value.diagnostics)
    return caught.value.diagnostics[0]


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_valid_json_is_never_altered(data: Any, indent: int | None, escaped: bool) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=escaped)

    result = ANY.parse(text)

    assert result == ParseResult(data)
    assert json.dumps(result.value) == json.dumps(data)  # which tells 1 from 1.0 and from true


@given(JSON)
def test_valid_json_in_prose_is_not_altered_either(data: Any) -> None:
    output_type = OutputType(dict[str, Any])
    text = f"Here you are:\n```json\n{json.dumps({'answer': data}, indent=2)}\n```\nAnything else?"

    result = output_type.parse(text)

    assert result.value == {"answer": data}
    assert not result.guessed


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
def test_each_fix_has_a_code_and_a_level(text: str, fixes: list[str]) -> None:
    result = ORDER.parse(text)

    assert result.value == WHOLE
    assert codes(result) == fixes
    assert result.complete == (text != PLAIN[:-1])
    assert result.guessed == any(each.endswith(":guess") for each in fixes)


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
def test_malformed_json_of_people_and_models_is_parsed(text: str, value: Any) -> None:
    assert ANY.parse(text).value == value


def test_the_last_of_several_valid_values_is_taken_as_a_guess() -> None:
    result = ORDER.parse('First {"name": "Ana"} but then {"name": "Bo"}, not {"names": 1}.')

    assert result.value == Order(name="Bo")
    assert codes(result) == ["other-answer:guess"]


def test_the_same_value_twice_is_one_answer() -> None:
    assert ORDER.parse(f"{PLAIN}\n{PLAIN}") == ParseResult(WHOLE, stage="lenient")


def test_several_values_are_the_items_of_a_list() -> None:
    result = OutputType(list[Item]).parse('{"sku": "a"}\n{"sku": "b"}')

    assert result.value == [Item(sku="a"), Item(sku="b")]
    assert result.guessed


def test_an_object_inside_a_malformed_one_is_never_the_answer() -> None:
    refused(ORDER, '{"name": 1: 2, "inner": {"name": "Bo"}}')
    refused(ORDER, '{"names": [1: 2], "inner": {"name": "Bo"}}')


def test_a_stray_bracket_in_prose_does_not_hide_the_answer() -> None:
    assert ORDER.parse("Step [one: choose. Then: " + PLAIN).value == WHOLE


def test_a_value_with_an_ellipsis_is_not_complete() -> None:
    assert "leaves something out" in refused(OutputType(list[int]), "[1, 2, ...]")


@pytest.mark.parametrize(
    "text", ['["a" + "b', "```\n[1,\n```", '```\n{"a": 1,\n```', '```\n{"a":\n```', '{"a": 1, ...}', '{"a": x', '{"a" ']
)
def test_a_value_that_breaks_off_inside_a_fence_or_a_token_is_not_complete(text: str) -> None:
    assert "ends before the value does" in refused(ANY, text)


def test_the_final_channel_of_a_model_that_names_its_channels_is_the_answer() -> None:
    text = f"<|channel|>analysis<|message|>Maybe {{'name': 'Bo'}}.<|end|><|channel|>final<|message|>{PLAIN}<|return|>"

    assert ORDER.parse(text) == ParseResult(WHOLE, (Fix("thinking", 0, "safe"),), stage="fenced")


def test_thinking_that_never_ends_contains_no_answer() -> None:
    assert refused(ORDER, f"<think> maybe {PLAIN}") == "$: the text ends inside the thinking"


def test_missing_values_are_not_invented() -> None:
    assert refused(ORDER, '{"items": []}') == "$.name: missing (string)"
    assert refused(OutputType(list[int]), "nothing") == "$: no JSON value in the text"


def test_null_is_dropped_for_optional_keys_only() -> None:
    output_type = OutputType.fields("Delta", {"mood": str, "count": int}, required=frozenset({"count"}))

    assert output_type.parse('{"mood": null, "count": 1}') == ParseResult(
        {"count": 1}, (Fix("null-for-omitted", 0, "safe"),)
    )
    assert refused(output_type, '{"count": null}') == "$.count = null: must be integer"


def test_json_in_a_string_is_parsed_where_a_string_is_not_valid() -> None:
    result = ORDER.parse('{"name": "[1]", "items": "[{\\"sku\\": \\"a\\"}]"}')

    assert result.value == Order(name="[1]", items=[Item(sku="a")])
    assert codes(result) == ["json-in-string:likely"]


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (int, "2", 2),
        (int, "2.0", 2),
        (int, "２", 2),
        (float, "－１．５", -1.5),
        (float | None, " 2.5 ", 2.5),
        (bool, "True", True),
        (int | None, "None", None),
        (Literal[1, 2], "2", 2),
        (Literal[1, "2"], "2", "2"),
        (int | str, "2", "2"),
        (list[int], "[1]", [1]),
        (list[int], ["1"], [1]),
    ],
)
def test_a_number_or_constant_in_a_string_is_read_where_the_string_is_not_valid(
    annotation: object, text: str | list[str], value: object
) -> None:
    output_type = OutputType.fields("Answer", {"a": annotation})

    assert output_type.parse(json.dumps({"a": text})).value == {"a": value}


@pytest.mark.parametrize(
    ("annotation", "text", "value", "level"),
    [
        (Order, '{"type": "function", "name": "x", "parameters": {"name": "Bo"}}', Order(name="Bo"), "likely"),
        (Order, '{"name": "x", "arguments": "{\\"name\\": \\"Bo\\"}"}', Order(name="Bo"), "likely"),
        (list[int], '{"name": "x", "arguments": "[1]"}', [1], "likely"),
        (list[int], '{"name": "x", "parameters": [2], "arguments": [1]}', [1], "likely"),
        (Order, '{"reasoning": "so", "answer": {"name": "Bo"}}', Order(name="Bo"), "guess"),
        (Order, '{"one": {"name": "Bo"}, "two": {"name": "Al"}}', None, ""),
        (list[str], '{"error": "I cannot do this.", "suggestions": ["a", "b"]}', None, ""),
    ],
)
def test_what_stands_around_an_answer_is_removed(annotation: Any, text: str, value: object, level: str) -> None:
    output_type = OutputType[Any](annotation)
    if value is None:
        refused(output_type, text)
        return

    result = output_type.parse(text)

    assert (result.value, result.fixes[0].level) == (value, level)


def test_a_label_in_other_letters_is_that_label_if_it_is_the_only_one() -> None:
    output_type = OutputType.fields("Answer", {"a": Literal["Low", "high", "HIGH"]})

    assert output_type.parse('{"a": " low"}') == ParseResult({"a": "Low"}, (Fix("label", 0, "likely"),))
    assert refused(output_type, '{"a": "High"}') == '$.a = "High": must be "Low", "high" or "HIGH"'
    assert OutputType(Literal["Low"]).parse('"low"').value == "Low"  # as without the quotes


@pytest.mark.parametrize(
    ("text", "value", "guessed"),
    [
        ('"C:\\dir\\x"', "C:\\dir\\x", False),
        ('"two\nlines"', "two\nlines", False),
        ("'one'", "one", False),
        ('"say "hi" now"', 'say "hi" now', True),
        ('"Hi," she said.', '"Hi," she said.', True),
        ("'Tis so", "'Tis so", True),
    ],
)
def test_a_text_in_quotes_is_read_as_in_an_object(text: str, value: str, *, guessed: bool) -> None:
    result = OutputType(str).parse(text)

    assert (result.value, result.fixes[0].level == "guess") == (value, guessed)


def test_a_text_in_quotes_that_does_not_end_is_refused() -> None:
    assert refused(OutputType(str), '"cut') == "$: no JSON value in the text"


@pytest.mark.parametrize(
    "text", ["I cannot determine this; the table on page 12 is missing.", "2 of 3", "42%", "COVID-19", "on 2024-05-01"]
)
def test_a_number_in_a_sentence_is_no_answer(text: str) -> None:
    refused(OutputType(float), text)


@pytest.mark.parametrize("sign", "-−–－")
@pytest.mark.parametrize("text", ['{"value": SIGN5}', '{"value": SIGN５}', "SIGN5", "SIGN5.5"])
def test_a_minus_sign_of_any_kind_is_one(sign: str, text: str) -> None:
    value = -5.5 if "." in text else -5

    assert OutputType(float).parse(text.replace("SIGN", sign)).value == value


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
def test_a_scalar_is_parsed_wrapped_and_bare(annotation: Any, text: str, value: Any, guessed: bool) -> None:
    result = parse(annotation, text)

    assert result.value == value
    assert result.guessed == guessed


def test_two_labels_in_prose_are_ambiguous() -> None:
    refused(OutputType(Literal["yes", "no"]), "yes and no")


def test_a_guess_is_refused_on_request() -> None:
    assert "missing-closer at character 64" in refused(ORDER, PLAIN[:-1], ParseOptions(guess=False))
    assert ORDER.parse(PLAIN.replace('"', "'"), ParseOptions(guess=False)).value == WHOLE


@pytest.mark.parametrize(
    ("text", "diagnostic"),
    [
        ("[NaN]", "$[0] is not a JSON number"),
        ('{"a": [Infinity]}', "$.a[0] is not a JSON number"),
        ('{"a": -1e999}', "$.a is not a JSON number"),
        ("{'a': -Infinity}", "$.a is not a JSON number"),
        ('{"a": "\\ud800"}', "$.a contains half a character (U+D800)"),
        ('{"a": "\ud800"}', "$: half a character (U+D800) at character 7"),
        ("[" * 129 + "]" * 129, "$: nested deeper than 128"),
        ("[" * 1_000_000, "$: nested deeper than 128 at character 128"),
        ("x" * (1 << 20) + "{}", "$: 1048578 characters, at most 1048576"),
        ("", "$: no JSON value in the text"),
    ],
)
def test_text_that_is_not_json_is_refused_with_its_position(text: str, diagnostic: str) -> None:
    assert diagnostic in refused(ANY, text)


def test_large_integers_and_nul_characters_are_plain_json() -> None:
    assert ANY.parse(f'{{"a": {2**100}, "b": "\\u0000"}}') == ParseResult({"a": 2**100, "b": "\0"})
    assert ANY.parse('{"b": "x\0y"}').value == {"b": "x\0y"}


def test_half_a_character_is_refused_by_a_json_schema_as_well() -> None:
    assert "half a character" in refused(OutputType.from_json_schema({"type": "object"}), '{"a": "\\ud800"}')


def test_the_error_shows_a_missing_key_with_the_key_that_was_written_in_its_place() -> None:
    with pytest.raises(OutputValidationError, match=r"^not of the type Item: \$\.sku: missing .*did you mean sku\?"):
        parse(Item, '{"skuu": "tea"}')


@pytest.mark.parametrize(
    "text",
    [
        "I am not sure what you want: the format { name: string; } is unclear.",
        "The type is type Order = { name: string; }; please tell me more.",
        "I cannot answer in the form {name: string}.",
    ],
)
def test_an_echo_of_the_type_in_a_sentence_is_not_an_answer(text: str) -> None:
    with pytest.raises(OutputValidationError, match="no JSON object"):
        ORDER.parse(text)
