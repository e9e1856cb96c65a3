"""Which turns stay in the prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.conversation.app import ALL, WindowPolicy
from taiwa.conversation.history import Conversation, summarize_window, turns_to_keep
from tests.conversation.apps import MOOD, TOPICS, app, talked


def after(turns: int, policy: WindowPolicy, setting: tuple[int, ...] = ()) -> Conversation:
    said = [(f"user {n}", f"answer {n}", {"mood": "set"} if n in setting else {}) for n in range(1, turns + 1)]
    return talked(app(MOOD, TOPICS, window=policy), *said)


def kept(conversation: Conversation) -> list[int] | None:
    turns = turns_to_keep(conversation)
    return None if turns is None else [int(past.user.removeprefix("user ")) for past in turns]


@pytest.mark.parametrize(
    ("turns", "policy", "staying"),
    [
        (99, ALL, None),
        (3, WindowPolicy(4, 2), None),
        (4, WindowPolicy(4, 2), [3, 4]),
        (6, WindowPolicy(4, 2), [5, 6]),
        (4, WindowPolicy(4, 0), []),
        (4, WindowPolicy(4, 2, keep_first=1), None),
        (5, WindowPolicy(4, 2, keep_first=1), [1, 4, 5]),
        (4, WindowPolicy(4, 4), None),
        (5, WindowPolicy(4, 4), [2, 3, 4, 5]),
        (4, WindowPolicy(4, 9), None),
        (0, WindowPolicy(1, 0), None),
    ],
)
def test_a_full_window_is_cut_in_one_step(turns: int, policy: WindowPolicy, staying: list[int] | None) -> None:
    assert kept(after(turns, policy)) == staying


def test_turns_that_set_a_pinned_field_stay_and_are_not_counted() -> None:
    policy = WindowPolicy(3, 1, keep_setting=("mood",))

    assert kept(after(4, policy, setting=(1, 2))) is None
    assert kept(after(5, policy, setting=(1, 2))) == [1, 2, 5]


def test_a_field_set_to_null_pins_no_turn() -> None:
    conversation = talked(app(MOOD, window=WindowPolicy(1, 0, keep_setting=("mood",))), ("user 1", "a", {"mood": None}))

    assert kept(conversation) == []


windows = st.integers(1, 6).flatmap(
    lambda size: st.builds(
        WindowPolicy,
        st.just(size),
        st.integers(0, size - 1),
        st.just(False),
        st.integers(0, 2),
        st.sampled_from([(), ("mood",)]),
    )
)


@given(windows, st.integers(0, 12), st.lists(st.integers(1, 12), max_size=4).map(tuple))
def test_a_window_that_was_cut_need_not_be_cut_again(
    policy: WindowPolicy, turns: int, setting: tuple[int, ...]
) -> None:
    conversation = after(turns, policy, setting)
    staying = turns_to_keep(conversation)
    if staying is None:
        return

    folded = summarize_window(conversation, [past.hash for past in staying], "")

    assert folded.turns == staying
    assert turns_to_keep(folded) is None
    assert staying[-1:] == conversation.turns[-1:] or policy.keep == 0


@given(windows, st.integers(0, 12))
def test_a_window_never_exceeds_its_size(policy: WindowPolicy, turns: int) -> None:
    conversation = after(turns, policy)
    staying = turns_to_keep(conversation)
    window = conversation.turns if staying is None else staying

    assert len(window) < (policy.max_size or 0) + policy.keep_first
