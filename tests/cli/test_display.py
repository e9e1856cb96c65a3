"""Answers on a terminal: rendered while they are written, and nothing left of what was drawn in between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from taiwa.cli.display import Block, Blocks
from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.cli.terminal import Terminal, screen
from tests.peers.faults import head, silence, words
from tests.strategies import joined

ANSWER = """\
# Tea

Green **tea** is `good`:

```python
print("tea")
```

1. one
2. a [link](http://example.org)

| a | b |
|---|---|
| 1 | 2 |

<b>not</b> HTML
and a second line\x1b[2J
"""
TEXTS = joined(
    [
        "# Tea\n",
        "\n",
        "one ",
        "two\n",
        "- item\n",
        "```\n",
        "| a |\n",
        "|---|\n",
        "> q\n",
        "1. x\n",
        "  more\n",
        "---\n",
    ],
    max_size=20,
)


@given(TEXTS, st.integers(1, 7))
def test_blocks_in_pieces_are_the_blocks_of_the_whole(text: str, size: int) -> None:
    blocks = Blocks()
    ended = [block for at in range(0, len(text), size) for block in blocks.feed(text[at : at + size])]
    parser = MarkdownIt("commonmark").enable(["strikethrough", "table"])

    assert (
        "".join((*ended, blocks.rest)).strip() == text.strip() or "".join((*ended, blocks.rest)).split() == text.split()
    )
    assert "".join(map(parser.render, (*ended, blocks.rest))).split() == parser.render(text).split()


def test_a_long_block_is_looked_through_only_when_it_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[int]()
    parse = MarkdownIt.parse
    monkeypatch.setattr(
        MarkdownIt, "parse", lambda self, text, *more: (calls.append(len(text)), parse(self, text, *more))[1]
    )
    blocks = Blocks()
    blocks.feed("```\n")
    for _ in range(4_000):
        blocks.feed("a line of code\n")

    assert sum(calls) < 60 * 15 * 4_000


def test_an_image_stays_in_its_place_in_the_text() -> None:
    console = Console(width=80)

    with console.capture() as captured:
        console.print(Block("Before ![a tea](http://example.org/tea.png) and after."))

    assert captured.get().strip() == "Before 🌆 a tea (http://example.org/tea.png) and after."


def test_an_answer_is_rendered_on_a_terminal(model_server: ModelServer, place: Place) -> None:
    model_server(ANSWER)

    with Terminal(place.environment(), "say", "Hi") as terminal:
        code = terminal.end()

    lines = screen(terminal.raw)
    assert code == 0
    assert "# Tea" not in lines
    assert [line for line in lines if line] == [
        "Tea", "Green tea is good:", ' print("tea")', " 1 one", " 2 a link (http://example.org)", " a  b", " ────", " 1  2",
        "<b>not</b> HTML", "and a second line␛[2J",
    ]  # fmt: skip
    assert lines[:3] == ["Tea", "", "Green tea is good:"]


def test_a_stored_answer_is_rendered_on_a_terminal_as_it_was_when_it_was_written(
    model_server: ModelServer, place: Place, taiwa: Taiwa
) -> None:
    model_server("# Tea\n\n**Green**: \\(a_1 \\cdot b_1\\), and $x*y*z$.\n\n- one\n")
    taiwa.ok("say", "Hi")

    for command in ("log", "show"):
        with Terminal(place.environment(), command, "plain-1") as terminal:
            terminal.end()

        assert "**" not in terminal.text
        assert "# Tea" not in terminal.text
        assert "\\(a_1 \\cdot b_1\\), and $x*y*z$." in terminal.text
        assert "you: Hi" in terminal.text
    assert "plain: # Tea" in taiwa.ok("log", "plain-1").out


def test_raw_prints_what_the_model_wrote(model_server: ModelServer, place: Place, taiwa: Taiwa) -> None:
    model_server("# Tea\n\n**good**", "# Tea\n\n**good**")

    with Terminal(place.environment(), "say", "--raw", "Hi") as terminal:
        terminal.end()
    piped = taiwa.ok("say", "Hi")

    assert [line for line in screen(terminal.raw) if line] == ["# Tea", "**good**"]
    assert piped.out == "# Tea\n\n**good**\n"


def test_a_spinner_counts_seconds_until_the_first_word_and_leaves_no_trace(
    model_server: ModelServer, place: Place
) -> None:
    model_server(silence(head()))

    with Terminal(place.environment(), "say", "Hi") as terminal:
        terminal.see("1 s")
        terminal.type("\x03")
        code = terminal.end()

    assert code == 130
    assert not any(" s" in line for line in screen(terminal.raw) if "cut off" not in line)


def test_a_typed_answer_shows_how_much_of_it_has_come_and_leaves_no_trace(
    model_server: ModelServer, place: Place
) -> None:
    model_server(silence(head() + words('{"drink": "green tea", ')))

    with Terminal(place.environment(), "extract", "drink, cups int", "Two green teas.") as terminal:
        terminal.see("about 6 tokens")
        terminal.type("\x03")
        code = terminal.end()

    assert code == 130
    assert not any("tokens" in line for line in screen(terminal.raw))


@pytest.mark.parametrize("more", [(), ("--no-stream",)])
def test_a_generated_answer_is_waited_for_in_sight(
    model_server: ModelServer, place: Place, more: tuple[str, ...]
) -> None:
    model_server("Two teas.")

    with Terminal(place.environment(), "generate", "Order.", *more) as terminal:
        code = terminal.end()

    assert code == 0
    assert [line for line in screen(terminal.raw) if line] == ["Two teas."]


def test_a_generated_answer_that_does_not_stream_shows_how_much_of_it_has_come(
    model_server: ModelServer, place: Place
) -> None:
    model_server(silence(head() + words("Two green teas")))

    with Terminal(place.environment(), "generate", "--no-stream", "Order.") as terminal:
        terminal.see("about 4 tokens")
        terminal.type("\x03")
        terminal.end()

    assert not any("tokens" in line for line in screen(terminal.raw))


def test_an_answer_that_is_cut_off_stays_on_the_terminal(model_server: ModelServer, place: Place) -> None:
    model_server(silence(head() + words("Once **upon** a")))

    with Terminal(place.environment(), "say", "Hi") as terminal:
        terminal.see("Once")
        terminal.type("\x03")
        code = terminal.end()

    lines = [line for line in screen(terminal.raw) if line]
    assert code == 130
    assert lines[0].startswith("Once")
    assert "resume" in lines[-2] + lines[-1]


def test_no_stream_prints_the_answer_once_it_is_whole(model_server: ModelServer, taiwa: Taiwa) -> None:
    model_server("Hello **there**")

    assert taiwa.ok("say", "--no-stream", "Hi").out == "Hello **there**\n"


def test_a_cut_off_turn_is_resumed_by_the_model_that_it_was_for(
    model_server: ModelServer, place: Place, taiwa: Taiwa
) -> None:
    model = model_server(silence(head())).model
    place.set(attempts=1)  # no model is configured

    with Terminal(place.environment(), "say", "-m", model, "Hi") as terminal:
        terminal.see("1 s")
        terminal.type("\x03")
        terminal.end()

    assert [line for line in screen(terminal.raw) if line] == [
        "taiwa: the turn was cut off; taiwa resume finishes it without paying again"
    ]
    model_server("Again.")  # on a busy machine the turn may have been cut off before its request
    place.set(attempts=1)
    assert taiwa.ok("resume").out == "Again.\n"


def test_a_turn_that_is_not_stored_is_not_said_to_be_resumable(model_server: ModelServer, place: Place) -> None:
    model = model_server(silence(head())).model

    with Terminal(place.environment(), "say", "--no-store", "-m", model, "Hi") as terminal:
        terminal.see("1 s")
        terminal.type("\x03")
        code = terminal.end()

    assert code == 130
    assert [line for line in screen(terminal.raw) if line] == ["taiwa: interrupted"]


def test_an_answer_and_an_error_break_between_words_at_forty_columns(model_server: ModelServer, place: Place) -> None:
    model_server("これはとても長い文章なので、途中で折り返しが必要になり、それだけです。")

    with Terminal(place.environment(COLUMNS="40"), "say", "Hi") as terminal:
        terminal.end()
    with Terminal(place.environment(COLUMNS="40"), "redo", "plain-1") as refused:
        refused.end()

    assert [line for line in screen(terminal.raw) if line] == [
        "これはとても長い文章なので、途中で折り返",
        "しが必要になり、それだけです。",
    ]
    assert [line for line in screen(refused.raw) if line] == [
        "taiwa: nothing to redo in session",
        "'plain-1': nothing was undone",
    ]
