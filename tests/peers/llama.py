"""A genuine llama.cpp server on this machine, with a tiny model of random weights that is written on the spot.

Its answers are noise; all around them is real: tokenizer, chat template, streaming, stop strings, usage, prefix cache,
grammars, JSON Schema, keys. It runs in a process of its own, so that a crash in it ends no test run.

    with LlamaServer(folder) as server:
        resolve(f"{server.base_url}#tiny")
"""

import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import numpy as np

__all__ = ["KEY", "LlamaServer", "write_model"]

KEY = "canary-llama-0123456789"
WIDTH, LAYERS, HEADS, HIDDEN, CONTEXT = 64, 2, 4, 128, 8192
MERGES = ("t h", "th e", "i n", "e r", "o n", "a n", "Ġ t", "Ġ a", "Ġ the", "r e")
CONTROL = ("<|end|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def bytes_as_letters() -> list[str]:
    """The 256 letters that byte-level vocabularies write bytes as (GPT-2)."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = {byte: chr(byte) for byte in plain} | {byte: chr(256 + place) for place, byte in enumerate(others)}
    return [letters[byte] for byte in range(256)]


def write_model(
    path: Path, template: str | None = TEMPLATE, *, add_start: bool = False, user_defined: tuple[str, ...] = ()
) -> None:
    """Write a Llama of random weights whose likely tokens are printable ASCII; tokens of the user are found in any text."""
    import gguf  # takes half a second, and every test process imports this module

    letters = bytes_as_letters()
    tokens = [*letters, *(merge.replace(" ", "") for merge in MERGES), *user_defined, *CONTROL]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    plain = len(tokens) - len(CONTROL) - len(user_defined)
    writer.add_token_types(
        [gguf.TokenType.NORMAL] * plain
        + [gguf.TokenType.USER_DEFINED] * len(user_defined)
        + [gguf.TokenType.CONTROL] * len(CONTROL)
    )
    writer.add_token_merges(list(MERGES))
    writer.add_bos_token_id(len(tokens) - 3)
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_add_bos_token(add_start)
    if template is not None:
        writer.add_chat_template(template)
    for name, tensor in weights(len(tokens)).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def weights(vocabulary: int) -> dict[str, np.ndarray]:
    """Random weights, the same on every machine; tokens that are not printable ASCII get a logit of zero."""
    chance = np.random.default_rng(7)

    def matrix(rows: int, columns: int, scale: float = 1.0) -> np.ndarray:
        return (chance.standard_normal((rows, columns)) * scale / np.sqrt(columns)).astype(np.float32)

    output = matrix(vocabulary, WIDTH, scale=8.0)
    output[[*range(0x20), *range(0x7F, 256), *range(vocabulary - len(CONTROL), vocabulary)]] = 0
    tensors = {
        "token_embd.weight": matrix(vocabulary, WIDTH, scale=8.0),
        "output_norm.weight": np.ones(WIDTH, np.float32),
        "output.weight": output,
    }
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        tensors[f"{block}.attn_norm.weight"] = np.ones(WIDTH, np.float32)
        tensors[f"{block}.ffn_norm.weight"] = np.ones(WIDTH, np.float32)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"{block}.{name}.weight"] = matrix(WIDTH, WIDTH)
        tensors[f"{block}.ffn_gate.weight"] = matrix(HIDDEN, WIDTH)
        tensors[f"{block}.ffn_up.weight"] = matrix(HIDDEN, WIDTH)
        tensors[f"{block}.ffn_down.weight"] = matrix(WIDTH, HIDDEN)
    return tensors


class LlamaServer:
    """The server, from entering to leaving; one of embeddings serves nothing else."""

    def __init__(self, folder: Path, *, embeddings: bool = False) -> None:
        self.embeddings = embeddings
        self.model = folder / "tiny.gguf"
        self.log = folder / "llama.log"
        self.url = ""

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def __enter__(self) -> Self:
        if not self.model.exists():
            write_model(self.model)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, __file__, self.model, *["embeddings"] * self.embeddings],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"http://"):
                self.url = line.decode().strip()
                return self
        raise RuntimeError(f"the llama.cpp server did not start:\n{self.log.read_text(errors='replace')[-2000:]}")

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=300)


def serve(model: str, *, embeddings: bool = False) -> None:
    """Serve a model until standard input ends, so that no server outlives its tests."""
    import xllamacpp  # 100 MB of machine code, wanted in the server's process alone

    params: Any = xllamacpp.CommonParams()  # its module has no stubs
    params.model.path = model
    params.model_alias = {"tiny"}
    params.n_ctx = 4 * CONTEXT
    params.endpoint_slots = True
    params.n_parallel = 4
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [KEY]
    params.cpuparams.n_threads = 1
    params.warmup = False
    if embeddings:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server: Any = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1], embeddings=len(sys.argv) > 2)
