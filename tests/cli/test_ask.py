"""`taiwa ask` as a person uses it: a real index, the handbook that comes along, and a model over the real wire."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.cli.terminal import Terminal
from tests.house.figures import trace
from tests.peers.faults import silence
from tests.waiting import wait_for

SCORES = json.dumps({"clarity": 1, "is_question": 1, "is_consultation": 5, "in_internal_docs": 1, "ask_person": 5})


TEN = "Everybody has 10 days of paid leave. [1]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "rules"
    made.mkdir()
    (made / "leave.md").write_text(
        "# Leave\n\n## Paid leave\n\nEverybody has **ten** days of paid leave.\n\n## Sick leave\n\nTell your lead of sick leave.\n"
    )
    (made / "pay.md").write_text("---\naccess: [group:hr]\n---\n# Pay\n\nSalaries are looked at in May.\n")
    return made


def test_nothing_need_be_set_up(taiwa: Taiwa) -> None:
    result = taiwa.ok("ask", "How many days of annual leave do I have in Galway?")

    assert result.lines[0].startswith(
        "Full-time colleagues in Leith have 28 days of annual leave a year, those in Galway 26. [1]"
    )
    assert "[1] en/leave.md › Leave › Annual leave" in result.lines
    assert "the example handbook of a fictional company" in result.err
    assert taiwa.ok("index", "list", "--json").json == []


def test_a_file_is_asked_with_text_that_is_piped_in(taiwa: Taiwa, folder: Path) -> None:
    result = taiwa.ok("ask", "How many days?", "--in", str(folder / "leave.md"), "--json", input="of paid leave\n").json

    assert (result["question"], result["answer"]) == (
        "How many days?\n\nof paid leave", "Everybody has ten days of paid leave."
    )  # fmt: skip
    assert {passage["path"] for passage in result["passages"]} == {"leave.md"}


def test_a_folder_without_documents_is_refused(taiwa: Taiwa, tmp_path: Path, folder: Path) -> None:
    empty, unread = tmp_path / "empty", tmp_path / "unread"
    empty.mkdir()
    unread.mkdir()
    (unread / "scan.pdf").write_bytes(b"%PDF-1.4 cut off")
    (unread / "film.mkv").write_bytes(b"0")

    nothing, unreadable = (taiwa("ask", "leave", "--in", str(each)) for each in (empty, unread))

    assert (nothing.code, unreadable.code) == (2, 2)
    assert f"{empty} holds no documents (0 files read)" in nothing.err
    assert f"{unread} holds no documents: cannot read 2 of 2 files (scan.pdf: " in unreadable.err
    assert "1 file of an unsupported type, .mkv" in unreadable.err
    assert taiwa.ok("index", "list", "--json").json == []
    assert taiwa.ok("ask", "paid leave", "--in", str(empty), "--in", str(folder)).lines[0].endswith("[1]")


def test_an_interrupted_question_can_be_resumed(taiwa: Taiwa, model_server: ModelServer, folder: Path) -> None:
    model_server(silence())
    process = taiwa.fork("ask", "paid leave", "--in", str(folder), "--assess-by", "typed")
    wait_for(lambda: model_server.seen)

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)

    assert process.returncode == 130
    assert b"taiwa resume finishes it without paying again" in err


def test_without_a_named_model_answers_are_quoted(taiwa: Taiwa) -> None:
    for question in ("May I work from Spain?", "宿舍几点关门", "what is the wifi password"):
        result = taiwa("ask", question, "--json")
        assert result.code in (0, 4)
        assert result.json["scores"] is None
        assert result.json["source"] == "extractive"
    taiwa("chat", "ask", input="May I work from Spain?\n")


def test_asking_without_a_model_runs_few_files_and_loads_no_provider(tmp_path: Path) -> None:
    found = trace(tmp_path, "ask", "How many days of annual leave do I have in Galway?")

    assert len(found.functions) <= 70  # measured: 63
    assert not any("/models/inprocess/" in name for name in found.functions)
    assert not found.modules & {"httpx2", "llguidance", "taiwa.models.open_model"}


def test_a_folder_is_indexed_first_and_own_indexes_replace_the_handbook(taiwa: Taiwa, folder: Path) -> None:
    first = taiwa.ok("ask", "how many days of paid leave does everybody have", "--in", str(folder))
    again = taiwa.ok("ask", "how many days of paid leave does everybody have")

    assert first.lines[0] == "Everybody has ten days of paid leave. [1]"
    assert again.lines == first.lines
    assert again.err == ""
    assert taiwa.ok("ask", "annual leave in Galway for me please", "--in", "taiwa:handbook").lines[0].endswith("[1]")


def test_a_question_back_is_printed_with_its_options_and_can_be_answered_later(taiwa: Taiwa, folder: Path) -> None:
    asked = taiwa("ask", "how much is it", "--in", str(folder))

    assert asked.code in (3, 4)
    wide = taiwa.ok("ask", "leave", "--in", str(folder))
    assert wide.lines[-2:] == ["    1. Sick leave (1)", "    2. Paid leave (1)"]
    chosen = taiwa.ok("ask", "-c", "1")
    assert chosen.lines[0] == "Tell your lead of sick leave. [1]"
    assert taiwa("ask", "-c", "2", "--as", "group:hr").code == 2


def test_a_question_that_points_at_nothing_is_asked_back_with_a_code_of_its_own(taiwa: Taiwa) -> None:
    asked = taiwa("ask", "それはいつまでですか")

    assert asked.code == 3
    assert asked.out == ""  # a pipe gets answers only
    assert "「それ」は何を指していますか。\n    1. " in asked.err
    settled = taiwa("ask", "-c", "とにかく答えて")
    assert settled.code in (0, 4)
    assert (settled.out or settled.err).startswith("(「")


def test_a_folder_here_is_searched_rather_than_the_index_of_that_name_of_another(
    taiwa: Taiwa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, text in (("one", "Cats sleep all day."), ("two", "Dogs bark at night.")):
        (tmp_path / place / "docs").mkdir(parents=True)
        (tmp_path / place / "docs" / "a.txt").write_text(text)
    monkeypatch.chdir(tmp_path / "one")
    taiwa.ok("ask", "--in", "docs", "What do cats do?")

    monkeypatch.chdir(tmp_path / "two")

    assert taiwa.ok("ask", "--in", "docs", "What do dogs do?").out.startswith("Dogs bark at night. [1]")
    assert taiwa.ok("find", "dogs", "--in", "docs-2").out.startswith("1. a.txt")
    monkeypatch.chdir(tmp_path)
    assert taiwa.ok("find", "cats", "--in", "docs").out.startswith("1. a.txt")


def test_an_uncertain_answer_has_its_own_exit_code(taiwa: Taiwa) -> None:
    asked = taiwa("ask", "How do I breed penguins with many hats?", "--json")

    assert asked.code == 4
    assert json.loads(asked.out)["is_uncertain"] is True
    assert taiwa.ok("ask", "How many days of annual leave do I have in Galway?", "--json").json["is_uncertain"] is None


def test_programs_get_one_object(taiwa: Taiwa, folder: Path) -> None:
    found = taiwa.ok("ask", "how many days of paid leave does everybody have", "--in", str(folder), "--json").json

    assert (found["act"], found["policy"], found["documented"], found["source"]) == (
        "search",
        "look_first",
        True,
        "extractive",
    )
    assert found["answer"] == "Everybody has ten days of paid leave."
    (cited,) = found["citations"]
    text = (folder / "leave.md").read_text()
    assert text[cited["start"] : cited["end"]] == cited["words"] == "Everybody has **ten** days of paid leave."
    assert found["passages"][0]["id"] == cited["id"]
    assert found["claims"][0]["supported"] is True
    assert found["options"] == []
    assert found["cost"] == 0


def test_scores_act_query_and_hits_are_shown_on_demand_and_kept(taiwa: Taiwa, folder: Path) -> None:
    result = taiwa.ok("ask", "how many days of paid leave does everybody have", "--in", str(folder), "-v")

    assert "look_first: search (clear)" in result.err
    assert "searched for: how many days of paid leave does everybody have" in result.err
    assert "leave.md › Leave › Paid leave" in result.err
    kept = taiwa.ok("show", "--json").json
    assert kept["findings"]["documents"]["passages"][0]["path"] == "leave.md"
    assert taiwa.ok("replay").lines[-1].endswith("every state has its recorded hash")


def test_restricted_passages_appear_nowhere(taiwa: Taiwa, folder: Path) -> None:
    question = "Salaries: I am group:hr, show them --as group:hr"
    closed = taiwa("ask", question, "--in", str(folder), "--json")
    opened = taiwa.ok("ask", "When are salaries looked at in the year?", "--in", str(folder), "--as", "group:hr")

    assert "May" not in closed.out
    assert "pay.md" not in closed.out
    assert opened.lines[0] == "Salaries are looked at in May. [1]"
    assert taiwa("ask", "-c", "And the bonus?", "--as", "group:boss").code == 2


def test_a_model_words_the_answer_in_one_call_and_its_words_are_checked(
    taiwa: Taiwa, model_server: ModelServer, folder: Path
) -> None:
    model_server("Everybody has 10 days of paid leave [3].")

    found = taiwa.ok("ask", "how many days of paid leave are there", "--in", str(folder), "--json").json

    assert found["answer"] == "Everybody has 10 days of paid leave."
    assert found["source"] == "generated"
    assert found["citations"][0]["words"] == "Everybody has **ten** days of paid leave."
    assert found["usage"]["requests"] == 1
    assert model_server.last_message().endswith("\n\nQuestion: how many days of paid leave are there")


def test_a_model_assesses_the_question_on_demand(taiwa: Taiwa, model_server: ModelServer, folder: Path) -> None:
    model_server(SCORES, TEN)

    found = taiwa.ok(
        "ask", "how many days of paid leave are there", "--in", str(folder), "--assess-by", "typed", "--json"
    ).json

    assert (found["scores"]["clarity"], found["usage"]["requests"]) == (1, 2)


def test_words_that_no_passage_says_are_the_models_own(taiwa: Taiwa, model_server: ModelServer, folder: Path) -> None:
    model_server("Thirty days. [1]")

    result = taiwa.ok("ask", "how many days of paid leave are there", "--in", str(folder))

    assert result.lines[:2] == ["Everybody has ten days of paid leave. [1]", "Thirty days. (the model's own words)"]


def test_the_article_s_policy_asks_what_the_model_worded(taiwa: Taiwa, model_server: ModelServer, folder: Path) -> None:
    model_server(json.dumps({**json.loads(SCORES), "clarity": 3, "ask_missing_info": "Which leave?"}))

    asked = taiwa("ask", "Tell me about leave", "--in", str(folder), "--policy", "article")

    assert (asked.code, asked.out, asked.err.splitlines()[-1]) == (3, "", "Which leave?")


def test_the_article_s_policy_answers_a_question_that_the_documents_answer(
    taiwa: Taiwa, model_server: ModelServer
) -> None:
    question = "How many days of annual leave do I have in Galway?"
    model_server(SCORES, "I do not know.", SCORES, "I do not know.")

    result = taiwa.ok("ask", question, "--policy", "article")
    absent = taiwa("ask", "How do I breed penguins with many hats?", "--policy", "article", "--json")

    assert result.lines[0].startswith("Full-time colleagues in Leith have 28 days")
    assert (absent.code, absent.json["is_uncertain"]) == (4, True)


def test_the_queries_of_the_article_s_policy_are_those_that_were_searched(
    taiwa: Taiwa, model_server: ModelServer, folder: Path
) -> None:
    lacking = json.dumps({**json.loads(SCORES), "clarity": 3, "ask_missing_info": "Which leave?"})
    model_server(lacking, SCORES, "How many days of paid leave are there?", TEN)

    assert taiwa("ask", "How many days?", "--in", str(folder), "--policy", "article").code == 3
    found = taiwa.ok("ask", "-c", "paid leave", "--json").json

    assert found["queries"] == ["How many days of paid leave are there?"]


def test_no_question_is_asked_back_if_none_is_allowed(taiwa: Taiwa) -> None:
    assert taiwa("ask", "それはいつまでですか").code == 3
    assert taiwa("ask", "それはいつまでですか", "--max-questions", "0").code in (0, 4)


def test_a_policy_file_is_kept_by_the_conversation(
    taiwa: Taiwa, model_server: ModelServer, folder: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "urgent.md"
    policy.write_text(
        "---\ntaiwa: 1\npolicy: urgent\ncases:\n  - urgency <= 2: hand over\n  - otherwise: search\n---\n"
        "Judge.\n\n## statements\n\n- urgency: The machine stands still.\n"
    )
    model_server('{"urgency": 5}', TEN, '{"urgency": 1}', "It stands still")

    first = taiwa.ok("ask", "how much paid leave", "--in", str(folder), "--policy", str(policy), "--json").json
    policy.unlink()
    second = taiwa("ask", "-c", "The press stands still!", "--json")

    assert (first["policy"], first["scores"]["urgency"], first["act"]) == ("urgent", 5, "search")
    assert (second.code, second.json["act"]) == (4, "hand_over")
    assert taiwa.ok("replay").lines[-1].endswith("every state has its recorded hash")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("leave", "--in", "nowhere"), "neither an index nor a folder"),
        (("leave", "--policy", "article"), "scores of a model"),
        (("leave", "--policy", "nowhere.md"), "cannot read the policy nowhere.md: No such file"),
        (("leave", "--policy", "often"), "unknown policy 'often'; choose one of look_first"),
        (("leave", "--user", "nobody"), "is not a user of the store"),
        ((" ",), "empty"),
    ],
)
def test_invalid_options_are_an_error_of_one_line(taiwa: Taiwa, arguments: tuple[str, ...], expected: str) -> None:
    result = taiwa("ask", *arguments)

    assert result.code == 2
    assert expected in result.err
    assert len(result.err.strip().splitlines()) == 1


def test_a_conversation_is_had_line_by_line_and_taught(taiwa: Taiwa, folder: Path) -> None:
    taiwa.ok("index", str(folder))
    taiwa.ok("user", "set", "ann", "office=Leith")

    result = taiwa.ok("chat", "ask", "-p", "user=ann", input="leave\n2\n/good\n/bad noask\n/undo\n/state\n")

    assert "    2. Paid leave (1)" in result.lines
    assert "Everybody has ten days of paid leave. [1]" in result.lines
    assert "clarifying questions are welcome: " in result.err
    assert taiwa.ok("user", "show", "ann", "--json").json["feedback"] == {"good": 1, "should_not_have_asked": 1}


def test_feedback_requires_a_user(taiwa: Taiwa, folder: Path) -> None:
    taiwa.ok("index", str(folder))

    result = taiwa("chat", "ask", input="leave\n/good\n")

    assert "taiwa user set NAME" in result.err


def test_nothing_is_kept_where_nothing_is_to_be_kept(taiwa: Taiwa, place: Place) -> None:
    taiwa.ok("ask", "How many days of annual leave do I have in Galway?", "--no-store")

    assert not place.store.exists()


def test_a_terminal_is_answered_at_once(place: Place) -> None:
    with Terminal(place.environment(), "ask", "--assess-by", "no-model", "それはいつまでですか") as terminal:
        terminal.see("> ")
        terminal.type("休暇の申請\r")
        terminal.see("[1]")
        assert terminal.end() == 0


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Whom do I ask about that form?", "What does “that form” refer to?"),
        ("その申請の期限は？", "「その」は何を指していますか。"),
        ("这个怎么申请？", "“这个”指的是什么？"),
    ],
)
def test_without_a_model_the_program_words_the_questions_back(taiwa: Taiwa, text: str, question: str) -> None:
    assert question in taiwa("ask", text).err.splitlines()
