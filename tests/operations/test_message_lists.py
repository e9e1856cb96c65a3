"""Conversations as lists of messages of other programs: what is read, what is written, and what is refused in one line."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ConflictError, InputError
from taiwa.kernel.serialization import Json
from taiwa.operations.export import export
from taiwa.operations.message_lists import import_message_lists, read_message_lists
from taiwa.sessions.repository import Repository
from taiwa.store import Store

CALL = {"id": "c1", "type": "function", "function": {"name": "calculator", "arguments": '{"expression": "2+2"}'}}
OPENAI: Json = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},  # pyright: ignore[reportAssignmentType]
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
        {"role": "assistant", "content": "It is 4."},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": "You are welcome."},
    ]
}
ANTHROPIC: Json = {
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "2+2?"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "calculator", "input": {"expression": "2+2"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "4"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "It is 4."}]},
        {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
        {"role": "assistant", "content": [{"type": "text", "text": "You are welcome."}]},
    ],
}
SHAREGPT: Json = {
    "conversations": [
        {"from": "system", "value": "Be brief."},
        {"from": "human", "value": "2+2?"},
        {"from": "gpt", "value": "It is 4."},
        {"from": "human", "value": "Thanks."},
        {"from": "gpt", "value": "You are welcome."},
    ]
}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(Store.open(tmp_path / "taiwa.db"))


def imported(repository: Repository, data: Json, name: str = "") -> list[str]:
    lists = read_message_lists(json.dumps(data))
    assert lists is not None
    return [*import_message_lists(repository, lists, name)]


@pytest.mark.parametrize(("form", "data"), [("openai", OPENAI), ("anthropic", ANTHROPIC), ("sharegpt", SHAREGPT)])
def test_what_is_imported_is_exported_alike(repository: Repository, form: str, data: Json) -> None:
    (name,) = imported(repository, data)

    here = repository.at(name)
    assert json.loads(export(repository, name, form)) == data
    assert [(turn.user, turn.answer) for turn in here.turns] == [("2+2?", "It is 4."), ("Thanks.", "You are welcome.")]
    assert here.app.answer_options.system == "Be brief."


def test_each_form_can_be_written_from_another(repository: Repository) -> None:
    imported(repository, OPENAI, "one")
    imported(repository, json.loads(export(repository, "one", "anthropic")), "two")

    assert json.loads(export(repository, "two", "openai")) == OPENAI
    assert json.loads(export(repository, "two", "sharegpt")) == SHAREGPT


def test_several_conversations_are_numbered_and_a_bare_list_is_one(repository: Repository) -> None:
    assert imported(repository, [SHAREGPT, OPENAI], "talk") == ["talk-1", "talk-2"]
    assert imported(repository, [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]) == [
        "plain-1"
    ]

    lines = read_message_lists("\n".join(map(json.dumps, (SHAREGPT, ANTHROPIC))))

    assert lines is not None
    assert len(lines) == 2
    assert repository.store.refs.latest() is None  # as after any import


def chatgpt(role: str, text: object, of: str | None, **more: str) -> Json:
    kind = more.get("kind", "text")
    message = {"author": {"role": role}, "content": {"content_type": kind, "parts": [text]}, "recipient": "all", **more}
    return {"message": message, "parent": of, "children": []}  # pyright: ignore[reportReturnType]


CHATGPT: Json = [
    {
        "title": " Sums \n of two ",
        "current_node": "g",
        "mapping": {
            "a": {"message": None, "parent": None, "children": ["b"]},
            "b": chatgpt("system", "", "a"),
            "c": chatgpt("user", "2+2?", "b"),
            "left": chatgpt("assistant", "5", "c"),
            "d": chatgpt("assistant", "add(2, 2)", "c", recipient="python"),
            "e": chatgpt("tool", "4", "d"),
            "f": chatgpt("assistant", "It is 4.", "e"),
            "g": chatgpt("user", "Thanks.", "f"),
        },
    },
    {"title": "never answered", "current_node": "a", "mapping": {"a": chatgpt("user", "Hello?", None)}},
]
CLAUDE: Json = [
    {
        "uuid": "1",
        "name": "Sums of two",
        "chat_messages": [
            {"sender": "human", "text": "2+2?", "content": []},
            {
                "sender": "assistant",
                "content": [{"type": "thinking", "thinking": "?"}, {"type": "text", "text": "It is 4."}],
            },
        ],
    }
]


@pytest.mark.parametrize("data", [CHATGPT, CLAUDE])
def test_what_chatgpt_and_claude_export_is_read_to_its_last_answer(repository: Repository, data: Json) -> None:
    (name,) = imported(repository, data)

    assert [(turn.user, turn.answer) for turn in repository.at(name).turns] == [("2+2?", "It is 4.")]
    assert [ref.title for ref in repository.store.refs.list()] == ["Sums of two"]


@pytest.mark.parametrize("data", [{"mapping": {}}, [{"mapping": {"a": {"parent": "a"}}, "current_node": "a"}]])
def test_an_export_without_an_answer_is_refused(repository: Repository, data: Json) -> None:
    with pytest.raises(InputError, match="there is no answer of an assistant to import"):
        imported(repository, data)


def test_of_several_conversations_all_are_imported_or_none(repository: Repository) -> None:
    with pytest.raises(InputError, match="lone surrogate"):
        imported(repository, [OPENAI, {**OPENAI, "title": "\ud800"}])  # type: ignore[dict-item]

    assert repository.store.refs.list() == ()


def logged(prompt: str, response: str, of: str, **more: Json) -> Json:
    return {"prompt": prompt, "response": response, "conversation_id": of, "system": None, "attachments": [], **more}


def test_the_log_of_llm_is_read_by_its_conversations(repository: Repository) -> None:
    log: Json = [
        logged("Two teas", "Coming.", "a", system="Be kind.", conversation_name="Teas"),
        logged("Other", "Yes.", "b"),
        logged(
            "And a coffee", "Let me look.", "a", system="Be kind.", prompt_fragments=[{"hash": "1", "content": "black"}]
        ),
        logged("", "Coming, too.", "a"),
        {"prompt": "Pair one", "response": "No log."},
        {"prompt": "Pair two", "response": "No log."},
    ]

    first, second, *others = imported(repository, log)

    here = repository.at(first)
    assert [(turn.user, turn.answer) for turn in here.turns] == [
        ("Two teas", "Coming."),
        ("black\nAnd a coffee", "Let me look.\n\nComing, too."),
    ]
    assert [[turn.user for turn in repository.at(each).turns] for each in others] == [["Pair one"], ["Pair two"]]
    assert (here.app.answer_options.system, repository.store.refs.list()[-1].title) == ("Be kind.", "Teas")
    assert [(turn.user, turn.answer) for turn in repository.at(second).turns] == [("Other", "Yes.")]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (
            [logged("x", "y", "a", attachments=[{"type": "image/png"}])],
            "message 1: content of type 'image/png' cannot be",
        ),
        ({"messages": []}, "messages must be a list that is not empty"),
        ({"messages": ["x"]}, "message 1 is not an object"),
        ([{"role": "usr", "content": "x"}], "message 1: unknown role 'usr'; use system, user, assistant or tool"),
        ([{"role": "user", "content": "x"}], "message 1 has no answer; remove the messages behind the last answer"),
        ([{"role": "system", "content": "x"}], "there is no answer of an assistant to import"),
        (
            [{"role": "user", "content": [{"type": "image_url"}]}],
            "message 1: content of type 'image_url' cannot be read",
        ),
        ([{"role": "user", "content": 7}], "message 1: content of type 'int' cannot be read"),
        ([{"role": "assistant", "tool_calls": ["x"]}], "message 1: a call of a tool has no name"),
        ([SHAREGPT, {"conversations": [{"from": "human"}, 1]}], "conversation 2: message 2 is not an object"),
    ],
)
def test_what_cannot_be_imported_is_one_line_and_changes_nothing(repository: Repository, data: Json, why: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(repository, data, "talk")

    assert caught.value.message.startswith(why)
    assert repository.store.refs.list() == ()


def test_a_taken_name_imports_nothing(repository: Repository) -> None:
    imported(repository, OPENAI, "talk-2")

    with pytest.raises(ConflictError, match="session 'talk-2' already exists"):
        imported(repository, [OPENAI, OPENAI], "talk")

    assert [ref.name for ref in repository.store.refs.list()] == ["talk-2"]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["user", "assistant", "tool", "gpt"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "messages",
                    "conversations",
                    "role",
                    "from",
                    "content",
                    "value",
                    "tool_calls",
                    "type",
                    "text",
                    "function",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_or_refused(data: Json) -> None:
    with suppress(InputError):
        read_message_lists(json.dumps(data))
