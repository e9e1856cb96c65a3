"""Looking: state, why, diff, log, show and search, in wide characters too."""

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from taiwa.cli.log import describe_call
from taiwa.store.runs import CallRecord, CallTime
from tests.cli.conftest import ModelServer, Place, Taiwa, delta
from tests.cli.terminal import Terminal

INTO_ENGLISH = ("-p", "target_lang=English")


@pytest.fixture
def talked(taiwa: Taiwa, model_server: ModelServer) -> Taiwa:
    """`translate-1`: two turns that fill its dictionary."""
    model_server(
        delta("I write a sentence.", dictionary={"文": "sentence"}),
        delta("The cat reads the text.", dictionary={"猫": "cat", "文": "text"}),
    )
    taiwa.ok("say", "translate", *INTO_ENGLISH, "文(sentence)を書く。")
    taiwa.ok("say", "-c", "猫(cat)が文(text)を読む。")
    return taiwa


# --- state ------------------------------------------------------------------------------------------------------------


def test_the_state_is_shown_whole_or_by_place(talked: Taiwa) -> None:
    assert talked.ok("state").lines[0] == 'dictionary: {"文": "text", "猫": "cat"}'
    assert talked.ok("state", "get", "dictionary.文").out == '"text"\n'
    assert talked.ok("state", "get", "dictionary.文", "translate-1~1").out == '"sentence"\n'
    assert talked.ok("state", "--json").json["state"]["turns"] == 2
    assert talked.ok("state", "--json", "translate-1~1").json["state"]["turns"] == 1
    assert talked.ok("state", "translate-1~1", "-s", "translate-1~1", "--json").json["state"]["turns"] == 1
    assert talked.ok("state", "translate-1~1", "get", "dictionary.文").out == '"sentence"\n'
    assert talked.ok("state", "history", "dictionary.文", "translate-1~1", "--json").json[0]["value"] == "sentence"
    assert talked("state", "-s", "nix", "get", "dictionary").code == 2


def test_an_edit_by_hand_is_a_step_with_an_author(talked: Taiwa) -> None:
    changed = talked.ok("state", "set", "dictionary.犬", "dog")

    assert changed.out == '+ dictionary.犬: "dog"\n'
    assert "set by an edit of the state" in talked.ok("why", "dictionary.犬").out
    talked.ok("undo")
    assert talked.ok("state", "get", "dictionary").out == '{"文": "text", "猫": "cat"}\n'


def test_every_earlier_value_is_listed(talked: Taiwa) -> None:
    rows = talked.ok("state", "history", "dictionary.文", "--json").json

    assert [row["value"] for row in rows] == ["sentence", "text"]
    assert [line.split()[1:] for line in talked.ok("state", "history", "dictionary.文").lines[1:]] == [
        ["turn", "1", '"sentence"'], ["turn", "2", '"text"'],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (("state", "get", "nix"), "no value at nix; fields: dictionary, language, turns, tokens"),
        (("state", "get", "dictionary["), "invalid path 'dictionary[' at character 11"),
        (("state", "set", "nix", "1"), "the state has no field 'nix'"),
        (("state", "set", "turns", "7"), "is computed (turn_count) and cannot be set"),
        (("state", "set", "dictionary", "7"), "the value does not fit"),
        (("state", "set", "dictionary.文.x", "7"), "'x' not found in"),
        (("why", "dictionary.犬"), "no value at dictionary.犬 in 'translate-1' (app translate); `taiwa log` lists"),
        (("why", "dictionary.犬", "translate-1:1"), "no value at dictionary.犬 in 'translate-1:1' (app translate)"),
        (("why", ""), "the path is empty"),
    ],
)
def test_an_unknown_path_is_an_error_of_one_line(talked: Taiwa, command: tuple[str, ...], line: str) -> None:
    looked = talked(*command)

    assert looked.code == 2
    assert line in looked.err
    assert looked.err.count("\n") == 1


def test_an_app_without_state_says_so(taiwa: Taiwa, model_server: ModelServer, apps: object) -> None:
    assert callable(apps)
    apps("plain", "---\ntaiwa: 1\nname: plain\n---\nTalk.\n")
    model_server("Hello!")
    taiwa.ok("say", "plain", "Hi")

    assert taiwa.ok("state").err == "app plain has no state\n"


# --- why and diff -----------------------------------------------------------------------------------------------------


def test_why_prints_the_turn_its_texts_and_the_call(talked: Taiwa, model_server: ModelServer) -> None:
    data = talked.ok("why", "dictionary.文").lines

    assert data[0] == 'dictionary.文 = "text"'
    assert data[1].startswith("  set by turn 2 (")
    assert data[1].endswith(', before: "sentence"')
    assert data[2:4] == [
        "  from:        your words: “猫(cat)が文(text)を読む。”",
        "  you:         猫(cat)が文(text)を読む。",
    ]
    assert model_server.model in data[-1]


def test_a_failed_call_is_shown_with_its_error() -> None:
    call = CallRecord("call-tool", "", None, None, "", CallTime(12, 0, 0), None, {"message": "boom failed"})

    assert describe_call(call) == "call-tool, boom failed, 12 ms"


def test_why_of_an_earlier_revision_prints_the_origin_at_that_revision(talked: Taiwa) -> None:
    data = talked.ok("why", "dictionary.文", "translate-1~1", "--json").json

    assert (data["turn"], data["before"], data["after"]) == (1, None, "sentence")


def test_diff_compares_states_and_texts(talked: Taiwa) -> None:
    data = talked.ok("diff", "translate-1~1").lines

    assert data[0] == '~ dictionary.文: "sentence" → "text"'
    assert data[1] == '+ dictionary.猫: "cat"'
    assert data[-2:] == ["+ > 猫(cat)が文(text)を読む。", "+   The cat reads the text."]


def test_diff_of_a_place_with_itself_is_nothing(talked: Taiwa) -> None:
    assert talked.ok("diff", "translate-1", "translate-1").out == "nothing changed\n"
    assert talked.ok("diff", "translate-1", "translate-1", "--json").json["state"] == []


# --- log, show, search ------------------------------------------------------------------------------------------------


def test_columns_of_wide_characters_align(talked: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("你好"), delta("Hello"))
    talked.ok("say", "chat", "-s", "会話", "你好")
    talked.ok("say", "chat", "-s", "talk", "Hello")

    lines = talked.ok("log").lines

    assert len(lines) == 4
    assert len({cell_len(re.match(r"\S+ +", line)[0]) for line in lines}) == 1  # type: ignore[index]


def test_a_conversation_can_be_read_oldest_turn_first(talked: Taiwa) -> None:
    lines = talked.ok("log", "translate-1").lines

    assert [line.split(" · ")[0] for line in lines if " · " in line] == ["turn 1", "turn 2"]
    assert re.fullmatch(r"turn 1 · [0-9a-f]{12} · \d{4}-\d\d-\d\d \d\d:\d\d", lines[0])
    assert lines[1] == "you: 文(sentence)を書く。"
    assert sum(line.startswith("translate: ") for line in lines) == 2
    assert talked.ok("log", "translate-1", "-n", "1").lines[0].startswith("turn 2 · ")


@pytest.mark.parametrize(("columns", "heads"), [(100, 7), (80, 7), (40, 3)])
def test_a_table_keeps_its_columns_on_a_narrow_terminal(
    taiwa: Taiwa, model_server: ModelServer, place: Place, columns: int, heads: int
) -> None:
    model_server("Hello.")
    taiwa.ok("say", "a question of several words, which needs some room")

    with Terminal(place.environment(COLUMNS=str(columns)), "log") as terminal:
        terminal.end()

    head, row, *_ = terminal.text.splitlines()
    assert len(re.split(r"  +", head.strip())) == heads
    assert row.startswith("plain-1")
    assert row.rstrip().find("a question") == head.find("first words")


@pytest.mark.parametrize("columns", [80, 40])
def test_a_tree_is_drawn_with_a_line_for_each_node(
    taiwa: Taiwa, model_server: ModelServer, place: Place, columns: int
) -> None:
    model_server("Hello.", "Hello.")
    taiwa.ok("say", "長い質問をここに書いて、表の中でどうなるかを見る")
    taiwa.ok("edit", "1", "another question of several words, which needs some room")
    for name in ("one", "two", "three"):
        taiwa.ok("fork", "plain-1", name)

    with Terminal(place.environment(COLUMNS=str(columns)), "log", "--tree") as terminal:
        terminal.end()

    lines = terminal.text.rstrip().splitlines()
    assert len(lines) == 3
    assert [line[:3] for line in lines[1:]] == ["├─ ", "└─ "]
    assert lines[1].endswith("…") or columns == 80


def test_a_row_that_does_not_fit_names_its_columns(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server("Hello.")
    taiwa.ok("say", "a question")

    with Terminal(place.environment(COLUMNS="40"), "cost") as terminal:
        terminal.end()

    assert "model test-model requests 1 · failed 0 · input 7 ·" in " ".join(terminal.text.split())


def test_models_of_one_name_keep_their_hosts_on_a_narrow_terminal(
    taiwa: Taiwa, model_server: ModelServer, place: Place
) -> None:
    model_server("Hello.", "Hello.")
    taiwa.ok("say", "a question")
    taiwa.ok("say", "a question", "-m", model_server.model.replace("127.0.0.1", "0.0.0.0"))

    with Terminal(place.environment(COLUMNS="80"), "cost") as terminal:
        terminal.end()

    assert re.findall(r"test-model (\S+):", terminal.text) == ["0.0.0.0", "127.0.0.1"]


def test_a_turn_is_shown_whole(talked: Taiwa) -> None:
    shown = talked.ok("show", "translate-1~1").lines

    assert shown[0].endswith("turn, turn 1, app translate")
    assert "you: 文(sentence)を書く。" in shown
    assert "translate: I write a sentence." in shown
    assert 'delta: {"dictionary": {"文": "sentence"}}' in shown
    data = talked.ok("show", "--json").json
    assert data["state"]["dictionary"] == {"文": "text", "猫": "cat"}
    assert data["calls"][0]["input_tokens"] == 7


@pytest.mark.parametrize(
    ("words", "found"), [("猫", 1), ("文", 2), ("cat text", 1), ("CAT", 1), ("犬", 0), ("読む", 1)]
)
def test_turns_are_found_by_their_words_in_any_language(talked: Taiwa, words: str, found: int) -> None:
    assert len(talked.ok("search", words, "--json").json) == found


def test_what_was_found_is_marked(talked: Taiwa) -> None:
    lines = talked.ok("search", "猫").lines

    assert "[猫]" in lines[1]
    assert talked.ok("search", "犬").err == "no turn contains '犬'\n"


def test_a_search_for_nothing_is_one_line(talked: Taiwa) -> None:
    assert talked("search", " ").code == 2


def test_without_conversations_log_prints_how_to_begin(taiwa: Taiwa) -> None:
    assert taiwa.ok("log").err == "there are no conversations yet; begin one with `taiwa chat` or `taiwa say`\n"
    assert taiwa.ok("log", "--json").json == []
    assert taiwa("show").code == 2


# --- reasoning --------------------------------------------------------------------------------------------------------


def test_thinking_is_kept_out_of_the_answer_and_shown_on_request(taiwa: Taiwa, model_server: ModelServer) -> None:
    server = model_server("<think>\nThey greet me.\n</think>\n\nHello!", "Yes.")

    said = taiwa.ok("say", "hi")

    assert (said.out, "think" in said.err) == ("Hello!\n", False)
    taiwa.ok("say", "-c", "really?")
    assert "They greet me" not in str(server.requests[-1])
    assert "They greet me" not in taiwa.ok("show", "1").out
    shown = taiwa.ok("show", "1", "--reasoning").out
    assert shown.index("reasoning: They greet me.") < shown.index("plain: Hello!")
    assert taiwa.ok("show", "1", "--reasoning", "--json").json["reasoning"] == "They greet me."
    assert "reasoning: none was recorded" in taiwa.ok("show", "--reasoning").out
    assert "reasoning" not in taiwa.ok("show", "--json").json


def test_why_names_what_removed_a_value(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Yes.", topics=["tea"]))
    taiwa.ok("say", "chat", "I like tea")
    taiwa.ok("state", "set", "topics", "[]")

    lines = taiwa.ok("why", "topics[0]").lines

    assert lines[0] == "topics[0] was removed"
    assert lines[1].startswith("  removed by an edit of the state")
    assert lines[1].endswith('before: "tea"')
    assert taiwa.ok("why", "topics[0]", "chat-1~1").lines[0] == 'topics[0] = "tea"'


def test_the_log_of_a_session_names_its_own_model_where_two_share_a_turn(
    model_server: ModelServer, taiwa: Taiwa
) -> None:
    model_server("Hello!", "Hello!")
    other = model_server.model.replace("#test-model", "#other-model")
    taiwa.ok("say", "-s", "one", "Hi")
    taiwa.ok("say", "-s", "two", "-m", other, "Hi")

    models = {name: taiwa.ok("log", name, "--json").json[-1]["model"] for name in ("one", "two")}

    assert models == {"one": model_server.model, "two": other}


def test_why_lists_the_calls_of_its_own_conversation_where_two_share_a_turn(
    model_server: ModelServer, taiwa: Taiwa
) -> None:
    model_server(*[delta("Yes.", topics=["tea"])] * 2)
    other = model_server.model.replace("#test-model", "#other-model")
    taiwa.ok("say", "chat", "-s", "one", "I like tea")
    taiwa.ok("say", "chat", "-s", "two", "-m", other, "I like tea")
    taiwa.ok("fork", "two", "three")

    models = {name: taiwa.ok("why", "topics", name, "--json").json["models"] for name in ("one", "two", "three")}

    assert models == {"one": [model_server.model], "two": [other], "three": [other]}


def test_equal_turns_of_two_models_are_different_turns(model_server: ModelServer, taiwa: Taiwa) -> None:
    model_server(*["Hello!"] * 4)
    other = model_server.model.replace("#test-model", "#other-model")
    taiwa.ok("say", "-s", "one", "Hi")
    taiwa.ok("say", "-s", "two", "-m", other, "Hi")
    taiwa.ok("rerun", "one", "-o", "three", "-m", other)

    shown = {name: taiwa.ok("show", name).out for name in ("one", "two", "three")}
    assert [other in shown[name] for name in shown] == [False, True, True]
    assert [model_server.model in shown[name] for name in shown] == [True, False, False]
    assert all(text.count("call:") == 1 for text in shown.values())
    assert taiwa.ok("diff", "one", "three").out == f"answered by {model_server.model} → {other}\n"
    assert taiwa.ok("diff", "two", "three").out == "nothing changed\n"
    assert taiwa.ok("diff", "one", "three", "--json").json["after_models"] == [other]


def test_two_conversations_with_the_same_turn_list_their_own_calls(model_server: ModelServer, taiwa: Taiwa) -> None:
    model_server(*["Hello!"] * 2)
    taiwa.ok("say", "-s", "one", "Hi")
    taiwa.ok("say", "-s", "two", "Hi")
    taiwa.ok("fork", "two", "three")

    assert [taiwa.ok("show", name).out.count("call:") for name in ("one", "two", "three")] == [1, 1, 1]


@pytest.mark.parametrize("branch", [("undo", "one"), ("fork", "one", "two"), ("rename", "one", "two")])
def test_a_conversation_never_goes_on_with_another_model_than_the_one_that_answered_it(
    branch: tuple[str, ...], model_server: ModelServer, taiwa: Taiwa
) -> None:
    model_server(*["Hello!"] * 3)
    other = model_server.model.replace("#test-model", "#other-model")
    taiwa.ok("say", "-s", "one", "-m", other, "Hi")
    taiwa.ok("say", "-s", "configured", "Hi")
    taiwa.ok(*branch)

    taiwa.ok("say", "-s", branch[-1], "And now?")

    assert [each["model"] for each in model_server.requests] == ["other-model", "test-model", "other-model"]


def test_the_model_of_an_imported_turn_is_shown_and_not_called(
    model_server: ModelServer, taiwa: Taiwa, tmp_path: Path
) -> None:
    model_server(*["Hello!"] * 2)
    other = model_server.model.replace("#test-model", "#other-model")
    taiwa.ok("say", "-s", "one", "-m", other, "Hi")
    file = tmp_path / "one.jsonl"
    file.write_text(taiwa.ok("export", "one").out)
    store = ("--store", str(tmp_path / "other.db"))
    taiwa.ok("import", str(file), *store)

    assert f"answered by {other}" in taiwa.ok("show", "one", *store).out
    taiwa.ok("say", "-s", "one", "And now?", *store)
    assert model_server.requests[-1]["model"] == "test-model"


@pytest.mark.parametrize(
    ("language", "labels"), [("ja", ("ターン 1", "あなた", "差分", "編集")), ("zh", ("第 1 轮", "你", "增量", "编辑"))]
)
def test_what_is_shown_of_a_conversation_is_in_the_language_of_the_user(
    language: str, labels: tuple[str, ...], taiwa: Taiwa, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server(delta("Tea is hot.", topics=["tea"]))
    taiwa.ok("say", "chat", "Tell me about tea")
    monkeypatch.setenv("TAIWA_LANG", language)

    why = taiwa.ok("why", "topics").out
    taiwa.ok("state", "set", "topics", '["rum"]')
    tree = taiwa.ok("log", "--tree").out

    assert all(label in why for label in labels[:3])
    assert labels[3] in tree
    assert "turn" not in why + tree


@pytest.mark.parametrize("language", ["ja", "zh"])
@pytest.mark.parametrize(
    "words", [("log",), ("cost", "--by", "day"), ("state", "history", "topics"), ("search", "tea")]
)
def test_heads_of_tables_are_in_the_language_of_the_user(
    language: str, words: tuple[str, ...], taiwa: Taiwa, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server(delta("Tea is hot.", topics=["tea"]))
    taiwa.ok("say", "chat", "Tell me about tea")
    monkeypatch.setenv("TAIWA_LANG", language)

    head = taiwa.ok(*words).lines[0]

    assert head.strip()
    assert not re.search("[A-Za-z]", head)
