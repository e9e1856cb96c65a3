"""Errors in app files: one line each, with its location and a hint."""

import pytest

from taiwa.apps.app_file import MAX_FRONT_CHARS, read_app
from taiwa.apps.catalog import load_text
from taiwa.kernel.errors import ConfigError

GOOD = """\
---
taiwa: 1
name: a
params:
  lang: { type: str, ask: Language }
state:
  topics: { type: "list[str]", reduce: union }
  turns: { computed: turn_count }
---
Answer in {{lang}}.

## example
user: Hello
answer: Hi!
delta: { topics: [greetings] }
"""
BROKEN = [
    ("an unknown key", "state:", "stat:", "6: unknown key 'stat'; did you mean 'state'?"),
    ("an unknown key of a field", "reduce:", "reduc:", "7: unknown key 'reduc' in topics; did you mean 'reduce'?"),
    (
        "YAML that is none",
        "ask: Language",
        "ask: Language: mine",
        "5: not YAML: expected ',' or '}', but got ':'; in braces or brackets, a text or type with special signs stands in quotes",
    ),
    (
        "a bare type in braces",
        '"list[str]"',
        "list[str]",
        "7: not YAML: expected ',' or '}', but got '['; in braces or brackets, a text or type with special signs stands in quotes",
    ),
    (
        "a quote that is not closed",
        '"list[str]"',
        '"list[str]',
        "8: not YAML: found unexpected end of stream; close what was opened: a quote, a bracket or a brace",
    ),
    (
        "an alias",
        "ask: Language",
        "ask: *x",
        "5: the alias '*x'; write the value itself; a text that begins with * stands in quotes",
    ),
    (
        "a bomb",
        "name: a",
        "name: a\na: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]",
        "4: the anchor '&a'; write the value itself; a text that begins with & stands in quotes",
    ),
    (
        "a tag",
        "ask: Language",
        "ask: !!python/object/apply:os.system [ls]",
        "5: the tag 'tag:yaml.org,2002:python/object/apply:os.system'; write the value itself; a text that begins with ! stands in quotes",
    ),
    ("brackets in brackets", "name: a", "name: a\nabout: " + "[" * 5000, "4: nested deeper than 20; make it flatter"),
    (
        "a tab as indentation",
        "  lang:",
        "\tlang:",
        "5: not YAML: found character '\\t' that cannot start any token; indent with spaces, not with tabs",
    ),
    ("no closing line", "---\nAnswer", "Answer", "1: the front matter is not closed; end it with a line `---`"),
    (
        "front matter that begins too late",
        "---\ntaiwa",
        "\n---\ntaiwa",
        "1: the front matter is missing; begin the file with the lines `---`, `taiwa: 1` and `---`",
    ),
    (
        "a second document",
        "name: a",
        "name: a\n...\nmore: b",
        "5: not YAML: expected '<document start>', but found '<block mapping start>'; keep to one document: no `---` or `...` inside",
    ),
    (
        "a type that does not exist",
        "list[str]",
        "list[string]",
        "7: the type of topics, column 6: expected a type: str, int, float, bool, null, any, list[T], dict[str, T], {name: T}"
        " or \"literal\", not 'string'; write a type such as str, int(1..5) or list[str]",
    ),
    (
        "a yes or no with a source",
        'topics: { type: "list[str]", reduce: union }',
        "topics: { type: bool, cite: true }",
        "7: the field topics: cite has no effect on the type 'bool', whose values no source can hold; change one of the two",
    ),
    (
        "a reducer that the type does not bear",
        '"list[str]"',
        "int",
        "7: the field topics: the reducer 'union' requires list, and the type is 'int'; change one of the two",
    ),
    (
        "a computed field as a reducer",
        "union",
        "tokens",
        "7: 'tokens' is a computed field and not a reducer; write `computed: tokens`",
    ),
    ("a reducer that does not exist", "union", "unoin", "7: unknown reducer 'unoin'; did you mean 'union'?"),
    (
        "an unknown computed field",
        "turn_count",
        "turns",
        "8: unknown computed field 'turns'; the computed fields are turn_count, language, tokens, characters",
    ),
    (
        "a type and a derivation",
        "computed: turn_count",
        "type: int, computed: turn_count",
        "8: turns is computed and cannot have `type`; remove one of the two",
    ),
    ("a field twice", "turns: {", "topics: {", "8: 'topics' is set twice (first in line 7); keep one"),
    (
        "a field named like the reply",
        "turns:",
        "response:",
        "8: the field 'response' has a reserved name; choose another name",
    ),
    (
        "a name with a hyphen in the state",
        "turns:",
        "the-turns:",
        "8: 'the-turns' is not a valid name in state; use letters, digits and `_`, beginning with a letter",
    ),
    (
        "what cannot name a tool",
        "name: a",
        "name: a\ntools: [os.system]",
        "4: 'os.system' is not a valid tool name; use letters, digits, `_` and `-`, beginning with a letter; see `taiwa tools list`",
    ),
    (
        "a tool twice",
        "name: a",
        "name: a\ntools: [calculator, calculator]",
        "4: the tool calculator is listed twice; remove one of the two",
    ),
    (
        "tools that are no list",
        "name: a",
        "name: a\ntools: calculator",
        "4: tools must be a list of names, not 'calculator'; write tools: [one, two]",
    ),
    (
        "a field without a type",
        "computed: turn_count",
        "description: how many",
        "8: the field turns has no type; add `type: …`, or `computed: …` if the program computes it",
    ),
    (
        "a placeholder without a parameter",
        "Answer in",
        "Hello.\nAnswer {{ tone }} in",
        "11: the placeholder '{{ tone }}' has no parameter; add tone to params, or correct its name: the params are lang",
    ),
    (
        "a delta that names no field",
        "{ topics: [",
        "{ topic: [",
        "15: unknown field 'topic'; did you mean 'topics'?",
    ),
    (
        "a delta that sets a computed field",
        "topics: [greetings]",
        "turns: 1",
        "15: unknown field 'turns'; the fields are topics",
    ),
    (
        "a delta that is a text",
        "{ topics: [greetings] }",
        "none",
        "15: delta must be a table, not 'none'; change it, or leave the key out",
    ),
    ("an example without an answer", "answer: Hi!\n", "", "12: the example has no `answer`; add `answer: …`"),
    (
        "a colon in an answer",
        "answer: Hi!",
        "answer: Note: hi",
        "14: not YAML: mapping values are not allowed here; a text that holds `: ` stands in quotes, or under a `|`",
    ),
    (
        "a newer format",
        "taiwa: 1",
        "taiwa: 2",
        "2: the file has format 2, and this program reads format 1; install a newer taiwa",
    ),
    (
        "no format",
        "taiwa: 1\n",
        "",
        "1: the key taiwa is missing; it is the version of the format; add `taiwa: 1`",
    ),
    (
        "a window that keeps more than its size",
        "state:",
        "window: { max_size: 10, keep: 20 }\nstate:",
        "6: window: `keep` is 20 and `max_size` is 10; make `keep` smaller than `max_size`",
    ),
    (
        "a window without a size",
        "state:",
        "window: { max_size: 10 }\nstate:",
        "6: window has no `keep`; write window: { max_size: 20, keep: 10 }, or window: all",
    ),
    (
        "a pin on no field",
        "state:",
        "window: { max_size: 9, keep: 3, keep_setting: [topic] }\nstate:",
        "6: unknown field 'topic'; did you mean 'topics'?",
    ),
    (
        "a reply mode that does not exist",
        "state:",
        "reply: text\nstate:",
        "6: reply must be auto, text+delta, record, json or environment, not 'text'; change it, or leave the key out",
    ),
    (
        "a temperature in words",
        "state:",
        "sampling: { temperature: hot }\nstate:",
        "6: temperature must be a number from 0 to 2, not 'hot'; change it, or leave the key out",
    ),
    (
        "half a letter",
        "ask: Language",
        'ask: "\\ud800"',
        "5: an escape names half a letter; write the letter itself, or \\U and its eight digits",
    ),
    (
        "a bell",
        "name: a",
        "name: a\x07",
        "3: U+0007 is not allowed in YAML; remove it, or write it as an escape in double quotes",
    ),
    (
        "a number beyond all bounds",
        "name: a",
        "name: a\nabout: 1e999",
        "4: a number too long to keep; put it in quotes if it is a text",
    ),
    (
        "prose in the front matter",
        "name: a",
        "name: a\nabout: " + "x" * MAX_FRONT_CHARS,
        f"1: the front matter has more than {MAX_FRONT_CHARS} characters; move prose below it",
    ),
    (
        "a text with a comma in braces",
        "ask: Language",
        "ask: Language, or none",
        "5: unknown key 'or none' in lang; a text with a comma stands in quotes",
    ),
    (
        "a field to be written in a layout of changes",
        "state:",
        "reply: record\nstate:\n  mood: { type: str, required: true }",
        "8: required of mood has no effect with `reply: record`, which asks for what changes; remove one of the two",
    ),
    (
        "an example whose answer does not have the type",
        "name: a",
        "name: a\nanswer: { cups: int }",
        "15: the answer of the example does not have the type `answer`: not JSON; write JSON of it",
    ),
    (
        "two summary sections",
        "## example",
        "## summary\nBriefly.\n## summary\nAt length.\n## example",
        "14: `## summary` occurs twice; keep one",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_problem_is_one_line_with_its_location_and_a_hint(old: str, new: str, message: str) -> None:
    assert old in GOOD

    with pytest.raises(ConfigError) as caught:
        load_text(GOOD.replace(old, new, 1), "a.md", "a")

    assert caught.value.message == f"a.md:{message}"


WARNED = [
    (
        "a reducer of what the model writes whole",
        "union }\n  turns: { computed: turn_count }",
        "log }\n  turns: { computed: turn_count }\nreply: environment",
        "7: the field topics: with `reply: environment` the model writes it whole, so 'log' is not applied; "
        "remove `reduce`, or bound the value by union, table or last(n)",
    ),
    (
        "a tool that is not built in",
        "name: a",
        "name: a\ntools: [calculater]",
        "4: the tool calculater is not built in; the program must pass it; did you mean 'calculator'?",
    ),
    (
        "a parameter that is never used",
        " in {{lang}}",
        "",
        "5: the parameter lang is never used; write {{lang}} in the instructions, or remove it",
    ),
    (
        "a heading that nearly is one",
        "## example",
        "## Example",
        "12: the line '## Example' is part of the text above; to begin a part, write `## example`",
    ),
    (
        "a fence that swallows an example",
        "## example",
        "```\n## example",
        "12: the code fence is not closed, so headings below it are ignored; close it",
    ),
    (
        "a summary section without summaries",
        "## example",
        "## summary\nBriefly.\n## example",
        "12: `## summary` is never used; add `summarize: true` to window, or remove it",
    ),
    (
        "another name than the file's",
        "name: a",
        "name: b",
        "3: the app is named 'b' and its file 'a': apps are found by the name of the file; use the same name for both",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), [row[1:] for row in WARNED], ids=[row[0] for row in WARNED])
def test_a_probable_slip_is_a_warning_and_the_app_opens(old: str, new: str, message: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1).replace("delta: { topics: [greetings] }\n", "")

    app, faults = read_app(text, "a")

    assert app is not None
    assert [(fault.level, fault.format("a.md")) for fault in faults] == [("warning", f"a.md:{message}")]


def test_many_fields_in_text_without_an_example_are_a_warning_where_the_app_names_the_layout() -> None:
    fields = "".join(f"  f{number}: str\n" for number in range(5))
    text = f"---\ntaiwa: 1\nstate:\n{fields}reply: text+delta\n---\nTalk.\n"

    faults = read_app(text, "a")[1]

    assert [(fault.level, fault.format("a.md")) for fault in faults] == [
        (
            "warning",
            "a.md:9: small models leave some of 5 fields out of a `text+delta` reply; "
            "remove `reply`, or show one by `## example`",
        )
    ]
    assert read_app(text.replace("reply: text+delta\n", ""), "a")[1] == ()
    assert read_app(f"{text}\n## example\nuser: a\nanswer: b\n", "a")[1] == ()


def test_all_problems_of_a_file_are_reported_in_order() -> None:
    text = (
        GOOD.replace("ask:", "asks:")
        .replace("union", "unoin")
        .replace("{{lang}}", "{{long}}")
        .replace("answer: Hi!\n", "")
    )

    app, faults = read_app(text, "a")

    assert app is None
    assert [(fault.line, fault.column, fault.level) for fault in faults] == [
        (5, 3, "warning"),
        (5, 22, "error"),
        (7, 32, "error"),
        (10, 11, "error"),
        (12, 1, "error"),
    ]


def test_the_valid_file_has_no_problem() -> None:
    app, faults = read_app(GOOD, "a")

    assert app is not None
    assert faults == ()


def test_a_choice_about_the_turns_of_a_history_needs_an_app_that_does_not_store_them_as_they_come() -> None:
    _, (problem,) = read_app("---\ntaiwa: 1\nunknown_turns: record\n---\nTalk.\n", "a")

    assert problem.format("a.md") == (
        "a.md:3: unknown_turns has no effect: without a state, the turns of a history are stored as they come; remove it"
    )
