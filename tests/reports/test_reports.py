"""What users of such tools reported, one small case a report: each was made up to show the same fault.

A case is an entry of the file of its kind, whose first line describes the fields; `report` says what was reported.
"""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

import taiwa as package
from taiwa.retrieval.readers import document_format, read_document
from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.peers.faults import DONE, event, head, raw
from tests.retrieval.documents import docx, drawn_pdf

HERE = Path(__file__).parent


def cases(kind: str) -> pytest.MarkDecorator:
    found: list[dict[str, Any]] = yaml.safe_load((HERE / f"{kind}.yaml").read_text("utf-8"))
    return pytest.mark.parametrize("case", found, ids=[each["report"] for each in found])


def written(case: dict[str, Any]) -> bytes:
    if "docx" in case:
        return docx(*case["docx"], extra={name: part.encode() for name, part in case.get("parts", {}).items()})
    if "pdf" in case:
        return drawn_pdf(case["pdf"], case.get("page", ""), case.get("objects"))
    unit, times = case.get("repeat", ["", 0])
    return f"{unit * times}{case['text']}".encode(case.get("encoding", "utf-8"))


@cases("documents")
def test_a_document_is_read_as_it_is_written(case: dict[str, Any]) -> None:
    kind = document_format(case["file"])
    assert kind is not None

    text = read_document(written(case), kind, 1_000_000).text

    assert [wanted for wanted in case["holds"] if wanted not in text] == []
    assert [unwanted for unwanted in case.get("lacks", ()) if unwanted in text] == []


@cases("questions")
def test_a_question_is_answered_from_its_document(case: dict[str, Any], taiwa: Taiwa, place: Place) -> None:
    folder = place.folder / "documents"
    folder.mkdir()
    (folder / case["file"]).write_bytes(written(case))

    answered = taiwa("ask", case["question"], "--in", str(folder))

    assert (answered.code, (answered.out or answered.err).splitlines()[0]) == (case.get("code", 0), case["answer"])


@cases("streams")
def test_a_stream_is_read_as_servers_write_it(case: dict[str, Any], taiwa: Taiwa, model_server: ModelServer) -> None:
    lines = [f"{each}\n\n".encode() if isinstance(each, str) else event(each) for each in case["chunks"]]
    if "wire" not in case:
        lines += [event({}, finish="stop"), DONE]
    model_server(raw(head(), *lines))

    done = taiwa(*case.get("words", ("say", "?")), "-m", f"{model_server.model}?wire={case.get('wire', 'chat')}")

    assert (done.out.strip(), done.code) == (case["out"], case.get("code", 0)), done.err
    assert case.get("err", "") in done.err


@cases("answers")
def test_the_value_of_an_answer_is_found(case: dict[str, Any]) -> None:
    assert package.parse(case["type"], case["text"]).value == case["value"]


@cases("calls")
def test_a_call_is_made_as_models_and_relays_write_it(
    case: dict[str, Any], taiwa: Taiwa, model_server: ModelServer
) -> None:
    lines = [
        f"{each}\n\n".encode() if isinstance(each, str) else event({"tool_calls": each}) for each in case["chunks"]
    ]
    if "wire" not in case:
        lines += [event({}, finish="tool_calls"), DONE]
    model = f"{model_server.model}?wire={case.get('wire', 'chat')}"
    model_server(raw(head(), *lines), "Done.", capabilities={model: {"tools": case.get("declared", True)}})

    tools = (f"{HERE / 'report_tools.py'}:{name}" for name in ("add", "now", "price"))
    taiwa("say", "?", "-m", model, *chain.from_iterable(("--tool", each) for each in tools))

    assert results(model_server.requests[1]["messages"], declared=case.get("declared", True)) == case["results"]


def results(messages: list[dict[str, Any]], *, declared: bool) -> list[str]:
    """What the tools returned, as a request of Chat Completions or Messages holds it; in the text of the model if it calls no functions."""
    blocks = [block for each in messages if isinstance(each["content"], list) for block in each["content"]]
    role = "tool" if declared else "assistant"
    found = [each for each in messages if each["role"] == role and isinstance(each["content"], str)]
    return [each["content"] for each in (*found, *blocks) if each.get("type", "tool_result") == "tool_result"]


@cases("commands")
def test_a_command_says_what_it_did(case: dict[str, Any], taiwa: Taiwa) -> None:
    for words in case.get("before", ()):
        taiwa.ok(*words)

    done = taiwa(*case["words"])

    assert done.code in (case["code"] if isinstance(case["code"], list) else [case["code"]])
    assert case.get("err", "") in done.err
    assert case.get("out", done.out) == done.out
