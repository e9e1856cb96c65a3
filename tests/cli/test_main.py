"""What holds for every command: help, examples, exit codes, and errors of one line."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from taiwa.cli.main import COMMANDS, SECTIONS
from tests.cli.conftest import ModelServer, Place, Taiwa, delta

HEAVY = ("pydantic", "sqlite3", "httpx2", "httpcore2", "prompt_toolkit", "yaml", "rich", "asyncio", "hypothesis", "ssl")


def every_command() -> Iterator[tuple[str, click.Command]]:
    """All commands and their sub-commands, by what a person writes."""
    for name, row in COMMANDS.items():
        yield from with_subcommands(
            name, getattr(importlib.import_module(f"taiwa.cli.{row.module}"), row.attribute or name)
        )


def with_subcommands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    for part, inner in command.commands.items() if isinstance(command, click.Group) else ():
        yield from with_subcommands(f"{name} {part}", inner)


EVERY = dict(every_command())


def test_every_command_of_the_table_stands_in_one_section() -> None:
    listed = [name for names in SECTIONS.values() for name in names]

    assert sorted(listed) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_called_as_the_table_says(name: str) -> None:
    assert EVERY[name].name == name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_shows_it_in_use(taiwa: Taiwa, name: str) -> None:
    shown = taiwa.ok(name, "--help").out

    assert re.search(rf"^  .*\btaiwa {name}\b", shown, re.MULTILINE)


@pytest.mark.parametrize("name", EVERY)
def test_every_option_has_a_help_text(name: str) -> None:
    silent = [option.name for option in EVERY[name].params if isinstance(option, click.Option) and not option.help]

    assert not silent


@pytest.mark.parametrize("name", EVERY)
def test_every_example_in_a_help_text_is_parsed(name: str) -> None:
    """Each option of each example is one that the command has."""
    text = EVERY[name].help or ""
    for example in re.findall(r"^\s*taiwa (.*)$", text, re.MULTILINE):
        words = example.partition("   ")[0].partition(" && ")[0].partition(" | ")[0].split()
        path = next(path for count in (3, 2, 1) if (path := " ".join(words[:count])) in EVERY)
        known = {flag for option in EVERY[path].params for flag in option.opts}
        used = {word.partition("=")[0] for word in words if re.fullmatch(r"-\w|--[\w-]+(=.*)?", word)}
        assert used <= known, f"{example}: {used - known}"


@pytest.mark.parametrize("name", [name for name, command in EVERY.items() if not isinstance(command, click.Group)])
def test_every_command_has_json_output_unless_it_has_no_result(name: str) -> None:
    silent = {
        "apps new", "apps confirm", "config set", "config remove", "config path", "demo", "export", "keys set", "keys remove", "mcp",
        "prices update", "prices remove", "serve", "completion", "ui",
    }  # fmt: skip

    assert (name in silent) != any(option.name == "as_json" for option in EVERY[name].params)


def test_help_loads_nothing_heavy() -> None:
    modules = sorted({row.module for row in COMMANDS.values()})
    script = (
        "import sys, json\n"
        f"for name in {modules!r}: __import__(f'taiwa.cli.{{name}}')\n"
        "from taiwa.cli.main import main\n"
        "try: main(['say', '--help'])\n"
        "except SystemExit: pass\n"
        "print(json.dumps(sorted(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)

    loaded = {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}
    assert loaded.isdisjoint(HEAVY), loaded & set(HEAVY)


READING = (
    "log", "log chat-1", "log --tree", "log --json", "show", "show --json", "diff chat-1~1 chat-1", "why topics", "state", "search tea",
    "cost", "fsck", "export", "undo", "redo", "fork chat-1:1 plan", "switch chat-1", "rename chat-1 tea", "tag tea green", "apps list", "apps check chat",
    "config show", "plugins", "gc",
)  # fmt: skip
ABSENT = (
    "pydantic",
    "httpx2",
    "asyncio",
    "taiwa.models",
    "taiwa.flows.turn",
    "taiwa.sessions.session",
    "taiwa.sessions.batch",
)


def test_a_command_that_calls_no_model_loads_neither_models_nor_validators(
    taiwa: Taiwa, model_server: ModelServer, place: Place
) -> None:
    model_server(delta("Hello!", topics=["tea"]))
    taiwa.ok("say", "chat", "-s", "chat-1", "Hi")
    script = (
        "import contextlib, io, json, sys\n"
        "from taiwa.cli.main import main\n"
        "loaded = {}\n"
        "for command in json.loads(sys.argv[1]):\n"
        "    try:\n"
        "        with contextlib.redirect_stdout(io.StringIO()): main(command.split())\n"
        "    except SystemExit as end: assert not end.code, command\n"
        "    loaded[command] = sorted(sys.modules)\n"
        "print(json.dumps(loaded))"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(READING)], check=True, stdout=subprocess.PIPE, env=place.environment()
    )

    for command, loaded in json.loads(done.stdout).items():
        assert set(loaded).isdisjoint(ABSENT), (command, set(loaded) & set(ABSENT))


def loaded_by(script: str) -> int:
    """The number of modules that a fresh interpreter has loaded when a script ends."""
    lines = f"import atexit, sys\natexit.register(lambda: print(len(sys.modules)))\n{script}"
    done = subprocess.run([sys.executable, "-c", lines], check=True, capture_output=True, text=True)
    return int(done.stdout.splitlines()[-1])


def test_help_loads_few_modules() -> None:
    """`make house` measures the time; what takes it is what is loaded."""
    ours = loaded_by("import runpy\nsys.argv[1:] = ['--help']\nrunpy.run_module('taiwa', run_name='__main__')")

    assert ours <= 1.3 * loaded_by("import click, rich")


def test_without_a_command_help_is_shown(taiwa: Taiwa) -> None:
    shown = taiwa()

    assert shown.code == 0
    assert shown.out.startswith("Usage: taiwa")


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("chta", "'chat'"),
        ("model", "'models'"),
        ("branch", "'fork' or 'rerun'"),
        ("regenerate", "'retry'"),
        ("usage", "'cost'"),
        ("history", "'log'"),
        ("session", "'log'"),
        ("new", "'chat' or 'say'"),
        ("prompt", "'say' or 'apps'"),
        ("templates", "'apps'"),
        ("what is tea?", "'say'"),
        ("version", "'--version'"),
    ],
)
def test_an_unknown_command_names_the_nearest_by_its_spelling_or_its_help(taiwa: Taiwa, word: str, near: str) -> None:
    refused = taiwa(word)

    assert refused.code == 2
    assert refused.err == f"taiwa: unknown command {word!r}; did you mean {near}? (see taiwa --help)\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("config", "unset", "model"), "unknown command 'unset'; choose one of show, set, remove, path (see taiwa config --help)"),
        (("-m", "openai:x", "Hi"), "unknown option '-m'; did you mean say -m? (see taiwa --help)"),
        (("--nix", "Hi"), "unknown option '--nix' (see taiwa --help)"),
        (("index", "remove"), "missing argument 'NAME' (see taiwa index remove --help)"),
        (("say", "--max-tokens", "0", "x"), "invalid value for '--max-tokens': 0 is not in the range x>=1 (see taiwa say --help)"),
    ],
)  # fmt: skip
def test_an_error_of_the_line_is_written_as_every_other(taiwa: Taiwa, words: tuple[str, ...], line: str) -> None:
    refused = taiwa(*words)

    assert (refused.code, refused.err) == (2, f"taiwa: {line}\n")


def test_a_wrong_option_is_one_line_that_leads_to_the_help(taiwa: Taiwa) -> None:
    refused = taiwa("say", "--nix", "Hi")

    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert refused.err.endswith("(see taiwa say --help)\n")


def test_an_error_is_one_line_without_debug_and_has_its_traceback_with_it(
    taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server()
    command = ("say", "chat", "-s", "x y", "Hi")

    plain = taiwa.fork(*command).communicate(timeout=300)[1].decode()
    debugged = taiwa.fork(*command, "--debug").communicate(timeout=300)[1].decode()

    assert plain.count("\n") == 1
    assert plain.startswith("taiwa: ")
    assert "Traceback" in debugged
    assert "InputError" in debugged


def test_debug_behind_two_dashes_is_a_text(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!"))

    taiwa.ok("say", "chat", "--", "--debug")

    assert model_server.last_message().startswith("--debug")


def test_an_internal_error_is_one_line_too(place: Place) -> None:
    script = (
        "import sys; from taiwa.cli import main as m; from taiwa.cli import store\n"
        "sys.argv = ['taiwa', 'undo']\n"
        "store.undo.callback = lambda **_: 1 / 0\n"
        "m.main()"
    )
    script = script.replace(
        "from taiwa.cli import main as m", "import taiwa.cli.main; m = sys.modules['taiwa.cli.main']"
    )

    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stderr.startswith("taiwa: internal error in taiwa (ZeroDivisionError: division by zero)")
    assert done.stderr.count("\n") == 1


def test_a_full_disk_is_a_line(place: Place) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123  (a device)
        done = subprocess.run(
            [sys.executable, "-m", "taiwa", "apps", "list"],
            check=False, stdout=full, stderr=subprocess.PIPE, text=True, env=place.environment(),
        )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr == "taiwa: No space left on device (use --debug to see where)\n"


def test_a_closed_pipe_is_not_an_error(place: Place) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "taiwa", "apps", "list"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=place.environment(),
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()

    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(300) == 141


def test_closed_streams_are_not_an_error(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server(delta("Hello!"))
    command = f"{sys.executable} -m taiwa say chat Hi <&- >&- 2>&-"

    done = subprocess.run(["bash", "-c", command], check=False, env=place.environment())

    assert done.returncode == 0
    assert taiwa.ok("show", "--json").json["answer"] == "Hello!"


def test_a_terminal_without_a_sign_for_a_character_gets_its_number(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("文"))

    out, err = taiwa.start("say", "chat", "Hi", PYTHONIOENCODING="latin-1").communicate(timeout=300)

    assert out == b"\\u6587\n"
    assert err == b""


def test_the_version_is_printed(taiwa: Taiwa) -> None:
    assert re.fullmatch(r"taiwa \d+\.\d+\.\d+\n", taiwa.ok("--version").out)


def test_a_shell_gets_completions(place: Place) -> None:
    env = place.environment(_TAIWA_COMPLETE="bash_complete", COMP_WORDS="taiwa swi", COMP_CWORD="1")

    done = subprocess.run([sys.executable, "-m", "taiwa"], check=False, capture_output=True, text=True, env=env)

    assert done.stdout == "plain,switch\n"


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("say", "--modle", "x"), "; did you mean --model?"),
        (("say", "--file", "x"), "; did you mean --fragment or --attach?"),
        (("say", "-o", "x"), "; did you mean --temperature or --max-tokens?"),
        (("say", "-t", "x"), "; did you mean --temperature or --tool or --trust-mcp?"),
        (("delete", "-y", "x"), "; did you mean --yes?"),
        (("say", "-y"), "; did you mean --approve?"),
        (("say", "-k"), ""),
    ],
)
def test_an_unknown_option_names_those_that_may_be_meant(taiwa: Taiwa, words: tuple[str, ...], near: str) -> None:
    refused = taiwa(*words)

    assert refused.code == 2
    assert refused.err == f"taiwa: unknown option {words[1]!r}{near} (see taiwa {words[0]} --help)\n"
