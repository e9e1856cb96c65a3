"""The answer of a JSON reply is shown while the reply streams."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.conversation.replies import AnswerWatcher, MemberWatcher, TypedWatch
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import whole_characters
from taiwa.structured import OutputType
from tests.models.pieces import PLACES, cut
from tests.strategies import json_values, texts

strings = texts | st.text(st.sampled_from('"\\/{}[],:\n\r\u2028𝄞あa \x00'), max_size=20)
styles: st.SearchStrategy[Callable[[Json], str]] = st.sampled_from(
    [
        json.dumps,
        lambda item: json.dumps(item, ensure_ascii=False),
        lambda item: json.dumps(item, indent=2),
        lambda item: json.dumps(item, separators=(",", ":"), ensure_ascii=False),
        lambda item: json.dumps(item).replace("/", "\\/"),
        lambda item: f"Here it is:\n```json\n{json.dumps(item)}\n```\n",
    ]
)


def watch() -> MemberWatcher:
    return MemberWatcher("answer", str)


def shown(watcher: MemberWatcher, pieces: list[str]) -> str:
    return "".join(watcher.feed(piece).show for piece in pieces)


@given(strings, st.dictionaries(strings, json_values, max_size=3), st.booleans(), styles, PLACES)
def test_wherever_the_text_is_cut_the_string_is_the_one_that_json_reads(
    answer: str, others: dict[str, Json], first: bool, style: Callable[[Json], str], places: list[int]
) -> None:
    others.pop("answer", None)
    whole: Json = {"answer": answer} | others if first else others | {"answer": answer}
    watcher = watch()

    said = shown(watcher, cut(style(whole), places))

    assert said == answer


@given(strings, json_values)
def test_only_the_member_at_the_top_is_read(answer: str, inner: Json) -> None:
    nested: Json = {"delta": {"answer": "wrong", "list": [{"answer": inner}]}, "answer": answer}

    assert shown(watch(), list(json.dumps(nested))) == answer


@given(strings)
def test_characters_are_shown_as_soon_as_they_are_certain(answer: str) -> None:
    watcher = watch()
    watcher.feed('{"answer": "')

    for length, letter in enumerate(answer, 1):
        said = watcher.feed(json.dumps(letter, ensure_ascii=False)[1:-1]).show

        assert said == answer[length - 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"answer": "so \\uD83D\\uDE00"}', "so 😀"),
        ('{"answer": "so \\ud83d\\ud83d\\ude00."}', "so \ufffd😀."),
        ('{"answer": "so \\ud83d \\ude00"}', "so \ufffd \ufffd"),
        ('{"answer": "so \\ud83d"}', "so \ufffd"),
        ('{"answer": "so \\ud83d\\n"}', "so \ufffd\n"),
        ('{"\\u0061nswer": "so"}', "so"),
        ('{"answer" :\n\t"so"}', "so"),
        ('{"a": [1, "]", {"b": "}"}], "answer": "so"}', "so"),
        ('{"a": -1.5e3 , "b": null, "answer": "so"}', "so"),
        ('{"a": "\\\\", "answer": "so"}', "so"),
    ],
)
def test_escapes_and_neighbours_are_read_as_json_has_them(text: str, said: str) -> None:
    whole = watch()
    letters = watch()

    assert whole.feed(text).show == said
    assert shown(letters, list(text)) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no JSON at all", ""),
        ('{"answer": 3, "more": "x"}', ""),
        ('{"answer": {"answer": "x"}}', ""),
        ('{"other": "x"}', ""),
        ("{'answer': 'x'}", ""),
        ('{"answer": "half", "answer": "again"}', "half"),
        ('{"answer": "wrong \\x escape"}', "wrong \\x escape"),
        ('{"answer": "wrong \\u12x4 unit"}', "wrong \\u12x4 unit"),
        ('{"answer" "x"}', ""),
        ('{"a": 1 "answer": "x"}', ""),
        ('{"answer": "cut o', "cut o"),
        ('{"answer": "cut \\ud83', "cut "),
        ('["answer", "x"]', ""),
    ],
)
def test_what_is_not_strict_json_shows_no_more_than_is_certain(text: str, said: str) -> None:
    assert watch().feed(text).show == said
    assert shown(watch(), list(text)) == said


def test_a_long_string_in_small_chunks_is_read_once() -> None:
    text = json.dumps({"answer": "ab\\\n" * 50_000})
    watcher = watch()

    said = shown(watcher, [text[start : start + 4] for start in range(0, len(text), 4)])

    assert said == "ab\\\n" * 50_000


def test_a_watcher_shows_the_answer_and_nothing_of_the_rest() -> None:
    watcher = MemberWatcher("answer", lambda text: json.loads(text)["answer"])

    pieces = [watcher.feed(piece).show for piece in ['{"ans', 'wer": "He', 'llo\\n"', ', "delta": {}}']]

    assert pieces == ["", "He", "llo\n", ""]
    assert watcher.close().show == ""


@pytest.mark.parametrize(
    ("reply", "answer", "rest"),
    [("so it is", "so it is", "so it is"), ('{"answer": "dra', "draft", "ft"), ('{"answer": "one"}', "two", "\n\ntwo")],
)
def test_a_watcher_shows_at_the_end_what_only_the_whole_reply_tells(reply: str, answer: str, rest: str) -> None:
    watcher = MemberWatcher("answer", lambda _: answer)
    watcher.feed(reply)

    assert watcher.close().show == rest


@pytest.mark.parametrize(("text", "mended"), [("a\ud83d", "a\ufffd"), ("\udc00b", "\ufffdb"), ("😀", "😀"), ("", "")])
def test_half_a_character_is_replaced(text: str, mended: str) -> None:
    assert whole_characters(text) == mended


def test_watchers_tell_when_the_delta_is_written_and_not_before() -> None:
    member = MemberWatcher("answer", lambda text: json.loads(text)["answer"])
    line = AnswerWatcher(lambda text: text.partition("\n@@delta")[0], ("topics",))

    assert [member.feed(piece).in_delta for piece in ['{"answer": "He', 'llo", ', '"delta": {"topics": ["tea"]']] == [
        False,
        False,
        True,
    ]
    assert [line.feed(piece).in_delta for piece in ["Hello.", "\n@@", 'delta\n{"topics": ', '["tea"]}']] == [
        False,
        False,
        True,
        True,
    ]


def test_a_partial_value_stays_as_it_is_and_shares_with_the_next_what_is_complete() -> None:
    watcher = TypedWatch(OutputType(dict[str, Any]), in_member=False)()
    text = '{"a": [{"b": "xy"}, [1, 2], {}], "c": 3}'

    partial: list[Any] = [found for each in text if (found := watcher.feed(each).partial) is not None]

    b: Json = {"b": "xy"}
    assert partial == [
        {"a": [{"b": "x"}]}, {"a": [b]}, {"a": [b, [1]]}, {"a": [b, [1, 2]]}, {"a": [b, [1, 2], {}]},
        {"a": [b, [1, 2], {}], "c": 3},
    ]  # fmt: skip
    assert partial[-2]["a"][0] is partial[-3]["a"][0]
