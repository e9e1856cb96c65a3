"""One llama.cpp server for a GGUF file, in a process of its own, which begins anew for every way of an evaluation.

Run as a script, this file is that process. Its argument is JSON with its options. It answers with one line, begins anew at the same
address after each line of standard input, and serves until that ends.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

CONTEXT = 8192


@contextmanager
def llama_server(file: Path, threads: int = 2, context: int = CONTEXT) -> Generator[tuple[str, Callable[[], None]]]:
    """Start a server for a GGUF file, yield its base URL and what empties it, and stop it at the end. Its model has the name of the file
    without the suffix.

    Raises:
        ConfigError: xllamacpp is not installed.
        InputError: llama.cpp cannot load the file.
    """
    from taiwa.extras import missing_extra
    from taiwa.kernel.errors import InputError

    if not file.is_file():
        raise InputError(f"{file}: no such file")
    options = {"file": str(file), "threads": threads, "context": context, "port": 0}
    process = subprocess.Popen(
        [sys.executable, __file__, json.dumps(options)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    def started() -> str:
        answer: dict[str, str] = json.loads(stdout.readline() or b'{"refused": "it ended while loading"}')
        if "missing" in answer:
            raise missing_extra("a GGUF file", "gguf")
        if "url" not in answer:
            raise InputError(f"{file}: llama.cpp cannot load it: {answer.get('refused', '')}")
        return answer["url"]

    def empty() -> None:
        stdin.write(b"\n")
        stdin.flush()
        started()

    try:
        yield f"{started()}/v1", empty
    finally:
        stdin.close()
        process.wait()
        stdout.close()


def _serve() -> None:
    options = json.loads(sys.argv[1])
    answers = options.setdefault("answers", -1)
    if answers < 0:
        options["answers"] = answers = os.dup(1)
        os.set_inheritable(answers, True)
        os.dup2(2, 1)  # llama.cpp writes to standard output as well
    try:
        server = _start(options)
    except ImportError as error:
        _answer(answers, {"missing": error.name})
        return
    except (RuntimeError, ValueError, OSError, MemoryError) as error:
        _answer(answers, {"refused": str(error)})
        return
    _answer(answers, {"url": server.listening_address})
    if os.read(0, 1):
        options["port"] = int(server.listening_address.rpartition(":")[2])
        os.execv(sys.executable, [sys.executable, __file__, json.dumps(options)])  # noqa: S606  (this file)
    os._exit(0)  # a normal exit would wait for answers in progress


def _start(options: dict[str, Any]) -> Any:  # noqa: ANN401  (an extension module without types)
    module: Any = import_module("xllamacpp")
    made = module.CommonParams()
    made.model.path = options["file"]
    made.model_alias = {Path(options["file"]).stem}
    made.n_ctx = options["context"]
    made.n_parallel = 1  # its cache of prompts in memory stays on, as in llama-server: a program that alternates two prompts reads each once
    made.hostnames, made.port = ["127.0.0.1"], options["port"]
    made.ui = False
    made.cpuparams.n_threads = made.cpuparams_batch.n_threads = options["threads"]
    return module.Server(made)


def _answer(answers: int, answer: dict[str, Any]) -> None:
    os.write(answers, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    _serve()
