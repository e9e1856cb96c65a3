"""The process that serves a GGUF file; run as a script, so that it loads llama.cpp but nothing of taiwa.

Standard input starts with one line of JSON, the options and the key, and stays open; when it is closed, the process ends.
Standard output receives one line of JSON: the address of the server, or why it does not listen. Everything else goes to
standard error.
"""

import json
import os
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Serve until standard input ends."""
    answers = os.dup(1)
    os.dup2(2, 1)  # llama.cpp writes to standard output as well
    options = json.loads(sys.stdin.buffer.readline())
    try:
        module: Any = import_module("xllamacpp")
    except ImportError as error:
        write_answer(answers, {"missing": error.name or "xllamacpp"})
        return
    try:
        server = module.Server(parameters(module, options))
    except (RuntimeError, ValueError, OSError, MemoryError) as error:  # llama.cpp's own errors come first
        write_answer(answers, {"refused": str(error)})
        return
    has_llguidance = str(module.json_schema_to_grammar({})).startswith("%llguidance")
    write_answer(answers, {"url": server.listening_address, "llguidance": has_llguidance})
    while sys.stdin.buffer.read(65536):
        pass
    os._exit(0)  # nothing needs saving, and a normal exit would wait for answers in progress


def parameters(module: Any, options: dict[str, Any]) -> Any:  # noqa: ANN401  (an extension module without types)
    """Return the parameters of llama.cpp."""
    made = module.CommonParams()
    made.model.path = options["file"]
    made.model_alias = {"model"}
    made.n_ctx = options["context"]
    made.n_parallel = options["slots"]
    made.kv_unified = True  # conversations share the context: a single one may use all of it
    made.hostnames = ["127.0.0.1"]
    made.port = 0
    made.api_keys = [options["key"]]
    made.ui = False
    made.warmup = False
    made.endpoint_slots = False
    if options["layers"] >= 0:
        made.n_gpu_layers = options["layers"]
    if options["threads"]:
        made.cpuparams.n_threads = options["threads"]
        made.cpuparams_batch.n_threads = options["threads"]
    return made


def write_answer(answers: int, answer: dict[str, Any]) -> None:
    """Write the line."""
    os.write(answers, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
