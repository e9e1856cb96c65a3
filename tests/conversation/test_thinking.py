"""Reasoning that a server signed or encrypted stays with its turn: in the next request, in the store, in an export."""

import pytest

from taiwa.apps.catalog import load_app
from taiwa.conversation.history import TurnParts, add_turn, begin, restore_thinking
from taiwa.conversation.turn_prompt import turn_request
from taiwa.flows.turn import say
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message, Response, Text, Thinking, assistant, user
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import record
from taiwa.models.scripted import scripted_model
from taiwa.store import Store

SIGNED = Thinking("2 and 2", {"type": "thinking", "thinking": "2 and 2", "signature": "c2ln"}, "anthropic:claude")
PLAIN = load_app("plain")


def test_signed_reasoning_stands_before_its_answer_in_the_next_request() -> None:
    answer = Response(Message("assistant", (Thinking("shown only"), SIGNED, Text("4"))))

    _, after = Runtime(scripted_model(answer)).run(say("2 + 2?")(begin(PLAIN)))

    assert after.turns[-1].parts.thinking == (SIGNED,)
    assert turn_request(after, "and 3?").messages == (
        user("2 + 2?"),
        Message("assistant", (SIGNED, Text("4"))),
        user("and 3?"),
    )


def test_a_turn_without_signed_reasoning_has_the_hash_that_it_always_had() -> None:
    answer = Response(Message("assistant", (Thinking("shown only"), Text("4"))))

    _, after = Runtime(scripted_model(answer)).run(say("2 + 2?")(begin(PLAIN)))

    assert after.tip == add_turn(begin(PLAIN), "2 + 2?", "4", {}).tip
    assert turn_request(after, "and 3?").messages[1] == assistant("4")


def test_signed_reasoning_is_stored_and_exported() -> None:
    conversation = add_turn(begin(PLAIN), "2 + 2?", "4", None, TurnParts(thinking=(SIGNED,)))
    with Store.open(":memory:") as store, Store.open(":memory:") as other:
        store.nodes.put_app(PLAIN.source)
        for node in conversation.new_nodes:
            store.nodes.put(node)
        store.refs.create("main", conversation.tip)

        other.import_lines(store.export("main"))

        assert store.nodes.get(conversation.tip) == conversation.new_nodes[-1]
        assert other.nodes.get(conversation.tip) == conversation.new_nodes[-1]


@pytest.mark.parametrize("data", ["text", [1], [{"~": "text", "text": "x"}], [{"~": "nothing"}]])
def test_a_record_of_something_else_is_refused(data: object) -> None:
    with pytest.raises(InputError):
        restore_thinking(data)  # type: ignore[arg-type]


def test_a_record_of_reasoning_is_read_back() -> None:
    assert restore_thinking(record((SIGNED,))) == (SIGNED,)
    assert restore_thinking(None) == ()
