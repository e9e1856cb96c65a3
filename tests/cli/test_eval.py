"""`taiwa eval`: figures that can be traced to rows, rows that no kill loses or doubles, and errors in one line."""

import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import MODEL, ModelServer, Result, Taiwa
from tests.cli.terminal import Terminal
from tests.house.source import ROOT
from tests.peers.faults import Act, Scene, speech, status
from tests.peers.llama import KEY, LlamaServer

pytestmark = pytest.mark.usefixtures("no_chart")

PRICES = {"input": 1000, "output": 1000}
TIMES = re.compile(r"What is (\d+) times (\d+)\?")
GIVEN = re.compile(r"<<calculator: [^>]*>>[ ]*(\d+)?")


@pytest.fixture
def sums(place: Any) -> Callable[..., str]:
    """Writes a file of so many sums."""

    def write(count: int = 4, name: str = "sums.jsonl") -> str:
        path = place.folder / name
        rows = ({"id": n, "question": f"What is {n + 2} times 7?", "answer": 7 * (n + 2)} for n in range(count))
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return str(path)

    return write


@pytest.fixture
def zero_shot(sums: Callable[..., str], place: Any) -> tuple[str, ...]:
    """A command that asks without examples and tools, and keeps its rows."""
    return (
        "eval",
        "reason",
        "--data",
        sums(),
        "--shots",
        "0",
        "--tools-on",
        "none",
        "--out",
        str(place.folder / "run"),
    )


def pupil(*, wait: float = 0.0, ill: Callable[[int], bool] = lambda _: False) -> Act:
    """A pupil who calls the calculator wherever it is shown, keeps to its result, and without it is one too low.

    It is `ill` for some first factors: the server fails.
    """

    async def act(scene: Scene) -> None:
        body: Any = scene.seen.json
        messages = body["messages"]
        question = next(found for one in reversed(messages) if (found := TIMES.search(one["content"])))
        first, second = map(int, question.groups())
        output = messages[-2]["content"] if messages[-1]["content"].startswith("Go on") else ""
        if ill(first):
            await status(500, b"{}")(scene)
        elif output:
            result = GIVEN.findall(output)[-1] or first * second - 1
            await speech(f"Therefore, the answer is {result}.", wait=wait)(scene)
        elif any("<<" in one["content"] for one in messages[:-1]):
            await speech(f"I multiply. <<calculator: {first} * {second}>>", wait=wait)(scene)
        else:
            await speech(f"Therefore, the answer is {first * second - 1}.", wait=wait)(scene)

    return act


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [row for line in (folder / "rows.jsonl").read_text().splitlines() if "setting" in (row := json.loads(line))]


def by_setting(done: Result) -> dict[str, dict[str, Any]]:
    return {row["setting"]: row for row in done.json["rows"]}


# --- reason -----------------------------------------------------------------------------------------------------------


def test_every_setting_has_its_figures(taiwa: Taiwa, model_server: ModelServer, sums: Callable[..., str]) -> None:
    model_server.plays(pupil())

    done = taiwa.ok("eval", "reason", "--data", sums(6), "--shots", "0,2", "--tools-on", "none,mml,all", "--json")

    found = by_setting(done)
    assert list(found) == [
        "Zero-Shot", "Zero-Shot+CoT", "Zero-Shot+MML", "Zero-Shot+ALL", "Few-Shot@2", "Few-Shot+CoT@2", "+MML@2", "+ALL@2",
    ]  # fmt: skip
    whole, without, direct = found["+ALL@2"], found["+MML@2"], found["Zero-Shot"]
    assert (whole["n"], whole["accuracy"], whole["accuracy_tolerant"]) == (6, 1.0, 1.0)
    assert whole["interval"] == pytest.approx([0.60967, 1.0], abs=1e-5)
    assert (whole["calls"], whole["called"], whole["faithful_last"]) == (6, {"calculator": 6}, 1.0)
    assert whole["faithful_next"] == 1.0
    assert whole["mcnemar"] is None
    # The calculator is shown and not called: the model writes its result, one too low.
    assert (without["accuracy"], without["model_written"], without["calls"]) == (0.0, 6, 6)
    assert without["mcnemar"] == {"against": "+ALL@2", "pairs": 6, "only_this": 0, "only_that": 6, "p": 0.03125}
    assert (direct["accuracy"], direct["calls"], direct["answered_by"]) == (0.0, 0, {"line": 6})
    assert direct["input_tokens"] == 6 * 7
    assert done.json["model"].endswith(MODEL)
    assert (done.json["failed"], done.json["stopped"]) == (0, None)


def test_a_tool_that_is_not_exposed_is_in_no_prompt(
    taiwa: Taiwa, model_server: ModelServer, sums: Callable[..., str]
) -> None:
    model_server.plays(pupil())

    done = taiwa.ok(
        "eval", "reason", "--data", sums(2), "--shots", "3", "--tools-on", "none,mml", "--mode", "exposure", "--json"
    )

    assert list(by_setting(done)) == ["Few-Shot@3", "Few-Shot+CoT@3 exposure", "+MML@3 exposure"]
    first = (request["messages"] for request in model_server.requests if "Go on" not in str(request["messages"][-1]))
    prompts = [str(messages) for messages in first]
    assert not any("<<calculator" in prompt for prompt in prompts)
    assert any("molar_mass" in prompt for prompt in prompts)


def test_a_folder_holds_rows_table_summary_and_chart(
    taiwa: Taiwa, model_server: ModelServer, sums: Callable[..., str], place: Any, no_chart: pytest.MonkeyPatch
) -> None:
    no_chart.undo()
    model_server.plays(pupil())
    folder = place.folder / "run"

    done = taiwa.ok("eval", "reason", "--data", sums(), "--shots", "1,2", "--tools-on", "all", "--out", str(folder))

    assert sorted(path.name for path in folder.iterdir()) == [
        "chart.png", "chart.svg", "rows.jsonl", "summary.json", "table.md",
    ]  # fmt: skip
    assert "| +ALL@2 | 4 | 100.00 [51.0, 100.0] |" in (folder / "table.md").read_text()
    assert json.loads((folder / "summary.json").read_text())["rows"][1]["setting"] == "+ALL@2"
    header = json.loads((folder / "rows.jsonl").read_text().splitlines()[0])
    assert header["options"]["weights"] == "iupac"
    assert header["data"] == "sums.jsonl"
    assert len(header["data_hash"]) == 64
    assert "100.00 [51.0, 100.0]" in done.out
    assert "\x1b" not in done.out + done.err


def test_a_second_run_sends_only_missing_and_failed_rows(
    taiwa: Taiwa, model_server: ModelServer, zero_shot: tuple[str, ...], place: Any
) -> None:
    model_server.plays(pupil(ill=lambda first: first == 3))
    first = taiwa(*zero_shot, "--json")
    model_server.plays(pupil())

    second = taiwa.ok(*zero_shot, "--resume", "--json")

    assert first.code == 1
    assert {row["failed"] for row in first.json["rows"]} == {1}
    assert first.json["rows"][0]["errors"] == {"overloaded": 1}
    assert len(model_server.requests) == 1 + 2  # a thought and its answer
    assert {row["failed"] for row in second.json["rows"]} == {0}
    assert {row["n"] for row in second.json["rows"]} == {4}
    assert len(rows_of(place.folder / "run")) == 8 + 2


def test_a_third_run_sends_nothing(taiwa: Taiwa, model_server: ModelServer, zero_shot: tuple[str, ...]) -> None:
    model_server.plays(pupil())
    first = taiwa.ok(*zero_shot, "--json").json
    asked = len(model_server.requests)

    second = taiwa.ok(*zero_shot, "--json").json

    assert len(model_server.requests) == asked
    assert second["rows"] == first["rows"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("--tool-format", "inline"), "another options: protocol was 'tagged' and is 'inline'"),
        (("--data", "other.jsonl"), "another data hash"),
        (("--examples", "own.jsonl"), "another options: examples was"),
        (("-m", "http://127.0.0.1:9/v1#other"), "another model"),
    ],
)
def test_rows_of_another_evaluation_are_not_continued(
    taiwa: Taiwa,
    model_server: ModelServer,
    sums: Callable[..., str],
    zero_shot: tuple[str, ...],
    place: Any,
    change: tuple[str, ...],
    complaint: str,
) -> None:
    model_server.plays(pupil())
    own = {"id": "o", "question": "Q", "parts": ["So it is 3."], "answer": "3"}
    (place.folder / "own.jsonl").write_text(json.dumps(own))
    sums(5, "other.jsonl")
    taiwa.ok(*zero_shot)
    before = (place.folder / "run" / "rows.jsonl").read_bytes()

    done = taiwa(*zero_shot, *(str(place.folder / word) if word.endswith(".jsonl") else word for word in change))

    assert done.code == 2
    assert complaint in done.err
    assert "choose another folder" in done.err
    assert (place.folder / "run" / "rows.jsonl").read_bytes() == before


def test_a_cost_limit_ends_a_run_and_a_higher_one_continues_it(
    taiwa: Taiwa, model_server: ModelServer, zero_shot: tuple[str, ...]
) -> None:
    model_server.plays(pupil(), prices={model_server.model: {"input": 0, "output": 1000}})  # 0.003 a row

    first = taiwa(*zero_shot, "-j", "1", "--max-cost", "0.020", "--json")
    second = taiwa.ok(*zero_shot, "-j", "1", "--max-cost", "1", "--json")

    assert first.code == 1
    assert "limit on cost" in first.json["stopped"]
    assert sum(row["n"] for row in first.json["rows"]) == 3
    assert sum(row["n"] for row in second.json["rows"]) == 8
    assert sum(row["cost"] for row in second.json["rows"]) == pytest.approx(12 * 0.003)
    assert len(model_server.requests) == 4 + 2 * 4


def test_a_wrong_key_ends_a_run_at_once(taiwa: Taiwa, model_server: ModelServer, sums: Callable[..., str]) -> None:
    model_server.plays(status(401, b'{"error": {"message": "no"}}'))

    done = taiwa("eval", "reason", "--data", sums(), "-j", "1")

    assert done.code == 1
    assert len(model_server.requests) == 1
    assert len(done.err.splitlines()) == 1


def test_a_server_that_never_answers_ends_a_run(
    taiwa: Taiwa, model_server: ModelServer, sums: Callable[..., str]
) -> None:
    model_server.plays(status(500, b"{}"))

    done = taiwa("eval", "reason", "--data", sums(20), "-j", "2", "--json")

    assert done.code == 1
    assert "the server did not answer 10 consecutive rows" in done.json["stopped"]
    assert len(model_server.requests) < 15


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--shots", "five"), "invalid --shots 'five'"),
        (("--shots", "21,90"), "90 worked examples requested, but only"),
        (("--tools-on", "cal,abc"), "unknown tool 'abc'; choose one of none, cal, crp, mml"),
        (("--mode", "both"), "unknown --mode 'both'"),
        (("--tools", "hammer"), "unknown tool 'hammer'"),
        (("--only", "Type_9"), "holds no question of Type_9"),
        (("--ray", "mars"), "invalid Ray address 'mars'"),
        (("--ray", "local:0"), "invalid Ray address 'local:0'"),
        (("--resume",), "no rows to resume from"),
        (("--data", "gone.jsonl"), "No such file"),
    ],
)
def test_invalid_options_are_an_error_of_one_line_and_send_nothing(
    taiwa: Taiwa, model_server: ModelServer, sums: Callable[..., str], words: tuple[str, ...], complaint: str
) -> None:
    model_server.plays(pupil())

    done = taiwa("eval", "reason", "--data", sums(), *words)

    assert done.code == 2
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1
    assert model_server.requests == []


def test_a_dry_run_prints_sizes_and_sends_nothing(
    taiwa: Taiwa, model_server: ModelServer, sums: Callable[..., str]
) -> None:
    model_server.plays(pupil())

    shown = taiwa.ok("eval", "reason", "--data", sums(), "--dry-run")
    found = taiwa.ok("eval", "reason", "--data", sums(), "--dry-run", "--json").json

    assert shown.lines[-1] == "4 questions, 48 rows"
    assert (found["items"], found["rows"], len(found["settings"])) == (4, 48, 12)
    assert model_server.requests == []


def test_a_question_that_is_a_worked_example_gives_a_warning(
    taiwa: Taiwa, model_server: ModelServer, place: Any
) -> None:
    model_server.plays(pupil())
    own = {"id": "o", "question": "What is 5 times 7?", "parts": ["So it is 35."], "answer": "35"}
    (place.folder / "own.jsonl").write_text(json.dumps(own))
    (place.folder / "q.jsonl").write_text(json.dumps({"question": "what is  5 times 7", "answer": 35}))

    done = taiwa.ok(
        "eval", "reason", "--data", str(place.folder / "q.jsonl"), "--examples", str(place.folder / "own.jsonl"),
        "--shots", "1", "--tools-on", "none", "--json",
    )  # fmt: skip

    assert "1 question is also a worked example (0)" in done.json["notes"][0]


def test_answers_that_are_not_numbers_give_a_warning(taiwa: Taiwa, model_server: ModelServer, place: Any) -> None:
    path = place.folder / "nli.jsonl"
    rows = (
        {"question": "What is 2 times 7?", "answer": "Entailment", "type": "Type_7"},
        {"question": "What is 1 times 2?", "answer": 2},
    )
    path.write_text("\n".join(map(json.dumps, rows)))
    model_server.plays(pupil())

    done = taiwa.ok("eval", "reason", "--data", str(path), "--shots", "0", "--tools-on", "none", "--json")

    assert "1 of 2 answers is not a number (Entailment)" in done.json["notes"][0]


def test_a_progress_bar_is_shown_on_a_terminal_only(
    taiwa: Taiwa, model_server: ModelServer, sums: Callable[..., str], place: Any
) -> None:
    words = ("eval", "reason", "--data", sums(6), "--shots", "0", "--tools-on", "none", "-j", "1")
    model_server.plays(pupil(wait=0.03))
    with Terminal(place.environment(), *words) as terminal:
        terminal.see("/12")
        terminal.see("Zero-Shot+CoT")
        assert terminal.end() == 0

    piped = taiwa.ok(*words)

    assert "/12" not in piped.out + piped.err


def test_every_field_of_a_line_is_described(taiwa: Taiwa, model_server: ModelServer, sums: Callable[..., str]) -> None:
    model_server.plays(pupil())
    page = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")

    found = taiwa.ok("eval", "reason", "--data", sums(1), "--shots", "0", "--tools-on", "none", "--json").json

    assert [name for name in found["rows"][0] if f"`{name}`" not in page] == []


# --- processes --------------------------------------------------------------------------------------------------------


def until(count: int, folder: Path, process: "subprocess.Popen[bytes]") -> None:
    """Wait until so many rows are there."""
    end = time.monotonic() + 300
    while not (folder / "rows.jsonl").exists() or len(rows_of_torn(folder)) < count:
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            pytest.fail(f"no rows came: {process.communicate()[1].decode()[-2000:]}")
        time.sleep(0.02)


def rows_of_torn(folder: Path) -> list[str]:
    return [line for line in (folder / "rows.jsonl").read_text().splitlines() if '"setting"' in line]


def test_rows_of_a_killed_run_are_kept_and_none_is_sent_twice(
    taiwa: Taiwa, model_server: ModelServer, sums: Callable[..., str], place: Any
) -> None:
    folder, width = place.folder / "run", 3
    words = (
        "eval",
        "reason",
        "--data",
        sums(20),
        "--shots",
        "0",
        "--tools-on",
        "none",
        "-j",
        str(width),
        "--out",
        str(folder),
    )
    model_server.plays(pupil(wait=0.05))
    process = taiwa.fork(*words)
    until(7, folder, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=300)
    with (folder / "rows.jsonl").open("a") as file:
        file.write('{"setting": "Zero-Shot", "id": "1')  # what a kill leaves of a line

    done = taiwa.ok(*words, "--json")

    keys = Counter((row["setting"], row["id"]) for row in rows_of(folder))
    assert len(keys) == 40
    assert set(keys.values()) == {1}
    assert {row["n"] for row in done.json["rows"]} == {20}
    assert len(model_server.requests) <= 20 + 2 * 20 + 2 * width


def test_an_interrupt_keeps_the_rows_and_prints_how_to_continue(
    taiwa: Taiwa, model_server: ModelServer, sums: Callable[..., str], place: Any
) -> None:
    folder = place.folder / "run"
    model_server.plays(pupil(wait=0.5))  # far from done when the interrupt comes, however late that is
    process = taiwa.fork("eval", "reason", "--data", sums(20), "--shots", "0", "--out", str(folder), "--json")
    until(3, folder, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)

    assert process.returncode == 130
    assert b"the same command continues in" in err
    assert b"Traceback" not in err
    assert json.loads(out)["stopped"]


def children(process: int) -> dict[int, str]:
    """The command lines of all processes below one, by their ids."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    below = {process}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    found: dict[int, str] = {}
    for child in below - {process}:
        try:
            found[child] = (Path("/proc") / str(child) / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_on_ray_a_killed_worker_loses_no_row_and_doubles_none(
    taiwa: Taiwa, model_server: ModelServer, sums: Callable[..., str], place: Any
) -> None:
    folder, width = place.folder / "run", 4
    words = (
        "eval",
        "reason",
        "--data",
        sums(30),
        "--shots",
        "0,2",
        "--tools-on",
        "all",
        "--out",
        str(folder),
        "--json",
    )
    model_server.plays(pupil(wait=0.05))
    process = taiwa.start(*words, "--ray", "local:2", "-j", str(width))
    until(10, folder, process)
    workers = [child for child, line in children(process.pid).items() if line.startswith("ray::RayActor")]
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    out, err = process.communicate(timeout=300)

    assert process.returncode == 0, err.decode()
    found = json.loads(out)
    keys = Counter((row["setting"], row["id"]) for row in rows_of(folder))
    assert len(keys) == 60
    assert set(keys.values()) == {1}
    assert {(row["setting"], row["n"], row["accuracy"]) for row in found["rows"]} == {
        ("Zero-Shot+ALL", 30, 1.0), ("+ALL@2", 30, 1.0),
    }  # fmt: skip
    # What the dead worker had under way was asked anew, and nothing else: two requests for each rationale.
    assert 120 <= len(model_server.requests) <= 120 + 2 * width
    assert not children(process.pid)

    # The same rows are gone on with here: nothing is left.
    again = taiwa.ok(*words)
    assert again.json["rows"] == found["rows"]


@pytest.mark.slow
def test_a_genuine_server_is_measured_without_a_failed_row(
    taiwa: Taiwa, llama: LlamaServer, place: Any, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMACPP_API_KEY", KEY)
    place.set(model="llamacpp:tiny", base_urls={"llamacpp": llama.base_url})
    folder = place.folder / "run"

    done = taiwa.ok(
        "eval", "reason", "--data", str(shared_data / "numglue_task2.jsonl"), "--limit", "3", "--shots", "0,2",
        "--tools-on", "none,all", "--max-tokens", "40", "-j", "4", "--out", str(folder), "--json",
    )  # fmt: skip

    found = by_setting(done)
    assert len(found) == 6
    for row in found.values():
        assert (row["n"], row["failed"]) == (3, 0)
        assert row["input_tokens"] > 100
        # Random weights: noise up to the limit, and no figure of a model that is any good.
        assert row["truncations"] + row["answered_by"].get("line", 0) + row["answered_by"].get("none", 0) >= 3
        assert row["accuracy"] < 1
        assert row["cost"] == 0
        assert sum(row["ways"].values()) == 3
    assert done.json["options"]["weights"] == "integer"
    assert done.json["scripted"] is False
