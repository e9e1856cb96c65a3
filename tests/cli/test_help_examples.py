"""The examples in the help of every command: there is one, and they run."""

import re
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest

from taiwa.cli.main import cli
from tests.cli.conftest import ModelServer, Place, Result, Taiwa
from tests.peers.faults import speech

EXAMPLE = re.compile(r"\s*(?:[a-z]\w* [^|]*\| )?taiwa .*")
ELSEWHERE = {
    "taiwa show 3f9a12": "the hash of a conversation of one's own",
    "taiwa mcp": "waits for a client; tests/tools do what it serves",
    "taiwa serve": "serves until it is stopped",
    "taiwa ui": "serves until it is stopped; run by tests/cli/test_serve_ui.py",
    "taiwa demo": "shown by tests/cli/test_demo.py",
    "taiwa eval": "needs data; run by tests/cli/test_eval.py",
    "taiwa tools list --mcp-server": "needs a server of one's own",
    "taiwa say --mcp-server": "needs a server of one's own; run by tests/cli/test_say.py",
    "taiwa tools call unit_conversion": "needs an extra",
    "taiwa tools call my_tools.py": "run by tests/cli/test_solve_tools.py",
    "taiwa solve": "run by tests/cli/test_solve.py",
    "taiwa extract -c": "needs a conversation of its app; run by tests/cli/test_extract.py",
    "taiwa generate -m local:./qwen": "needs a model that can be constrained; run by tests/cli/test_generate.py",
    "taiwa generate -m vllm": "needs a model that can be constrained; run by tests/cli/test_generate.py",
    "taiwa probe": "run by tests/cli/test_models.py",
    "taiwa models pull": "fetches hundreds of megabytes; run by tests/cli/test_models.py",
    "taiwa models remote": "run by tests/cli/test_models.py",
    "taiwa models remove": "needs a fetched model; run by tests/cli/test_models.py",
    "taiwa resume": "needs a turn that was cut off; run by tests/cli/test_display.py",
    "taiwa explain --grammar": "needs a vocabulary of one's own",
    "taiwa explain --type": "needs a file to write to; run by tests/cli/test_generate_explain.py",
    "taiwa index ~/handbook --embeddings": "needs a model of sentences",
    "taiwa index handbook --embeddings": "needs a model of sentences",
    "taiwa keys remove": "needs a key; run by tests/cli/test_config.py",
    "taiwa prices update": "fetches a table; run by tests/cli/test_prices.py",
    "taiwa prices remove": "needs a table; run by tests/cli/test_prices.py",
    "taiwa keys set": "asks for a key; run by tests/cli/test_config.py",
    "taiwa rerun chat-1 --app tutor": "needs an app of one's own",
    "taiwa apps confirm": "needs an app of one's own",
}
"""How examples begin that are not run here, and why."""
ANSWERS = {
    "shop:Order": '{"name": "tea", "cups": 2}',
    "drink": '{"drink": "tea", "count": 2}',
    "name": '{"name": "Ann", "age": 3}',
}
"""What the model answers to an example that holds a word."""
STORES: dict[int, bytes] = {}
"""The store with a conversation of so many turns."""
SHOP = "import pydantic\n\n\nclass Order(pydantic.BaseModel):\n    name: str\n    cups: int\n"
SCHEMA = (
    '{"type": "object", "properties": {"name": {"type": "string"}, "cups": {"type": "integer"}}, "required": ["name"]}'
)
APP = "---\ntaiwa: 1\nname: tutor\nparams:\n  level: { type: int, ask: Level, default: 1 }\n---\nTeach at level {{level}}.\n"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


def context_of(command: click.Command, **more: Any) -> click.Context:
    """A context as of the whole command line: a command keeps the help option of its first one."""
    return click.Context(command, **{**cli.context_settings, **more})


def commands(
    command: click.Command, path: tuple[str, ...] = ("taiwa",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and those below it."""
    yield path, command
    if isinstance(command, click.Group):
        context = context_of(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, (*path, name))


def examples(command: click.Command) -> list[str]:
    """The lines of a help text that can be typed, without the remarks behind them."""
    lines = (command.help or "").splitlines()
    return [re.split(r"\s{2,}", line.strip())[0] for line in lines if EXAMPLE.fullmatch(line)]


ALL = dict(commands(cli))
LINES = sorted({line for command in ALL.values() for line in examples(command)})
RUN = [line for line in LINES if not line.startswith(tuple(ELSEWHERE))]


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_the_help_of_every_command_shows_an_example(path: tuple[str, ...]) -> None:
    assert examples(ALL[path])


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_no_sentence_of_a_help_text_is_cut_off(path: tuple[str, ...]) -> None:
    command, context = ALL[path], context_of(ALL[path], info_name=path[-1])
    shown = command.get_help(context)
    assert "..." not in re.sub(r"\[(?:ARGS|NAMES|TAGS)\]\.\.\.", "", shown)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert re.search(r"[.\]]$", (parameter.help or "").strip()), parameter.opts


def test_what_is_not_run_here_is_still_an_example() -> None:
    assert not [begin for begin in ELSEWHERE if not any(line.startswith(begin) for line in LINES)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples name."""
    folder = tmp_path_factory.mktemp("world")
    texts = {
        "shop.py": SHOP, "a.py": "a = 1\n", "b.py": "b = 2\n", "letter.txt": "Two teas.\n", "lines.txt": "one\ntwo\n",
        "sentences.jsonl": '{"text": "one"}\n', "answer.txt": ANSWERS["shop:Order"], "schema.json": SCHEMA, "order.json": SCHEMA,
        "question.txt": "What?\n", "tutor.md": APP, "sum.lark": 'start: "1" "+" "1"\n', "me.yaml": "name: me\n",
        "messages.json": '[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]',
        "handbook/leave.md": "# Leave\n\nThree days of leave for travel expenses.\n有給休暇の申請は三日前までです。\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "cat.png").write_bytes(PNG)
    (folder / "receipt.png").write_bytes(PNG)
    return folder


@pytest.fixture
def home(place: Place, world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The world as the home and the working folder of a test."""
    home = place.folder / "world"
    shutil.copytree(world, home)
    monkeypatch.chdir(home)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.mark.parametrize("line", RUN)
def test_an_example_runs(line: str, taiwa: Taiwa, model_server: ModelServer, home: Path) -> None:
    for command, done in run_example(line, taiwa, model_server, home):
        assert done.code in ((0, 3, 4) if command == "ask" else (0, 1) if command == "generate" else (0,)), done.err


def run_example(
    line: str, taiwa: Taiwa, model_server: ModelServer, home: Path, *more: str
) -> Iterator[tuple[str, Result]]:
    """Run the commands of an example, with more options; yield their names and outcomes."""
    model_server.plays(
        speech(next((text for word, text in ANSWERS.items() if word in line), "Hello!")),
        capabilities={model_server.model: dict.fromkeys(("json_schema", "regex", "grammar"), True)},
    )
    prepare(taiwa, line)
    for part in line.split("&&"):
        before, _, command = part.rpartition("| taiwa") if "| taiwa" in part else ("", "", part)
        words = shlex.split(re.sub(r"\|.*", "", command.replace("taiwa ", "", 1)).replace("~/", f"{home}/"))
        piped = "Hello\n/state\n" if before else ""
        if "<" in words:
            piped = Path(words[words.index("<") + 1]).read_text()
        words = words[: next((at for at, word in enumerate(words) if word in "<>"), len(words))]
        for flag in ("-m",):
            if flag in words:  # the model of the test answers
                del words[words.index(flag) : words.index(flag) + 2]
        yield words[0], taiwa(*words, *(each for each in more if each not in words), input=piped)


def prepare(taiwa: Taiwa, line: str) -> None:
    """What an example takes for granted."""
    command = line.rpartition("taiwa ")[2] if "| taiwa" in line else line.removeprefix("taiwa ")
    if re.search(
        r"chat-1|topics|state|apps save|search|cost|log|show|undo|redo|retry|edit|fork|export|replay| -c|diff|resume|switch",
        command,
    ):
        restore(taiwa, 9 if "chat-1:9" in command else 3)
    if "--remove" in command:
        taiwa.ok("models", "alias", "fast", "openai:gpt-5-mini")
    if "redo" in command:
        taiwa.ok("undo")
    if "plan-b" in command and "diff" in command:
        taiwa.ok("fork", "chat-1~1", "plan-b")
        taiwa.ok("switch", "chat-1")
    if command.startswith("import chat-1"):
        Path("chat-1.jsonl").write_text(taiwa.ok("export", "chat-1").out)
        taiwa.ok("delete", "chat-1", "--yes")
    if "tutor" in command and command.startswith("apps update"):
        taiwa.ok("apps", "new", "tutor")
        taiwa.ok("say", "tutor", "-s", "tutor-1", "Hi")
    if command.startswith("find") or ("handbook" in command and not command.startswith("index ~")):
        taiwa.ok("index", "handbook")
    if command.startswith("ask -c"):
        taiwa("ask", "leave")
    if "user" in command and " set " not in command:
        taiwa.ok("user", "set", "ann", "office=Osaka")
    if "user rate" in command:
        taiwa("ask", "days of leave", "--user", "ann")
    if command.startswith("config remove"):
        taiwa.ok("config", "set", "model", "ollama:qwen3")


def restore(taiwa: Taiwa, turns: int) -> None:
    """Make a store with a conversation of so many turns: the first time by commands, from then on as a copy."""
    if turns not in STORES:
        for number in range(turns):
            taiwa.ok("say", "chat", "-s", "chat-1", f"turn {number}")
            taiwa.ok("state", "set", "topics", f'["tea", "{number}"]', "-s", "chat-1")
        with closing(sqlite3.connect(taiwa.place.store)) as store:
            STORES[turns] = store.serialize()
    else:
        taiwa.place.store.write_bytes(STORES[turns])


@pytest.mark.parametrize(
    "word",
    [
        "retry the last answer", "regenerate", "branch", "system prompt", "context window", "structured output", "JSON mode",
        "function calling", "citations", "token usage", "rate limit", "resume", "streaming", "embeddings", "plugin",
    ],
)  # fmt: skip
def test_what_people_look_for_is_found_in_the_help(word: str) -> None:
    texts = [
        command.get_help(context_of(command, info_name=" ".join(path), terminal_width=10_000))
        for path, command in ALL.items()
    ]

    assert any(word.lower() in text.lower() for text in texts)
