"""The inside of the process that serves a GGUF file; run as a script, so that it loads nothing but llama.cpp.

Standard input gives one line of JSON, with the key, and then stays open for as long as the server is wanted: when it ends,
for whatever reason, so does the process. Standard output gives one line of JSON: where the server listens, or why not.
All else that is written goes to standard error.
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
    asked = json.loads(sys.stdin.buffer.readline())
    try:
        module: Any = import_module("xllamacpp")
    except ImportError as error:
        tell(answers, {"missing": error.name or "xllamacpp"})
        return
    try:
        server = module.Server(parameters(module, asked))
    except (RuntimeError, ValueError, OSError, MemoryError) as error:  # what llama.cpp throws comes as the first
        tell(answers, {"refused": str(error)})
        return
    has_llguidance = str(module.json_schema_to_grammar({})).startswith("%llguidance")
    tell(answers, {"url": server.listening_address, "llguidance": has_llguidance})
    while sys.stdin.buffer.read(65536):
        pass
    os._exit(0)  # nothing is to be saved, and an answer that is being written would be waited for


def parameters(module: Any, asked: dict[str, Any]) -> Any:  # noqa: ANN401  (a module of machine code, without types)
    """What llama.cpp is told."""
    made = module.CommonParams()
    made.model.path = asked["file"]
    made.model_alias = {"model"}
    made.n_ctx = asked["context"]
    made.n_parallel = asked["slots"]
    made.kv_unified = True  # conversations share the context: one may have all of it
    made.hostnames = ["127.0.0.1"]
    made.port = 0
    made.api_keys = [asked["key"]]
    made.ui = False
    made.warmup = False
    made.endpoint_slots = False
    if asked["layers"] >= 0:
        made.n_gpu_layers = asked["layers"]
    if asked["threads"]:
        made.cpuparams.n_threads = asked["threads"]
        made.cpuparams_batch.n_threads = asked["threads"]
    return made


def tell(answers: int, words: dict[str, Any]) -> None:
    """Write the one line."""
    os.write(answers, json.dumps(words).encode() + b"\n")


if __name__ == "__main__":
    main()
