"""Record the console sessions of the documents: real commands and a real store, with the answers of a scripted server.

`docs/sessions/README.md` describes the format of a session and the normalisation of its output.
"""

import argparse
import difflib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, chdir, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

from taiwa.cli import main as main_of_taiwa

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # for the tests' llama.cpp server, and for evals/
from docs.player import ScriptedExchange, ScriptedServer  # noqa: E402
from evals.__main__ import evals  # noqa: E402

SESSIONS = HERE / "sessions"
MODEL = "written:script"
FIRST_PORT, PORTS = 21_000, 8_999
"""A session has a port of its own, below those that a system gives out: the hash of a turn covers it."""
GENUINE = "#! llama.cpp"
SERVED = "#! serve"
PLAIN = re.compile(
    r"""((?P<feed>(?:echo|printf) [^|\n]+) \| )?"""
    r"""(?P<words>(?P<program>taiwa|python -m evals|llm) (?:[^|<>&;$`"'\\\n]|"(?:[^"$`\\]|\\[^"$`\\\n])*"|'[^']*')*)"""
    r"""( <<'END'\n(?P<text>.*)END)?\Z""",
    re.DOTALL,
)
"""A command that needs no shell: only quoting, an optional pipe from echo or printf, or a here-document."""
PYTHON = re.compile(r"python <<'END'\n(?P<text>.*)END\Z", re.DOTALL)
LONGEST_ANSWER = 10_000
LONGEST = 300.0
"""Seconds that a command may take."""
KILLED = "\n(killed with kill -9 while it waited for its next answer)\n"
NORMALISED: tuple[tuple[str, str], ...] = (
    (r"\b\d+ ms\b", "… ms"),
    (r" · [\d.]+ tokens/s", ""),  # said only if the machine was slow
    (r"\b\d+\.\d+ s\b", "… s"),
    (r'"seconds": [\d.]+', '"seconds": …'),
    (r'"ms": \d+', '"ms": …'),
    (r"\b20\d\d-\d\d-\d\d \d\d:\d\d", "YYYY-MM-DD hh:mm"),
    (r"\b20\d\d-\d\d-\d\d\b", "YYYY-MM-DD"),
    (r"127\.0\.0\.1:\d{5}\b", "127.0.0.1:8080"),
    (r"\bmsg_[0-9a-f]{24}\b", "msg_…"),
)
"""Output that differs between runs, with its replacement. The home folder becomes ~ as well."""


@dataclass
class Step:
    """A command with the answers that the model gives while it runs."""

    part: str
    command: str
    answers: tuple[str, ...] = ()
    shown: bool = True
    fails: bool = False
    killed: bool = False


@dataclass
class Draft:
    """What is said of the next command before it comes."""

    answers: list[list[str]] = field(default_factory=list[list[str]])
    flags: set[str] = field(default_factory=set[str])


def steps(script: str) -> Iterator[Step]:
    """Parse a session: commands, and the model's answers to each."""
    part, draft = "", Draft()
    lines = iter(script.splitlines())
    for line in lines:
        if line.startswith("#== "):
            part = line.removeprefix("#== ")
        elif line.startswith("#> "):
            draft.answers.append([line.removeprefix("#> ")])
        elif line.startswith("#| "):
            draft.answers[-1].append(line.removeprefix("#| "))
        elif line.startswith("#! "):
            draft.flags.add(line.removeprefix("#! "))
        elif line.startswith("#@ "):
            yield Step(part, line.removeprefix("#@ "), shown=False)
        elif line and not line.startswith("#"):
            answers = tuple("\n".join(answer) for answer in draft.answers)
            yield Step(part, _whole(line, lines), answers, fails="fails" in draft.flags, killed="kill" in draft.flags)
            draft = Draft()


def _whole(line: str, rest: Iterator[str]) -> str:
    """Return a command with its continuation lines and its here-document."""
    taken = [line]
    while taken[-1].endswith("\\"):
        taken.append(next(rest))
    if found := re.search(r"<<'(\w+)'", line):
        while taken[-1] != found[1]:
            taken.append(next(rest))
    return "\n".join(taken)


class Prompter(ScriptedServer):
    """A scripted server that plays the answers of one command after another, counts requests, and can leave one unanswered."""

    def __init__(self, port: int) -> None:
        super().__init__((), port=port)
        self.asked = 0
        self.left_alone: threading.Event | None = None

    def learn(self, answers: Iterable[str], left_alone: threading.Event | None) -> None:
        """Load the answers for the next command; a request after the last one sets `left_alone`."""
        self._lines = [ScriptedExchange(answer) for answer in answers]
        self.asked = 0
        self.left_alone = left_alone

    def answer(self, request: Mapping[str, Any]) -> tuple[str, dict[str, int]] | str:
        """Play the next answer."""
        self.asked += 1
        if self.left_alone is not None and not self._lines:
            self.left_alone.set()
            threading.Event().wait(LONGEST)
        return super().answer(request)


class Stage:
    """A temporary home with a scripted model."""

    def __init__(self, home: Path, player: Prompter, *, quick: bool) -> None:
        self._home = home.resolve()
        self._config = self._home / ".config" / "taiwa" / "config.yaml"
        self._quick = quick
        self._player = player
        self._more: dict[str, str] = {}
        self._set_up(player.base_url, MODEL)

    def _set_up(self, base_url: str, model: str) -> None:
        self._config.parent.mkdir(parents=True, exist_ok=True)
        known = f"capabilities:\n  '{model}': {{tools: false}}\n" if model == MODEL else ""
        self._config.write_text(f"model: {model}\nbase_urls:\n  {model.partition(':')[0]}: {base_url}\n{known}")

    @contextmanager
    def genuine(self) -> Generator[None]:
        """Use a real llama.cpp server with random weights instead of the script."""
        from tests.peers.llama import KEY, LlamaServer

        with LlamaServer(self._home) as server:
            self._set_up(server.base_url, "llamacpp:tiny")
            self._more = {"LLAMACPP_API_KEY": KEY}
            yield

    @contextmanager
    def served(self) -> Generator[None]:
        """Run `taiwa serve` for clients, whose environment contains its address and key."""
        words = [sys.executable, "-m", "taiwa", "serve", "--port", "0", "--token", "KEY"]
        with subprocess.Popen(
            words, cwd=self._home, env=self._environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as server:
            assert server.stdout is not None
            url = next(found[0] for line in server.stdout if (found := re.search(r"http://[\d.:]+", line)))
            self._more = {
                "URL": url, "KEY": "KEY", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "KEY",
                "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "KEY", "LLM_USER_PATH": str(self._home / "llm"),
            }  # fmt: skip
            try:
                yield
            finally:
                server.send_signal(signal.SIGINT)
                server.wait(LONGEST)

    def play(self, step: Step) -> str:
        """Run a command and return its visible output."""
        reached = threading.Event()
        self._player.learn(step.answers, reached if step.killed else None)
        inside = self._quick and not step.killed
        if inside and (script := PYTHON.match(step.command)):
            code, printed = self._inside(partial(exec, compile(script["text"], "<stdin>", "exec"), {}))
        elif inside and (plain := PLAIN.match(step.command.replace("\\\n", ""))):
            given = self._said(plain["feed"]) if plain["feed"] else (plain["text"] or "").encode()
            code, printed = self._inside(partial(_run, plain["program"], shlex.split(plain["words"])), given)
        else:
            code, printed = self._shell(step, reached)
        failed = code != 0
        if failed != (step.fails or step.killed):
            raise SystemExit(f"{step.command!r} ended with {code}:\n{printed}")
        asked = self._player.asked
        if asked != len(step.answers) + step.killed:
            raise SystemExit(
                f"{step.command!r} asked {asked} times and {len(step.answers)} answers are written:\n{printed}"
            )
        return self._normal(printed.removesuffix("\n") + KILLED if step.killed else printed)

    def _shell(self, step: Step, reached: threading.Event) -> tuple[int, str]:
        process = subprocess.Popen(
            ["bash", "-c", step.command], cwd=self._home, env=self._environment(), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if step.killed and reached.wait(LONGEST):
            os.killpg(process.pid, signal.SIGKILL)
        printed = process.communicate(timeout=LONGEST)[0].decode()
        return process.returncode, printed

    def _said(self, command: str) -> bytes:
        return subprocess.run(
            ["bash", "-c", command], cwd=self._home, env=self._environment(), stdout=subprocess.PIPE, check=True
        ).stdout

    def _inside(self, run: Callable[[], object], given: bytes = b"") -> tuple[int, str]:
        """Run a command in this process, with the folder and environment of the session."""
        out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
        kept = dict(os.environ)
        os.environ.clear()
        os.environ.update(self._environment())
        try:
            with (
                chdir(self._home),
                redirect_stdout(out),
                redirect_stderr(out),
                patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8")),
            ):
                run()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        finally:
            os.environ.clear()
            os.environ.update(kept)
        return code, out.buffer.getvalue().decode()

    def _environment(self) -> dict[str, str]:
        """Return an environment without the settings of the recording user."""
        folders = [str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]
        return {
            "HOME": str(self._home), "PATH": os.pathsep.join(folders), "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb",
            "COLUMNS": "100", "PYTHONPATH": os.pathsep.join((str(HERE.parent), str(HERE.parent / "src"))),
        } | self._more  # fmt: skip

    def _normal(self, text: str) -> str:
        text = text.replace(str(self._home), "~")
        for pattern, instead in NORMALISED:
            text = re.sub(pattern, instead, text)
        return text


def recorded(path: Path, *, quick: bool = False) -> str:
    """Play a session and return its record."""
    lines: list[str] = []
    part = ""
    port = FIRST_PORT + crc32(path.stem.encode()) % PORTS
    with ExitStack() as stack, Prompter(port) as player, tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), player, quick=quick)
        script = path.read_text(encoding="utf-8")
        stack.enter_context(stage.genuine() if GENUINE in script else nullcontext())
        if SERVED in script:
            player.piece = LONGEST_ANSWER  # how a server passes on pieces depends on their times
            stack.enter_context(stage.served())
        for step in steps(script):
            printed = stage.play(step)
            if not step.shown:
                continue
            if step.part != part:
                part = step.part
                lines.append(f"#== {part}\n")
            else:
                lines.append("\n")
            lines.append(f"$ {step.command}\n{printed}".rstrip("\n") + "\n")
    return "".join(lines)


def _run(program: str, words: list[str]) -> None:
    """Run a command of the package, of the evaluations, or of a client of the server."""
    if program == "taiwa":
        main_of_taiwa(words[1:])
    elif program == "llm":
        import_module("llm.cli").cli(words[1:])
    else:
        main_of_taiwa(words[3:], evals, program)


def stale(path: Path, record: str) -> Iterable[str]:
    """Return the difference between the stored record and the new one."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    return difflib.unified_diff(before.splitlines(), record.splitlines(), str(path), "now", lineterm="")


def main(arguments: Sequence[str]) -> int:
    """Record all sessions, or the named ones."""
    scripts = {path.stem: path for path in sorted(SESSIONS.glob("*.sh"))}
    parser = argparse.ArgumentParser(prog="docs/record.py", description=main.__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(scripts)}; without any, all of them"
    )
    parser.add_argument(
        "--check", action="store_true", help="print the differences, write nothing, exit with 1 if there are any"
    )
    parser.add_argument("--quick", action="store_true", help="run in this process what needs no shell")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.names if name not in scripts]:
        parser.error(f"unknown session {unknown[0]!r}; choose one of {', '.join(scripts)}")
    paths = [scripts[name] for name in given.names or scripts]
    with ThreadPoolExecutor(1 if given.quick else os.cpu_count()) as pool:
        records = list(pool.map(partial(recorded, quick=given.quick), paths))
    differs = False
    for path, record in zip(paths, records, strict=True):
        out = path.with_suffix(".out")
        if lines := list(stale(out, record)):
            differs = True
            sys.stdout.write("\n".join(lines) + "\n" if given.check else f"{out.name}\n")
        if not given.check:
            out.write_text(record, encoding="utf-8")
    return int(given.check and differs)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
