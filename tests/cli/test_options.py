"""The text of a command: an argument, piped text, or a file."""

from pathlib import Path

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa

COMMANDS = {
    "say": ("say",),
    "solve": ("solve", "--tools", "none", "--shots", "0"),
    "extract": ("extract", "days int"),
    "generate": ("generate",),
    "edit": ("edit", "1"),
}
ANSWERS = {"solve": "The answer is 9.", "extract": '{"days": 9}'}


@pytest.mark.parametrize("words", [(), ("-",)], ids=["no argument", "-"])
@pytest.mark.parametrize("command", COMMANDS)
def test_piped_text_is_the_text_of_a_command_without_an_argument(
    taiwa: Taiwa, model_server: ModelServer, command: str, words: tuple[str, ...]
) -> None:
    model_server(*(["Hello."] if command == "edit" else []), ANSWERS.get(command, "Nine."))
    if command == "edit":
        taiwa.ok("say", "Hi")

    taiwa.ok(*COMMANDS[command], *words, input="How many days?\n")

    assert model_server.last_message().endswith("How many days?")


@pytest.mark.parametrize("words", [(), ("-",)], ids=["no argument", "-"])
def test_piped_text_is_the_question_and_the_query_of_a_search(
    taiwa: Taiwa, model_server: ModelServer, place: Place, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "leave.md").write_text("There are nine days of leave.")
    model_server("Hello.")
    taiwa.ok("say", "Hi you")
    place.set(model=None)

    asked = taiwa.ok("ask", *words, "--in", str(tmp_path), "--json", input="leave\n").json
    found = taiwa.ok("find", *words, "--in", str(tmp_path), "--json", input="leave\n").json
    searched = taiwa.ok("search", *words, "--json", input="you\n").json

    assert asked["question"] == "leave"
    assert [passage["path"] for passage in found] == ["leave.md"]
    assert len(searched) == 1


def test_a_query_is_not_joined_with_piped_text(taiwa: Taiwa, tmp_path: Path) -> None:
    (tmp_path / "leave.md").write_text("There are nine days of leave.")

    assert taiwa.ok("find", "salary", "--in", str(tmp_path), "--json", input="leave\n").json == []


@pytest.mark.parametrize("command", [*COMMANDS, "ask", "find", "search"])
def test_a_command_without_a_text_says_what_it_takes(taiwa: Taiwa, model_server: ModelServer, command: str) -> None:
    model_server("Hello.")
    if command == "edit":
        taiwa.ok("say", "Hi")
    sent = len(model_server.requests)

    done = taiwa(*COMMANDS.get(command, (command,)), input="")

    assert (done.code, done.err.count("\n"), len(model_server.requests)) == (2, 1, sent)
    assert done.err.startswith(f"taiwa: {command} takes a")


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (("explain", "--regex", "é{1,200}" + "|é" * 200, "é"), "accepted"),
        (("find", "leave", "--in", "é" * 200), "is neither an index nor a folder or file"),
        (("ask", "leave", "--in", "é" * 200), "is neither an index nor a folder or file"),
        (("ask", "leave", "--user", "é" * 200), "is not a user of the store"),
        (("say", "-m", "local:" + "é" * 200, "Hi"), "not found; use local:FOLDER"),
        (("say", "-m", "gguf:" + "é" * 200, "Hi"), "cannot read"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_a_text_that_is_too_long_for_a_file_name_is_not_one(
    taiwa: Taiwa, model_server: ModelServer, command: tuple[str, ...], answer: str
) -> None:
    model_server()

    result = taiwa(*command)

    assert answer in result.out + result.err
    assert "--debug" not in result.err
