import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.apps.catalog import BUILT_IN, MAX_BYTES, check, load, load_source, load_text
from taiwa.conversation.app import AppSource, Example, Param, WindowPolicy
from taiwa.conversation.history import begin
from taiwa.conversation.state import StateField
from taiwa.conversation.turn_prompt import summary_request, turn_request
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.messages import Sampling

WHOLE = """\
---
taiwa: 1
name: whole
about: Everything that an app
  can say
params:
  lang: { type: 'str(min 1)', ask: "Which language?" }
  tone: { default: plain }
  most: int(1..9)
state:
  topics: { type: "list[str]", reduce: union, max_shown: 20, description: "topics,\\n one word each" }
  notes:
    type:
      text: str
      done?: bool
  mood: str | null
  level: { type: int, init: 3 }
  words: { type: "dict[str, int]", reduce: count }
  turns: { computed: turn_count }
window: { max_size: 20, keep: 10, summarize: true, keep_first: 1, keep_setting: [topics] }
reply: json
model: openai:gpt-x
sampling: { temperature: null, top_p: 0.5, max_tokens: 100, seed: 7 }
---

Answer in {{lang}}, {{ tone }}, at most {{most}} lines. {{most}}!

## Rules
```
## example
this is code
```

## summary
Briefly, in {{lang}}.

## example
user: |
  First line
  ## example
  ```
answer: "Note: hi"
delta:
  topics: [a, b]
  notes: { text: 'yes' }
## example
user: 5
answer: yes
"""


def test_every_key_of_a_file_reaches_the_app() -> None:
    app = load_text(WHOLE, "whole.md", "whole")

    assert app.source == AppSource("whole", WHOLE)
    assert app.about == "Everything that an app can say"
    assert app.params == (
        Param("lang", "str(min 1)", "Which language?"),
        Param("tone", "str", "", "plain", required=False),
        Param("most", "int(1..9)"),
    )
    assert app.fields == (
        StateField("topics", "list[str]", None, "union", "topics, one word each", 20),
        StateField("notes", "{text: str, done?: bool}"),
        StateField("mood", "str | null"),
        StateField("level", "int", 3),
        StateField("words", "dict[str, int]", None, "count"),
        StateField("turns", reduce="turn_count"),
    )
    assert app.window == WindowPolicy(20, 10, True, 1, ("topics",))
    assert (app.reply, app.model) == ("json", "openai:gpt-x")
    assert app.sampling == Sampling(None, 0.5, 100, 7)
    assert app.summary_prompt == "Briefly, in {{lang}}."
    assert app.examples == (
        Example("First line\n## example\n```", "Note: hi", {"topics": ["a", "b"], "notes": {"text": "yes"}}),
        Example("5", "yes"),
    )
    assert app.body.startswith("Answer in {{lang}}")
    assert app.body.endswith("## Rules\n```\n## example\nthis is code\n```")


def test_parameters_reach_the_instructions_and_the_text_for_folds_but_no_example() -> None:
    text = WHOLE.replace("user: 5", "user: Say {{lang}}")

    app = load_text(text, "whole.md", "whole").with_params({"lang": "{{tone}}", "most": 3})
    conversation = begin(app)

    assert app.instructions.startswith("Answer in {{tone}}, plain, at most 3 lines. 3!")
    assert summary_request(conversation, ()).messages[0].text == "Briefly, in {{tone}}."
    assert "Say {{lang}}" in turn_request(conversation, "x").messages[0].text


@given(st.text(alphabet="{} langtonemost<>/@JSONstate\\0", max_size=40))
def test_what_a_user_writes_is_never_taken_for_a_placeholder(text: str) -> None:
    app = load_text(WHOLE, "whole.md", "whole").with_params({"lang": "Thai", "most": 3})

    parts = turn_request(begin(app), text).messages[-1].parts

    assert parts[0].text == text  # type: ignore[union-attr]


def test_byte_order_mark_and_line_ends_make_no_difference(tmp_path: Path) -> None:
    plain, other = tmp_path / "whole.md", tmp_path / "other" / "whole.md"
    other.parent.mkdir()
    plain.write_bytes(WHOLE.encode())
    other.write_bytes(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())

    assert load(plain).hash == load(other).hash
    assert load(other).body == load(plain).body


def test_an_app_without_a_name_is_called_as_its_file(tmp_path: Path) -> None:
    path = tmp_path / "quiet.md"
    path.write_text("---\ntaiwa: 1\n---\nSay little.\n")

    assert load(path).name == "quiet"
    assert check(path) == ()


def test_a_rule_in_the_instructions_does_not_end_anything() -> None:
    app = load_text("---\ntaiwa: 1\n---\nOne\n\n---\n\nTwo\n", "a.md", "a")

    assert app.body == "One\n\n---\n\nTwo"


def test_values_are_filled_in_and_checked_while_loading(tmp_path: Path) -> None:
    path = tmp_path / "whole.md"
    path.write_text(WHOLE)

    assert load(path).with_params({"lang": "Thai", "most": 9}).values == {"lang": "Thai", "tone": "plain", "most": 9}
    with pytest.raises(InputError, match=r"'most' has the type int\(1\.\.9\), and 10 does not fit"):
        load(path).with_params({"lang": "Thai", "most": 10})
    with pytest.raises(InputError, match=r"requires the parameter 'lang'"):
        load(path).with_params({})
    with pytest.raises(InputError, match=r"no parameter 'long'; it has: lang, tone, most"):
        load(path).with_params({"long": "Thai"})


def test_an_app_comes_back_from_its_source_as_it_was_opened() -> None:
    app = load_text(WHOLE, "whole.md", "whole").with_params({"lang": "Thai", "most": 2})

    again = load_source(app.source)

    assert again.hash == app.hash
    assert (again.instructions, again.values, again.fields, again.window) == (
        app.instructions,
        app.values,
        app.fields,
        app.window,
    )


def test_a_stored_app_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^the stored app 'old':1: the front matter is missing; "):
        load_source(AppSource("old", "Hello"))


def refused(path: Path | str) -> str:
    """The one line that says why a path is no app; checking tells the same as opening."""
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert check(path)[0].format(str(path)) == caught.value.message
    return caught.value.message


def test_a_binary_file_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"---\ntaiwa: 1\n---\n\xe6\x96\x87 \xff\n")

    assert refused(path) == f"{path}:4: the byte 0xff is not UTF-8; save the file as UTF-8"
    assert check(path)[0].column == 3

    path.write_bytes(b"---\ntaiwa: 1\n\0---\n")

    assert refused(path) == f"{path}:3: the file contains a zero byte; save the file as UTF-8 text"


def test_a_file_of_ten_megabytes_is_not_even_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"---\ntaiwa: 1\n---\n" + b"a" * 10_000_000)

    assert refused(path) == f"{path}: the file has more than {MAX_BYTES} bytes; move documents to an index"


def test_a_path_that_is_not_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    folder, loop, pipe = tmp_path / "folder.md", tmp_path / "loop.md", tmp_path / "pipe.md"
    folder.mkdir()
    loop.symlink_to(loop)
    os.mkfifo(pipe)

    assert refused(folder) == f"{folder}: is a folder; name a file that ends with .md"
    assert refused(loop).startswith(f"{loop}: cannot read the file (")
    assert refused(pipe) == f"{pipe}: is not a regular file; name a file that ends with .md"
    assert refused("nowhere.md").startswith("nowhere.md: file not found; ")


@pytest.mark.parametrize("name", ["a\nb.md", "a\x1b[31m.md", "a\udcff.md", "a\0.md"])
def test_a_strange_file_name_stays_on_one_printable_line(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(name)

    assert caught.value.message.isprintable()


def refusal(text: str) -> str:
    """Return the message that a text is refused with, '' if it opens."""
    try:
        load_text(text, "a.md", "a")
    except ConfigError as error:
        return error.message
    return ""


def is_one_line_with_a_place(message: str) -> bool:
    return bool(re.match(r"a\.md:[1-9]\d*: .", message)) and message.isprintable()


@given(st.text(max_size=300) | st.text(alphabet="-:[]{}&*!|>'\"#%@` \n\tabtaiwa1", max_size=300))
def test_any_text_opens_or_is_refused_with_a_line(text: str) -> None:
    for whole in (
        text,
        f"---\n{text}\n---\nHello\n",
        f"---\ntaiwa: 1\nstate: {{ a: str }}\n---\nHello\n## example\n{text}",
    ):
        message = refusal(whole)

        assert not message or is_one_line_with_a_place(message)


@given(st.binary(max_size=200))
def test_any_bytes_of_another_format_are_refused_in_printable_lines(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.md"
    path.write_bytes(b"---\ntaiwa: 2\n" + data)

    faults = check(path)

    assert any(fault.level == "error" for fault in faults)
    assert all(fault.format("a.md").isprintable() for fault in faults)


@pytest.mark.parametrize("key", ["anyOf", "allOf", "oneOf"])
def test_the_type_of_the_answers_may_be_a_schema_of_several(key: str) -> None:
    app = load_text(f"---\ntaiwa: 1\nanswer: {{ {key}: [{{ type: integer }}] }}\n---\nCount.\n", "a.md", "a")

    assert app.output_type is not None
    assert app.output_type.validate(3) == 3


GOOD_FILES = [path.read_text(encoding="utf-8") for path in sorted(BUILT_IN.iterdir())] + [WHOLE]


@given(st.sampled_from(GOOD_FILES), st.data())
def test_a_file_that_was_damaged_anywhere_opens_or_is_refused_in_one_line(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    gone = data.draw(st.integers(0, 12))
    new = data.draw(
        st.sampled_from(
            ["", " ", "\n", "\t", ":", '"', "[", "}", "- ", "---\n", "{{x}}", "&a ", "1e9", "文", "\x85", "null"]
        )
    )

    message = refusal(text[:at] + new + text[at + gone :])

    assert not message or is_one_line_with_a_place(message)
