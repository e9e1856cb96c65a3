"""Thinking that a server leaves in the text is kept apart from the answer."""

from collections.abc import Iterable

import pytest
from hypothesis import example, given

from taiwa.kernel.effects import Complete, Program, WatchResult, perform
from taiwa.kernel.execution import RunResult
from taiwa.kernel.messages import (
    BLOCKS,
    Message,
    Regex,
    Request,
    Response,
    Text,
    TextDelta,
    Thinking,
    ThinkingSplitter,
    collect_response,
    split_unopened,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.models.scripted import scripted_model
from tests.models.pieces import PLACES, cut
from tests.strategies import ODD, joined, texts

pieces = (
    "<think>", "</think>", "<thi", "nk>", "</", "[THINK]", "\n", " ", "<", "so",
    "日本", "<b>", "</thinking>", "`", "<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "<|start|>assistant", "<|end|>", "<|cha", "<|message|>",
)  # fmt: skip


def split(chunks: Iterable[str]) -> tuple[str, str]:
    splitter = ThinkingSplitter()
    response = collect_response([*(delta for chunk in chunks for delta in splitter.feed(chunk)), *splitter.close()])
    thinking = "".join(part.text for part in response.message.parts if isinstance(part, Thinking))
    return thinking, response.text


def ask(request: Request) -> Program[Response]:
    return (yield from perform(Complete(request)))


@example("<think></think>`<think>a</think>", [16])
@example("<think></think><think>a<think>b</think>", [20, 25])
@given(joined([*pieces, *ODD], max_size=8) | texts, PLACES)
def test_wherever_an_answer_is_cut_it_is_split_alike(text: str, places: list[int]) -> None:
    assert split(cut(text, places)) == split([text])


@given(texts.filter(lambda text: not text.lstrip().startswith(("<", "["))), PLACES)
def test_a_text_without_thinking_stays_as_it_is(text: str, places: list[int]) -> None:
    assert split(cut(text, places)) == ("", text)


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<think>One and one</think>Two.", "One and one", "Two."),
        ("<think>\nOne and one\n</think>\n\nTwo.\n", "\nOne and one\n", "Two.\n"),
        ("\n<Think>One</THINK> Two.", "One", "Two."),
        ("<thinking>a < b</thinking>b > a", "a < b", "b > a"),
        ("[THINK]One[/THINK]Two", "One", "Two"),
        ("<think>One</think>\n<think>Or two</think>\nTwo", "One\n\nOr two", "Two"),
        ("<think></think>\n\nTwo", "", "Two"),
        ("<think>Cut off </thi", "Cut off </thi", ""),
        ("Use <think>tags</think>.", "", "Use <think>tags</think>."),
        ("<think>One</think>So <think>Or</think>two", "One\n\nOr", "So two"),
        ("<think>One</think>Use <think> for this", "One", "Use <think> for this"),
        ("<think>One</think>Use `<think>a</think>` for this", "One", "Use `<think>a</think>` for this"),
        (
            "<|channel|>analysis<|message|>One<|end|><|start|>assistant<|channel|>final<|message|>Two<|return|>",
            "One",
            "Two",
        ),
        (
            "<|start|>assistant<|channel|>analysis<|message|>One<|channel|>commentary<|message|>So<|end|>"
            "<|start|>assistant<|channel|>final <|constrain|>json<|message|>{}",
            "One\n\nSo",
            "{}",
        ),
        ("<|channel|>analysis<|message|>Cut off", "Cut off", ""),
        ("<|channel|>final<|message|>Two", "", "Two"),
        ("<|start|>assistant<|message|>Two<|end|>", "", "Two"),
        ("<|channel|> is a token", "", "<|channel|> is a token"),
        ("<thinker>", "", "<thinker>"),
        ("  code()", "", "  code()"),
        ("<thi", "", "<thi"),
        ("", "", ""),
    ],
)
def test_thinking_stands_in_blocks_before_the_answer(text: str, thinking: str, answer: str) -> None:
    assert split([text]) == (thinking, answer)
    assert split(text) == (thinking, answer)


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("One and one.\n</think>\n\nTwo.", "One and one.", "Two."),
        ("The tag </think> ends it.\nSo.", None, None),
        ("```\nOne\n</think>\nTwo\n```", None, None),
        ("Write <think>\nso\n</think>\nand answer", None, None),
        ("One\n</think>\n", None, None),
        ("One and one.</think>Two.", "One and one.", "Two."),
        ("</think>\n\nTwo.", "", "Two."),
        ("Write `</think>` and go on", None, None),
        ("analysisOne and one.assistantfinalTwo.", "One and one.", "Two."),
        ("analysisOne and one.assistantcommentary ", "One and one.", ""),
        ("analysis of the data by the assistant: final", None, None),
    ],
)
def test_thinking_that_the_chat_template_opened_ends_at_a_tag_on_a_line(
    text: str, thinking: str | None, answer: str | None
) -> None:
    found = split_unopened(text)

    assert (found and found.thinking, found and found.text) == (thinking, answer)


@pytest.mark.parametrize("opening", BLOCKS)
def test_a_program_gets_the_answer_and_the_journal_keeps_the_thinking(opening: str) -> None:
    model = scripted_model(f"{opening}Let me see.{BLOCKS[opening]}\n\nTwo.")

    events = [*Runtime(model).stream(ask(Request((user("1+1?"),))))]
    done = events.pop()
    assert isinstance(done, RunResult)

    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Two."
    assert done.value.message == Message("assistant", (Thinking("Let me see."), Text("Two.")))
    assert done.journal.entries[0].answer == done.value


def test_an_answer_of_a_given_form_is_left_as_it_is() -> None:
    text = "<think>a</think>"

    for request in (Request((user("?"),), constraint=Regex(".*")), Request((user("?"),), prefix="So: ")):
        assert Runtime(scripted_model(text)).run(ask(request)).text == text


class UpTo:
    """Ends an answer at its third character."""

    def __init__(self) -> None:
        self.seen = 0

    def feed(self, text: str) -> WatchResult:
        self.seen += len(text)
        return WatchResult(text, 3 if self.seen >= 3 else None)

    def close(self) -> WatchResult:
        return WatchResult()


def test_a_watcher_that_cuts_counts_the_characters_of_the_text() -> None:
    def program() -> Program[Response]:
        return (yield from perform(Complete(Request((user("?"),)), UpTo)))

    response = Runtime(scripted_model("<think>long</think>abcdef")).run(program())

    assert response.message.parts == (Thinking("long"), Text("abc"))
    assert "def".startswith(response.discarded)
