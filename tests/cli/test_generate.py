"""`taiwa generate`, and models in this process under the other commands."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.peers.tiny import build

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "kind": {"enum": ["tea", "coffee"]}},
    "required": ["name", "kind"],
    "additionalProperties": False,
}
RECORD = {"name": "ab", "kind": "tea"}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"local:{build(tmp_path_factory.mktemp('tiny'), context=4096)}?threads=1"


@pytest.fixture
def file(place: Place) -> Callable[[str, object], str]:
    def write(name: str, held: object) -> str:
        path = place.folder / name
        path.write_text(held if isinstance(held, str) else json.dumps(held), encoding="utf-8")
        return str(path)

    return write


def test_an_answer_has_the_wanted_form(taiwa: Taiwa, local: str, file: Callable[[str, object], str]) -> None:
    done = taiwa.ok("generate", "-m", local, "--schema", file("drink.json", SCHEMA), "hello", "--whitespace", "compact")

    record = json.loads(done.out)
    assert set(record) == {"name", "kind"}
    assert done.err == ""


@pytest.mark.parametrize(
    ("form", "given", "fits"),
    [
        ("--regex", "[0-9]{2}%", lambda text: text[:2].isdecimal() and text[2:] == "%"),
        ("--choice", "tea, coffee", lambda text: text in {"tea", "coffee"}),
        ("--grammar", 'start: "(" NUMBER ")"\nNUMBER: /[0-9]{1,3}/', lambda text: text[0] + text[-1] == "()"),
    ],
)
def test_every_source_holds_the_answer(
    taiwa: Taiwa, local: str, file: Callable[[str, object], str], form: str, given: str, fits: Callable[[str], bool]
) -> None:
    given = file("sum.lark", given) if form == "--grammar" else given

    assert fits(taiwa.ok("generate", "-m", local, form, given, "what?").out.strip())


def test_v_shows_what_was_forced_and_how_often_the_model_was_run(
    taiwa: Taiwa, local: str, file: Callable[[str, object], str]
) -> None:
    done = taiwa.ok("generate", "-m", local, "--schema", file("drink.json", SCHEMA), "hello", "-v")

    assert "«name»" in done.err
    assert "of them forced; 7 forward passes" in done.err
    assert "tokens: 20 read (" in done.err


def test_json_tells_all_of_it_to_programs(taiwa: Taiwa, local: str) -> None:
    found = taiwa.ok("generate", "-m", local, "--regex", "so it is [ab]{3}", "hello", "--json").json

    assert found["fits"] is True
    assert "".join(token["text"] for token in found["tokens"]) == found["text"]
    assert found["forwards"] + sum(token["forced"] for token in found["tokens"]) == len(found["tokens"])
    assert found["usage"]["output_tokens"] == len(found["tokens"])


def test_several_answers_come_from_one_reading(taiwa: Taiwa, local: str) -> None:
    wild = ("--temperature", "1", "--seed", "3", "--json")

    rows = taiwa.ok("generate", "-m", local, "--regex", "[a-z]{12}", "hello", "--count", "3", *wild).rows
    again = taiwa.ok("generate", "-m", local, "--regex", "[a-z]{12}", "hello", "--count", "3", *wild).rows

    assert len({row["text"] for row in rows}) == 3
    assert [row["text"] for row in rows] == [row["text"] for row in again]


@pytest.mark.parametrize("constraint", [("--schema", SCHEMA), ("--regex", "(a|b)*a(a|b){40}")])
def test_what_was_cut_off_is_called_so_and_not_a_misfit_and_the_exit_code_says_so(
    taiwa: Taiwa, local: str, file: Callable[[str, object], str], constraint: tuple[str, Any]
) -> None:
    option, source = constraint
    given = source if option == "--regex" else file("drink.json", source)
    asked = ("generate", "-m", local, option, given, "hello", "--max-tokens", "3")

    done, found = taiwa(*asked), taiwa(*asked, "--json")

    assert (done.code, found.code) == (1, 1)
    assert "cut off at the limit of tokens" in done.err
    assert "fit" not in done.err
    assert (found.json["fits"], found.json["why"]) == (False, "it was cut off at the length limit")


def test_an_answer_that_was_cut_off_says_so_and_a_limit_is_the_default(taiwa: Taiwa, local: str) -> None:
    done = taiwa.ok("generate", "-m", local, "hello", "--max-tokens", "3")

    assert "cut off at the limit of tokens; raise --max-tokens" in done.err
    assert "[default: 1024" in taiwa.ok("generate", "--help").out


def test_unenforceable_clauses_are_refused_or_listed(
    taiwa: Taiwa, local: str, file: Callable[[str, object], str]
) -> None:
    odd = file("odd.json", {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "maxItems": 2})

    strict = taiwa("generate", "-m", local, "--schema", odd, "hello")
    lenient = taiwa("generate", "-m", local, "--schema", odd, "hello", "--lenient")

    assert strict.code == 2
    assert "uniqueItems" in strict.err
    assert "checked, not enforced: /: uniqueItems" in lenient.err
    assert lenient.code in {0, 1}


@pytest.mark.parametrize("wire", ["chat", "messages", "responses"])
def test_a_list_of_words_is_sent_as_a_schema_to_a_server_about_which_nothing_is_known(
    taiwa: Taiwa, model_server: ModelServer, wire: str
) -> None:
    model_server()

    taiwa("generate", "-m", f"{model_server.model}?wire={wire}", "--choice", "tea,coffee", "hello")
    lenient = taiwa(
        "generate", "-m", f"{model_server.model}?wire={wire}", "--choice", "tea,coffee", "--lenient", "hello"
    )

    sent, plain = (json.dumps(request) for request in model_server.requests)
    assert '["tea", "coffee"]' in sent
    assert "coffee" not in plain
    assert "the written dialogue is over" in lenient.err


def test_an_answer_without_a_text_is_reported(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("")

    assert "the model returned no text" in taiwa.ok("generate", "hello").err


def test_a_server_is_asked_in_its_words_and_its_answer_is_checked(
    taiwa: Taiwa, model_server: ModelServer, file: Callable[[str, object], str]
) -> None:
    model_server(json.dumps(RECORD), '{"name": 1}', capabilities={model_server.model: {"json_schema": True}})
    path = file("drink.json", SCHEMA)

    good = taiwa("generate", "--schema", path, "hello")
    bad = taiwa("generate", "--schema", path, "hello")

    assert (good.code, json.loads(good.out)) == (0, RECORD)
    assert model_server.requests[0]["response_format"]["json_schema"]["schema"] == SCHEMA
    assert bad.code == 1
    assert "does not fit" in bad.err


def test_a_server_that_takes_no_pattern_says_so(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("12", capabilities={model_server.model: {"json_schema": False}})

    done = taiwa("generate", "--regex", "[0-9]+", "hello")

    assert done.code == 2
    assert "cannot be constrained by a regular expression" in done.err
    assert "--lenient sends the request without the constraint, and validates the answer" in done.err


def test_a_server_that_takes_no_list_of_words_says_so_and_the_command_that_allows_it(
    taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server("yes", "yes", capabilities={model_server.model: {"json_schema": False}})

    done = taiwa("generate", "--choice", "yes,no", "hello")
    command = "taiwa config set 'capabilities.NAME.regex' true"

    assert done.code == 2
    assert "cannot be constrained by a list of words; if its server can, set `regex: true` for it" in done.err
    assert f"in the config: {command} (NAME as after -m)" in done.err
    assert taiwa("config", "set", f"capabilities.{model_server.model}.regex", "true").code == 0
    assert "cannot be constrained" not in taiwa("generate", "--choice", "yes,no", "hello").err


def test_two_forms_are_one_too_many(taiwa: Taiwa, local: str) -> None:
    done = taiwa("generate", "-m", local, "--regex", "a", "--choice", "a", "hello")

    assert (done.code, done.out) == (2, "")
    assert "not 2 of them" in done.err


def test_any_command_talks_with_a_model_in_this_process(taiwa: Taiwa, local: str, place: Place) -> None:
    result = taiwa("say", "chat", "-m", local, "hello", "--json", "--no-store", "--max-tokens", "8")

    # Noise is no chat: the words come, the state that should follow them does not.
    assert result.json["text"]
    assert taiwa.ok("models", "show", local, "--json").json["capabilities"]["grammar"] is True
    assert "local:MODEL" in taiwa.ok("models", "providers").out
    assert taiwa.ok("say", "chat", "-m", local, "hello", "--dry-run", "--json").json["messages"]


def test_a_model_in_this_process_cannot_be_probed(taiwa: Taiwa, local: str) -> None:
    done = taiwa("probe", local)

    assert done.code == 2
    assert "runs in this process" in done.err


def test_a_wrong_folder_is_an_error_of_one_line(taiwa: Taiwa, tmp_path: Path) -> None:
    done = taiwa("generate", "-m", f"local:{tmp_path / 'none'}", "hello")

    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "not found" in done.err
