"""Messages with their templates and values."""

from copy import deepcopy

import pytest

from taiwa.i18n import translated
from taiwa.kernel.errors import InputError, restore_error
from taiwa.kernel.wording import Wording


def test_a_message_and_the_messages_in_it_are_translated() -> None:
    hint = Wording("did you mean {near}?", near="tea {n}")
    message = Wording("session {name!r} not found; {hint}", name="te a", hint=hint)

    assert message == "session 'te a' not found; did you mean tea {n}?"
    assert translated(message, "ja") == "会話 'te a' は見つかりません。tea {n} のことですか？"
    assert translated(deepcopy(message), "ja") == translated(message, "ja")
    assert translated(Wording.joined("; ", (hint, "plain")), "zh") == "您是指 tea {n} 吗？; plain"
    assert translated("session 'te a' not found", "ja") == "session 'te a' not found"


def test_a_recorded_error_keeps_what_its_message_was_made_of() -> None:
    error = restore_error(InputError(Wording("{name!r} is larger than {most} MB", name="tea.md", most=50)).record())

    assert (error.message, translated(error.message, "zh")) == ("'tea.md' is larger than 50 MB", "'tea.md' 大于 50 MB")


@pytest.mark.parametrize("wording", [["{name.__class__}", "name", "x"], ["another", "name", "x"], [], ["{name"], 3])
def test_a_stored_template_that_is_not_that_of_the_message_is_passed_over(wording: list[str]) -> None:
    error = restore_error({"type": "input", "message": "the text is empty", "wording": wording})  # type: ignore[dict-item]

    assert type(error.message) is str
