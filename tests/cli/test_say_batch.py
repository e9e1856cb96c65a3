"""`taiwa batch`: rows in order, failures that stop nothing, and nothing paid for twice."""

import asyncio
import json
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from taiwa.operations.json_shape import members_of
from taiwa.operations.result_json import RowEnd, TurnEnd
from taiwa.sql.sqlite import SqliteDatabase
from tests.cli.conftest import ModelServer, Place, Taiwa, delta
from tests.peers.faults import Act, Scene, event, head, raw, silence, speech, status
from tests.waiting import wait_for

BAD = status(400, b'{"error": {"message": "no"}}')
INTO_ENGLISH = ("-p", "target_lang=English")


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., str]:
    """Writes a file of rows: texts, or JSON where it is called .jsonl."""

    def write(*rows: object, name: str = "lines.txt") -> str:
        path = tmp_path / name
        texts = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        return str(path)

    return write


def echo(answer: Callable[[str], str] = str.upper, pause: Callable[[str], float] = lambda _: 0.0) -> Act:
    """Answers each text with a text made of it, so that the order of requests does not matter."""

    async def act(scene: Scene) -> None:
        body: Any = scene.seen.json
        text = body["messages"][-1]["content"].partition("\n<state>")[0].strip()
        await scene.pause(pause(text))
        await speech(delta(answer(text)))(scene)

    return act


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_without_a_mode_each_row_is_sent_on_its_own(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server(echo(), echo())

    done = taiwa.ok("batch", "chat", lines("one", "two"), "-j", "1")

    assert [row["answer"] for row in done.rows] == ["ONE", "TWO"]
    assert [row["state"]["turns"] for row in done.rows] == [1, 1]
    assert [row["session"] for row in done.rows] == [None, None]


def test_rows_have_no_control_codes_and_the_same_values(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], tmp_path: Path
) -> None:
    hostile = "\x9b31m \x1b[2J \x7f \u202egnp.exe\u2066"
    model_server(speech(hostile), speech(hostile))

    shown = taiwa.ok("batch", "plain", lines("one"))
    taiwa.ok("batch", "plain", lines("two"), "-o", str(tmp_path / "rows.jsonl"))

    for written in (shown.out, (tmp_path / "rows.jsonl").read_text(encoding="utf-8")):
        assert not set(hostile) & set(written) - set("[ 0123456789abcdefghijklmnopqrstuvwxyzJ.")
        assert json.loads(written)["answer"] == hostile


# --- fold -------------------------------------------------------------------------------------------------------------


def test_a_fold_is_one_conversation_that_carries_its_state_on(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server(delta("It is a sentence.", dictionary={"文": "sentence"}), delta("A sentence is short."))

    done = taiwa.ok(
        "batch", "translate", lines("文(sentence)です。", "", "文は短い。"), *INTO_ENGLISH, "--mode", "fold"
    )

    first, second = done.rows
    assert [row["index"] for row in done.rows] == [1, 3]
    assert first["delta"] == {"dictionary": {"文": "sentence"}}
    assert second["state"]["dictionary"] == {"文": "sentence"}
    assert second["parent"] == first["node"]
    assert second["session"] == "translate-lines"
    assert second["usage"]["output_tokens"] == 3
    assert taiwa.ok("log").lines[1].split()[:3] == ["translate-lines", "translate", "2"]


def test_a_failed_row_is_not_part_of_the_conversation(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server(delta("a"), BAD, delta("c"))

    done = taiwa("batch", "chat", lines("one", "two", "three"), "--mode", "fold")

    assert done.code == 1
    assert [row["answer"] for row in done.rows] == ["a", None, "c"]
    assert done.rows[1]["error"]["message"]
    assert done.rows[2]["parent"] == done.rows[0]["node"]
    assert "2 rows answered, 1 failed" in done.err


def test_a_stopped_fold_continues_with_the_next_row(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    model_server(delta("a", topics=["tea"]), status(401))
    file = lines("one", "two", "three")
    stopped = taiwa("batch", "chat", file, "--mode", "fold", "-o", str(out))
    assert stopped.code == 1
    assert [row["answer"] for row in read_rows(out)] == ["a"]

    model_server(delta("b"), delta("c"))
    again = taiwa.ok("batch", "chat", file, "--mode", "fold", "-o", str(out), "--resume", "--json")

    assert [row["answer"] for row in read_rows(out)] == ["a", "b", "c"]
    assert [row["state"]["topics"] for row in read_rows(out)] == [["tea"]] * 3
    assert again.json == {
        "session": "chat-lines", "done": 2, "failed": 0, "kept": 1, "refused": 0, "cost": 0.0, "stopped": None,
        "usage": {"requests": 2, "input_tokens": 14, "output_tokens": 6, "cache_read_tokens": 8, "cache_write_tokens": 0,
                  "reasoning_tokens": 0},
    }  # fmt: skip
    assert len(model_server.requests) == 2


def test_a_fold_does_not_begin_a_second_conversation_of_the_same_name(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server(delta("a"), delta("b"))
    file = lines("one")
    taiwa.ok("batch", "chat", file, "--mode", "fold")

    refused = taiwa("batch", "chat", file, "--mode", "fold")
    other = taiwa.ok("batch", "chat", file, "--mode", "fold", "-s", "other")

    assert refused.code == 2
    assert refused.err == "taiwa: session chat-lines already exists; --resume continues it, -s NAME creates another\n"
    assert other.rows[0]["session"] == "other"


def test_rows_that_failed_before_are_not_sent_out_of_order(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server(BAD, delta("b"), BAD)
    file = lines("one", "two", "three")
    taiwa("batch", "chat", file, "--mode", "fold")

    model_server(delta("c"))
    again = taiwa("batch", "chat", file, "--mode", "fold", "--resume")

    assert [row["answer"] for row in again.rows] == [None, "b", "c"]
    assert "continued without it" in again.rows[0]["error"]["message"]
    assert len(model_server.requests) == 1


def test_a_fold_does_not_continue_a_conversation_with_other_turns(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server(delta("a"), delta("b"))
    file = lines("one", "two")
    taiwa("batch", "chat", lines("one"), "--mode", "fold")
    taiwa.ok("say", "-c", "something else")
    lines("one", "two")

    again = taiwa("batch", "chat", file, "--mode", "fold", "--resume")

    assert again.code == 2
    assert "chat-lines holds a turn that is not a row of this batch ('something else')" in again.err


def test_a_fold_does_not_continue_with_other_params(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server(delta("a"))
    file = lines("one")
    taiwa.ok("batch", "translate", file, *INTO_ENGLISH, "--mode", "fold")

    again = taiwa("batch", "translate", file, "-p", "target_lang=German", "--mode", "fold", "--resume")

    assert again.code == 2
    assert "has another app or other parameters" in again.err


# --- map --------------------------------------------------------------------------------------------------------------


def test_rows_of_a_map_know_nothing_of_each_other_and_keep_their_order(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server.plays(echo(pause=lambda text: 0.2 if text == "one" else 0.0))

    done = taiwa.ok("batch", "chat", lines("one", "two", "three"), "--mode", "map", "-j", "3")

    assert [row["answer"] for row in done.rows] == ["ONE", "TWO", "THREE"]
    assert [len(request["messages"]) for request in model_server.requests] == [2, 2, 2]
    assert [row["state"]["turns"] for row in done.rows] == [1, 1, 1]
    assert "there are no conversations yet" in taiwa.ok("log").err
    assert taiwa.ok("cost", "--json").json[0]["requests"] == 3


def test_without_an_app_the_rows_are_sent_as_they_are(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server("ONE")

    done = taiwa.ok("batch", lines("one"), "--mode", "map")

    assert [row["answer"] for row in done.rows] == ["ONE"]
    assert [message["content"] for message in model_server.requests[0]["messages"]] == ["one"]
    assert taiwa("batch", "chat", "a.txt", "b.txt", "--mode", "map").code == 2
    assert taiwa("batch", "--mode", "map").code == 2


def test_a_map_runs_at_most_the_given_number_of_rows_at_once(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    under_way, most = 0, 0

    async def act(scene: Scene) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await scene.pause(0.05)
        under_way -= 1
        await speech(delta("ok"))(scene)

    model_server.plays(act)

    taiwa.ok("batch", "chat", lines(*map(str, range(10))), "--mode", "map", "-j", "3")

    assert most == 3


def test_rows_of_json_bring_their_id_and_params(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server.plays(echo())
    file = lines(
        {"text": "eins", "id": "a", "params": {"target_lang": "English"}},
        {"text": "zwei", "id": 7, "params": {"target_lang": "French"}},
        {"text": "drei"},
        name="rows.jsonl",
    )

    done = taiwa("batch", "translate", file, "--mode", "map", "-j", "1")

    assert [row["id"] for row in done.rows] == ["a", 7, None]
    assert [row["answer"] for row in done.rows] == ["EINS", "ZWEI", None]
    assert "requires the parameter 'target_lang'" in done.rows[2]["error"]["message"]
    assert ["into French" in seen["messages"][0]["content"] for seen in model_server.requests] == [False, True]


BROKEN = {
    "no JSON": ('{"text": ', "line 2 is not JSON"),
    "no object": ("[1]", "line 2 is not an object"),
    "no text": ('{"txt": "x"}', 'line 2 has no "text"'),
    "a number": ('{"text": 1}', 'line 2 has no "text"'),
    "empty text": ('{"text": " "}', "the text is empty"),
    "half a character": ('{"text": "\\ud800"}', "half a character"),
    "deep": ("[" * 100_000, "line 2 is not JSON"),
    "unknown param": ('{"text": "x", "params": {"nix": 1}}', "no parameter 'nix'"),
    "params of another kind": ('{"text": "x", "params": [1]}', "params must be an object"),
}


@pytest.mark.parametrize(("line", "why"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_line_is_a_row_with_its_error(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], line: str, why: str
) -> None:
    model_server.plays(echo())

    done = taiwa("batch", "chat", lines({"text": "one"}, line, {"text": "three"}, name="rows.jsonl"), "--mode", "map")

    assert done.code == 1
    assert [row["answer"] for row in done.rows] == ["ONE", None, "THREE"]
    assert why in done.rows[1]["error"]["message"]
    assert len(model_server.requests) == 2


def test_rows_that_are_not_utf8_or_too_long_have_an_error(
    taiwa: Taiwa, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.plays(echo())
    file = tmp_path / "lines.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\nab\xffc\n" + b"x" * 20_000_000 + b"\nfour")

    done = taiwa("batch", "chat", str(file), "--mode", "map")

    assert [row["answer"] for row in done.rows] == ["ONE", None, None, "FOUR"]
    assert "line 2 is not UTF-8 at byte 2" in done.rows[1]["error"]["message"]
    assert "line 3 is longer than" in done.rows[2]["error"]["message"]


def test_a_table_without_line_ends_is_not_read_whole(taiwa: Taiwa, tmp_path: Path) -> None:
    with (tmp_path / "rows.csv").open("wb") as file:
        file.truncate(3 << 30)

    refused = taiwa("batch", "plain", str(tmp_path / "rows.csv"))

    assert (refused.code, "rows.csv: a line is longer than" in refused.err) == (2, True), refused


def test_lines_come_from_standard_input_too(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server.plays(echo())

    done = taiwa.ok("batch", "chat", "-", "--mode", "map", input='{"text": "one"}\n{"text": "two"}\n')

    assert [row["answer"] for row in done.rows] == ["ONE", "TWO"]


def test_what_was_answered_is_not_paid_for_again(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    model_server(delta("a"), BAD, delta("c"))
    file = lines("one", "two", "three")
    taiwa("batch", "chat", file, "--mode", "map", "-j", "1", "-o", str(out))
    first = read_rows(out)

    model_server(delta("b"))
    again = taiwa.ok("batch", "chat", file, "--mode", "map", "-o", str(out), "--resume")

    assert [row["answer"] for row in read_rows(out)] == ["a", "b", "c"]
    assert read_rows(out)[0] == first[0]
    assert "1 row answered, 0 failed, 2 kept from before" in again.err
    assert len(model_server.requests) == 1


def test_a_row_that_another_version_stored_is_named_and_not_paid_for_again(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server(delta("a"))
    file = lines("one")
    with monkeypatch.context() as patch:
        patch.setattr("taiwa.sessions.batch.turn_to_json", lambda turn: {"answer": turn.text})
        taiwa.ok("batch", "chat", file, "--mode", "map")

    again = taiwa("batch", "chat", file, "--mode", "map", "--resume")

    assert (again.code, len(model_server.requests)) == (2, 1)
    assert "the answers of this batch were stored by another version of taiwa; run it without --resume" in again.err


def test_another_app_model_or_param_is_another_row(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server.plays(echo())
    file = lines("one")
    batch = ("batch", "translate", file, "--mode", "map", "--resume", "-p")
    taiwa.ok(*batch, "target_lang=English")

    taiwa.ok(*batch, "target_lang=German")
    taiwa.ok(*batch, "target_lang=English", "-m", f"{model_server.url}#other")
    taiwa.ok(*batch, "target_lang=English")

    assert len(model_server.requests) == 3


def test_a_file_that_is_there_is_not_overwritten(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], tmp_path: Path
) -> None:
    model_server.plays(echo())
    out = tmp_path / "out.jsonl"
    out.write_text("mine")

    refused = taiwa("batch", "chat", lines("one"), "--mode", "map", "-o", str(out))

    assert refused.code == 2
    assert "already exists; --resume continues it" in refused.err
    assert out.read_text() == "mine"
    assert not model_server.requests


# --- how batches end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["fold", "map"])
def test_a_cost_limit_ends_a_batch_cleanly(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], tmp_path: Path, mode: str
) -> None:
    out = tmp_path / "out.jsonl"
    prices = {"*": {"input": "0", "output": "1000000"}}  # one unit a token that is written: 3 a row
    model_server(*[delta("ok")] * 9, prices=prices)
    batch = ("batch", "chat", lines(*map(str, range(9))), "--mode", mode, "-o", str(out))

    stopped = taiwa(*batch, *(("-j", "1") if mode == "map" else ()), "--max-cost", "22")

    assert stopped.code == 1
    assert len(read_rows(out)) == 3
    assert "stopped: the cost limit was reached" in stopped.err
    again = taiwa.ok(*batch, "--resume", "--max-cost", "100")
    assert len(read_rows(out)) == 9
    assert "6 rows answered, 0 failed, 3 kept from before" in again.err
    assert len(model_server.requests) == 9


@pytest.mark.parametrize("mode", ["fold", "map"])
def test_rows_without_reported_usage_count_for_a_limit_as_what_they_reserved(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], mode: str
) -> None:
    model_server(speech(delta("a"), usage=False), delta("b"), prices={"*": {"input": "1", "output": "1"}})

    stopped = taiwa("batch", "chat", lines("one", "two"), "--mode", mode, "-j", "1", "--max-cost", "0.016")

    assert stopped.code == 1
    assert [row["answer"] for row in stopped.rows] == ["a"]
    assert "stopped: the cost limit was reached" in stopped.err


@pytest.mark.parametrize("mode", ["fold", "map"])
def test_a_wrong_key_ends_a_batch_at_once(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], mode: str
) -> None:
    model_server(*[status(401, b'{"error": {"message": "bad key"}}')] * 9)

    stopped = taiwa("batch", "chat", lines(*map(str, range(9))), "--mode", mode, "-j", "1")

    assert stopped.code == 1
    assert stopped.out == ""
    assert len(model_server.requests) == 1


@pytest.mark.parametrize("mode", ["fold", "map"])
def test_a_server_that_is_gone_ends_a_batch_after_ten_rows(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], mode: str
) -> None:
    model_server.plays(status(503))

    stopped = taiwa("batch", "chat", lines(*map(str, range(99))), "--mode", mode)

    assert stopped.code == 1
    assert len(stopped.rows) == 10
    assert "stopped: 10 consecutive rows failed for the same reason" in stopped.err


@pytest.mark.parametrize("mode", ["fold", "map"])
def test_rows_that_fail_for_the_same_reason_end_a_batch(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], mode: str
) -> None:
    model_server.plays(status(400, b'{"error": {"message": "no such option 17"}}'))

    stopped = taiwa("batch", "chat", lines(*map(str, range(99))), "--mode", mode, "--max-failures", "3")

    assert stopped.code == 1
    assert len(stopped.rows) == 3
    assert "stopped: 3 consecutive rows failed for the same reason" in stopped.err


def test_rows_that_fail_for_other_reasons_do_not_end_a_batch(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server(
        *(status(400, b'{"error": {"message": "no such word %s"}}' % word) for word in (b"tea", b"milk", b"ale"))
    )

    stopped = taiwa("batch", "chat", lines("tea", "milk", "ale"), "-j", "1", "--max-failures", "2")

    assert len(stopped.rows) == 3
    assert "stopped" not in stopped.err


def test_a_batch_keeps_a_pace(taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]) -> None:
    model_server("A", "B")

    done = taiwa.ok("batch", "plain", lines("a", "b"), "--requests-per-minute", "60", "--tokens-per-minute", "9000")

    assert len(done.rows) == 2
    assert "--requests-per-minute" in taiwa("batch", "plain", lines("a"), "--requests-per-minute", "0").err


@pytest.mark.parametrize("mode", ["fold", "map"])
def test_a_refusal_is_counted_and_told_as_one_of_say(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], tmp_path: Path, mode: str
) -> None:
    refusal = raw(
        head(), event({"content": "I cannot."}, finish="content_filter"), event(usage={}), b"data: [DONE]\n\n"
    )
    model_server("A", refusal)
    words = ("batch", "plain", lines("one", "two"), "--mode", mode, "-j", "1", "-o", str(tmp_path / "out.jsonl"))

    done = taiwa(*words)

    assert done.code == 4
    assert "2 rows answered, 0 failed" in done.err
    assert "the model refused 1 row\n" in done.err
    assert [row["answer"] for row in read_rows(tmp_path / "out.jsonl")] == ["A", "I cannot."]
    assert mode == "fold" or taiwa(*words, "--resume").code == 4


def test_ctrl_c_ends_a_map_and_keeps_what_is_done(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    model_server(delta("a"), silence())
    file = lines("one", "two", "three")
    process = taiwa.fork("batch", "chat", file, "--mode", "map", "-j", "1", "-o", str(out))
    wait_for(lambda: len(model_server.seen) == 2)

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)

    assert process.returncode == 130
    assert b"stopped: interrupted; finished rows are saved, --resume continues" in err
    assert b"Traceback" not in err
    assert [row["answer"] for row in read_rows(out)] == ["a"]


@pytest.mark.parametrize("mode", ["fold", "map"])
def test_a_killed_batch_continues_without_paying_again(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], tmp_path: Path, mode: str
) -> None:
    out = tmp_path / "out.jsonl"
    model_server(delta("a"), 'no state at all\n@@delta\n{"nix": 1}', silence())
    file = lines("one", "two", "three")
    process = taiwa.fork("batch", "chat", file, "--mode", mode, "-j", "1", "-o", str(out))
    wait_for(lambda: len(model_server.seen) == 3)
    process.kill()
    process.communicate()

    model_server("{}", delta("c"))
    taiwa.ok("batch", "chat", file, "--mode", mode, "-j", "1", "-o", str(out), "--resume")

    assert [row["answer"] for row in read_rows(out)] == ["a", "no state at all", "c"]
    assert "cannot be used" in model_server.last_message(0)
    assert len(model_server.requests) == 2


def test_dry_run_counts_and_calls_nothing(taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]) -> None:
    model_server()
    file = lines({"text": "one"}, "{", {"text": "three"}, name="rows.jsonl")

    told_before = taiwa.ok("batch", "chat", file, "--mode", "map", "--dry-run", "--json")

    assert told_before.json["rows"] == 2
    assert told_before.json["bad"] == 1
    assert told_before.json["tokens"] > 800
    assert not model_server.requests


def test_a_missing_param_is_one_error_and_not_one_per_row(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server()

    refused = taiwa("batch", "translate", lines("one", "two"), "--mode", "map")

    assert refused.code == 2
    assert refused.err == "taiwa: the app 'translate' requires the parameter 'target_lang'; pass -p target_lang=…\n"


@pytest.mark.parametrize("mode", ["fold", "map"])
def test_a_batch_that_passes_its_cost_limit_fails(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], mode: str
) -> None:
    model_server(*[delta("a")] * 9, prices={"*": {"input": "1", "output": "1"}})

    stopped = taiwa("batch", "chat", lines("one", "two", "three"), "--mode", mode, "-j", "1", "--max-cost", "0.0000001")

    assert stopped.code == 1
    assert len(model_server.requests) <= 1
    assert "the cost limit was reached" in stopped.err


def test_rows_of_another_form_are_shown_with_their_lines_and_strict_stops_before_anything_is_sent(
    taiwa: Taiwa, model_server: ModelServer, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": "one"}\n{"txt": "x"}\nnot json\n{"text": "two"}\n')
    model_server(delta("a"), delta("b"))

    strict = taiwa("batch", "chat", str(file), "--mode", "map", "--strict")

    assert (strict.code, strict.out, model_server.requests) == (2, "", [])
    assert f'{file}: line 2 has no "text"' in strict.err
    done = taiwa("batch", "chat", str(file), "--mode", "map", "-j", "1")
    assert [row["answer"] for row in done.rows] == ["a", None, None, "b"]
    assert "2 rows have another form and are skipped" in done.err
    assert f"{file}: line 3 is not JSON" in done.err


def test_a_batch_writes_to_its_store_in_threads(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_loop: list[str] = []
    run = SqliteDatabase._on_cursor

    def noted(self: SqliteDatabase, statement: str, *rest: Any) -> Any:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            on_loop.append(statement)
        return run(self, statement, *rest)

    monkeypatch.setattr(SqliteDatabase, "_on_cursor", noted)
    model_server(delta("a"), BAD, delta("c"))
    file = lines("one", "two", "three")
    taiwa("batch", "chat", file, "--mode", "map", "-j", "1", "-o", str(tmp_path / "out.jsonl"), "--resume")

    assert [row["error"] is None for row in read_rows(tmp_path / "out.jsonl")] == [True, False, True]
    assert on_loop == []


def test_a_batch_whose_first_row_cannot_fit_sends_nothing(
    taiwa: Taiwa, model_server: ModelServer, tmp_path: Path
) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("one\ntwo\nthree\n")
    model_server("A.", "B.", "C.", prices={model_server.model: {"input": 1, "output": 1}})

    stopped = taiwa("batch", "plain", str(file), "--mode", "map", "-j", "3", "--max-cost", "0.0000001")

    assert stopped.code == 1
    assert stopped.rows == model_server.requests == []
    assert "the cost limit was reached" in stopped.err


def test_a_row_is_a_turn_of_the_program_of_its_app(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server("So <<calculator: 6 × 7>>", "\nAnswer: 42", "Answer: 2")

    done = taiwa.ok("batch", "solve", lines("6 × 7?", "1 + 1?"), "-j", "1")

    assert [row["answer"].splitlines()[-1] for row in done.rows] == ["Answer: 42", "Answer: 2"]
    assert "Solve" in model_server.requests[0]["messages"][0]["content"]


def test_a_typed_answer_is_the_value_of_its_row(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server('{"name": "Ann", "age": 7}', '{"name": "Bo", "age": 8}')

    rows = taiwa.ok("batch", lines("Ann is 7.", "Bo is 8."), "--type", "name, age int", "-j", "1").rows

    assert [row["value"] for row in rows] == [{"name": "Ann", "age": 7}, {"name": "Bo", "age": 8}]
    assert "attempts" not in rows[0]


def test_a_row_searches_the_documents_of_its_app(
    taiwa: Taiwa, model_server: ModelServer, lines: Callable[..., str]
) -> None:
    model_server("Annual leave in Galway is 24 days [1].", "NOT FOUND")

    rows = taiwa.ok(
        "batch", "ask", lines("How many days of annual leave do I have in Galway?", "Who won?"), "-j", "1"
    ).rows

    assert "leave" in rows[0]["answer"]
    assert "Galway" in str(model_server.requests[0]["messages"])
    assert [row["error"] for row in rows] == [None, None]


@pytest.mark.parametrize("mode", ["map", "fold"])
def test_a_row_has_what_the_result_of_its_turn_has_also_when_it_is_kept(
    taiwa: Taiwa, model_server: ModelServer, apps: Callable[[str, str], Path], place: Place, mode: str
) -> None:
    (place.folder / "guides").mkdir()
    (place.folder / "guides" / "inns.md").write_text("# Inns\n\nThe Inn of the Cat costs 80 pounds a night.\n")
    keys = f"tools: [calculator]\ndocuments: {{ in: {place.folder / 'guides'}, policy: never }}"
    apps("desk", f"---\ntaiwa: 1\nstate: {{ town: {{ type: str, cite: true }} }}\n{keys}\n---\nTalk.\n")
    rows, out = place.folder / "rows.txt", place.folder / "out.jsonl"
    rows.write_text("What does the Inn of the Cat cost?\n")
    answer = delta("The Inn of the Cat costs 80 pounds a night. [1] That is 80 * 2 = 170.", town="Nara")
    model_server(answer, answer)
    said = taiwa.ok("say", "desk", rows.read_text().strip(), "--json").json
    command = ("batch", "desk", str(rows), "--mode", mode, "-o", str(out), "--resume")

    taiwa.ok(*command)
    (first,) = read_rows(out)
    taiwa.ok(*command)
    (kept,) = read_rows(out)

    same = set(said) - {"session", "node", "parent", "text", "seconds"}
    assert {"findings", "state_read", "warnings", "value", "usage"} <= same
    assert {name: first[name] for name in same} == {name: said[name] for name in same}
    assert {name: kept[name] for name in same} == {name: first[name] for name in same}
    assert first["answer"] == said["text"]
    assert [each.partition(":")[0] for each in first["warnings"]] == ["the answer has a wrong equation", "town"]
    assert first["findings"]["documents"]["claims"][0]["citations"][0]["words"].startswith("The Inn of the Cat")
    assert len(model_server.requests) == 2


def test_a_row_has_every_member_of_a_turn() -> None:
    turn, row = ({member.name for member in members_of(shape)} for shape in (TurnEnd, RowEnd))

    assert turn <= row
