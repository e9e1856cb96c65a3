"""The process that runs llama.cpp on a GGUF file; run as a script, so that it loads the library but nothing of taiwa.

The library is the extension module of xllamacpp, which exports the C API of llama.cpp. The structures below are those of its
pinned version; the default parameters are compared before anything is loaded, so that another layout is refused.

Its argument is JSON: the options of the model and the sockets that are inherited. With `keep` it is one on which it listens, and the
process ends that many seconds after the last connection; else these are two connections, and it ends with either.

A connection is for reading tokens or for tokenizing. A request is a line of JSON, and so is its answer. The first answer on one
for reading is followed by the vocabulary, and comes with a file descriptor: the memory in which the logits are returned.
"""

import ctypes
import json
import mmap
import os
import re
import socket
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import Any

if sys.platform != "win32":
    import resource

BATCH = 512
"""Tokens of one pass."""
MAX_SEQUENCES = 32
MAX_KEPT = 4
"""Sequences that are kept for the next client."""
MAX_RECURRENT_SEQUENCES = 8
"""Each sequence of a recurrent model has a state of its own in memory."""
DEFAULT_CONTEXT = 8192
MIN_CONTEXT = 256
NO_SLOT = 1
"""What `llama_decode` returns if the tokens do not fit into the context."""
UNKNOWN, UNUSED, CONTROL, USER_DEFINED = 1, 2, 8, 16
"""Attributes of a token."""
F16_BYTES = 2
SPARE_BYTES = 64 << 20
SHARD = re.compile(r"(.*-)\d{5}(-of-\d{5}\.gguf)")

FULL_SHARE = 0.9
LOW_SHARE = 0.7
"""Shares of the processor time that the threads wanted and got."""
WATCHED_SECONDS = 0.25
FIRST_RETRY_SECONDS = 2.0
LAST_RETRY_SECONDS = 60.0


class RefusedError(Exception):
    """The file cannot be loaded; the text says why."""


# --- the C API --------------------------------------------------------------------------------------------------------


class ModelParameters(ctypes.Structure):
    """`llama_model_params`."""

    _fields_ = (
        ("devices", ctypes.c_void_p), ("tensor_buft_overrides", ctypes.c_void_p), ("n_gpu_layers", ctypes.c_int32),
        ("split_mode", ctypes.c_int32), ("load_mode", ctypes.c_int32), ("lazy_mode", ctypes.c_int32),
        ("main_gpu", ctypes.c_int32), ("tensor_split", ctypes.c_void_p), ("progress_callback", ctypes.c_void_p),
        ("progress_callback_user_data", ctypes.c_void_p), ("kv_overrides", ctypes.c_void_p), ("vocab_only", ctypes.c_bool),
        ("check_tensors", ctypes.c_bool), ("use_extra_bufts", ctypes.c_bool), ("no_host", ctypes.c_bool),
        ("no_alloc", ctypes.c_bool), ("load_mtp", ctypes.c_bool),
    )  # fmt: skip


class ContextParameters(ctypes.Structure):
    """`llama_context_params`."""

    _fields_ = (
        ("n_ctx", ctypes.c_uint32), ("n_batch", ctypes.c_uint32), ("n_ubatch", ctypes.c_uint32),
        ("n_seq_max", ctypes.c_uint32), ("n_rs_seq", ctypes.c_uint32), ("n_outputs_max", ctypes.c_uint32),
        ("n_outputs_max_per_seq", ctypes.c_uint32), ("n_threads", ctypes.c_int32), ("n_threads_batch", ctypes.c_int32),
        ("ctx_type", ctypes.c_int), ("rope_scaling_type", ctypes.c_int), ("pooling_type", ctypes.c_int),
        ("attention_type", ctypes.c_int), ("flash_attn_type", ctypes.c_int), ("rope_freq_base", ctypes.c_float),
        ("rope_freq_scale", ctypes.c_float), ("yarn_ext_factor", ctypes.c_float), ("yarn_attn_factor", ctypes.c_float),
        ("yarn_beta_fast", ctypes.c_float), ("yarn_beta_slow", ctypes.c_float), ("yarn_orig_ctx", ctypes.c_uint32),
        ("defrag_thold", ctypes.c_float), ("cb_eval", ctypes.c_void_p), ("cb_eval_user_data", ctypes.c_void_p),
        ("type_k", ctypes.c_int), ("type_v", ctypes.c_int), ("moe_cache_size", ctypes.c_size_t),
        ("abort_callback", ctypes.c_void_p), ("abort_callback_data", ctypes.c_void_p), ("embeddings", ctypes.c_bool),
        ("offload_kqv", ctypes.c_bool), ("no_perf", ctypes.c_bool), ("op_offload", ctypes.c_bool),
        ("swa_full", ctypes.c_bool), ("kv_unified", ctypes.c_bool), ("samplers", ctypes.c_void_p),
        ("n_samplers", ctypes.c_size_t), ("ctx_other", ctypes.c_void_p),
    )  # fmt: skip


class Batch(ctypes.Structure):
    """`llama_batch`."""

    _fields_ = (
        ("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embd", ctypes.c_void_p),
        ("pos", ctypes.POINTER(ctypes.c_int32)), ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8)),
    )  # fmt: skip


MODEL_DEFAULTS: Mapping[str, float] = {
    "n_gpu_layers": -1,
    "split_mode": 1,
    "load_mode": -1,
    "lazy_mode": 1,
    "use_extra_bufts": True,
}
CONTEXT_DEFAULTS: Mapping[str, float] = {
    "n_ctx": 512, "n_batch": 2048, "n_ubatch": 512, "n_seq_max": 1, "n_outputs_max_per_seq": 1, "n_threads": 4,
    "n_threads_batch": 4, "rope_scaling_type": -1, "pooling_type": -1, "attention_type": -1, "flash_attn_type": -1,
    "yarn_ext_factor": -1.0, "yarn_attn_factor": -1.0, "yarn_beta_fast": -1.0, "yarn_beta_slow": -1.0,
    "defrag_thold": -1.0, "type_k": 1, "type_v": 1, "offload_kqv": True, "no_perf": True,
    "op_offload": True, "swa_full": True,
}  # fmt: skip
"""The defaults that are not zero; all others are."""

POINTER, TEXT, INT, SIZE, BOOL = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_size_t, ctypes.c_bool
LOGITS = ctypes.POINTER(ctypes.c_float)
LOG_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int, TEXT, POINTER)
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "log_set": (None, (LOG_FUNCTION, POINTER)),
    "backend_init": (None, ()),
    "supports_gpu_offload": (BOOL, ()),
    "model_default_params": (ModelParameters, ()),
    "context_default_params": (ContextParameters, ()),
    "model_load_from_file": (POINTER, (TEXT, ModelParameters)),
    "model_get_vocab": (POINTER, (POINTER,)),
    "model_n_ctx_train": (INT, (POINTER,)),
    "model_n_embd": (INT, (POINTER,)),
    "model_n_layer": (INT, (POINTER,)),
    "model_n_head": (INT, (POINTER,)),
    "model_n_head_kv": (INT, (POINTER,)),
    "model_is_recurrent": (BOOL, (POINTER,)),
    "model_is_hybrid": (BOOL, (POINTER,)),
    "model_has_encoder": (BOOL, (POINTER,)),
    "model_meta_val_str": (INT, (POINTER, TEXT, TEXT, SIZE)),
    "model_chat_template": (TEXT, (POINTER, TEXT)),
    "init_from_model": (POINTER, (POINTER, ContextParameters)),
    "n_ctx": (ctypes.c_uint32, (POINTER,)),
    "get_memory": (POINTER, (POINTER,)),
    "memory_seq_rm": (BOOL, (POINTER, INT, INT, INT)),
    "memory_seq_cp": (None, (POINTER, INT, INT, INT, INT)),
    "state_seq_save_file": (SIZE, (POINTER, TEXT, INT, ctypes.POINTER(INT), SIZE)),
    "state_seq_load_file": (SIZE, (POINTER, TEXT, INT, ctypes.POINTER(INT), SIZE, ctypes.POINTER(SIZE))),
    "set_n_threads": (None, (POINTER, INT, INT)),
    "batch_init": (Batch, (INT, INT, INT)),
    "decode": (INT, (POINTER, Batch)),
    "get_logits_ith": (LOGITS, (POINTER, INT)),
    "vocab_n_tokens": (INT, (POINTER,)),
    "vocab_get_attr": (INT, (POINTER, INT)),
    "vocab_is_eog": (BOOL, (POINTER, INT)),
    "vocab_bos": (INT, (POINTER,)),
    "vocab_eos": (INT, (POINTER,)),
    "vocab_get_add_bos": (BOOL, (POINTER,)),
    "token_to_piece": (INT, (POINTER, INT, TEXT, INT, INT, BOOL)),
    "tokenize": (INT, (POINTER, TEXT, INT, ctypes.POINTER(INT), INT, BOOL, BOOL)),
}


def load_library() -> Callable[[str], Any]:
    """Return the functions of llama.cpp by their names without `llama_`.

    Raises:
        RefusedError: the build is not the one that this file is written for.
    """
    found = find_spec("xllamacpp")
    files = sorted(Path(found.origin).parent.glob("xllamacpp*.so")) if found and found.origin else []
    if not files:
        raise ModuleNotFoundError(name="xllamacpp")
    library = ctypes.CDLL(str(files[0]))
    functions: dict[str, Any] = {}
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, f"llama_{name}")
        except AttributeError:
            raise RefusedError(
                f"this build of xllamacpp has no llama_{name}; install the version that the extra gguf names"
            ) from None
        function.restype, function.argtypes = result, arguments
        functions[name] = function
    check_defaults(functions["model_default_params"](), MODEL_DEFAULTS)
    check_defaults(functions["context_default_params"](), CONTEXT_DEFAULTS)
    return functions.__getitem__


def check_defaults(parameters: ctypes.Structure, expected: Mapping[str, float]) -> None:
    """Check that a structure of default parameters has the known layout."""
    for name, *_ in type(parameters)._fields_:
        value = getattr(parameters, name) or 0
        # The structures are written by hand: a field that was added or moved would be read at a wrong place, silently.
        if value != expected.get(name, 0):
            raise RefusedError(
                f"this build of xllamacpp has other parameters ({name} is {value}); install the version that the extra gguf names"
            )


# --- threads ----------------------------------------------------------------------------------------------------------


class Threads:
    """How many threads read tokens: as many as there are free processors, or a fixed number.

    The threads of llama.cpp wait for each other actively, so that one of them without a processor makes all slow. While they
    get clearly less processor time than they want, there is one fewer; while they get all of it, one more is tried from time
    to time.
    """

    def __init__(self, fixed: int) -> None:
        self.most = min(fixed or sys.maxsize, processors())
        self.count = self.most if fixed else max(1, self.most - round(os.getloadavg()[0]))
        self._fixed = fixed > 0
        self._wall = self._used = self._calm = 0.0
        self._retry = FIRST_RETRY_SECONDS

    def note(self, wall: float, used: float) -> bool:
        """Note the time of a pass, and the processor time that it got; return whether the number of threads changes."""
        if self._fixed or self.most == 1:
            return False
        self._wall += wall
        self._used += used
        if self._wall < WATCHED_SECONDS:
            return False
        share, self._calm = self._used / self._wall / self.count, self._calm + self._wall
        self._wall = self._used = 0.0
        if share < LOW_SHARE and self.count > 1:
            self.count, self._calm = self.count - 1, 0.0
            # Each attempt to have one more costs a slow pass where the load stays.
            self._retry = min(self._retry * 2, LAST_RETRY_SECONDS)
            return True
        if share >= FULL_SHARE and self.count < self.most and self._calm >= self._retry:
            self.count, self._calm = self.count + 1, 0.0
            return True
        return False


def processors() -> int:
    """Return how many processors this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        count = min(count, max(1, int(quota) // int(period)))
    except (OSError, ValueError):  # no limit
        pass
    return count


# --- the model --------------------------------------------------------------------------------------------------------


class Sequence:
    """Tokens that were read, and their place in the memory of llama.cpp; without a place they must be read again."""

    __slots__ = ("place", "tokens", "used")

    def __init__(self) -> None:
        self.place = -1
        self.tokens: list[int] = []
        self.used = 0


class Client:
    """The sequences of one client by their numbers, and the memory in which it gets logits."""

    def __init__(self, size: int) -> None:
        self.sequences: dict[int, Sequence] = {}
        self.file, self.logits = shared_memory(size)

    def close(self) -> None:
        """Close the file; the memory is freed with the object."""
        os.close(self.file)


class Llama:
    """A model, its context, and the sequences in it.

    A sequence loses its place to one that is read when there is no room; its owner is told how many tokens are left.
    """

    def __init__(self, call: Callable[[str], Any], options: dict[str, Any]) -> None:
        self.call = call
        self.options = options
        self.threads = Threads(options["threads"])
        parameters = call("model_default_params")()
        if options["layers"] >= 0:
            parameters.n_gpu_layers = options["layers"]
        self.on_processor = options["layers"] == 0 or not call("supports_gpu_offload")()
        size = file_size(Path(options["file"]))
        free = options["memory"] if self.on_processor else None
        if free is not None and size > free:
            raise RefusedError(
                f"it needs {size / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free; choose a smaller file"
            )
        self.model = call("model_load_from_file")(os.fsencode(options["file"]), parameters)
        if not self.model:
            raise RefusedError("it is broken or not complete, or of a kind that this llama.cpp does not know")
        if call("model_has_encoder")(self.model):
            raise RefusedError("models with an encoder are not supported")
        self.vocabulary = call("model_get_vocab")(self.model)
        self.size = call("vocab_n_tokens")(self.vocabulary)
        recurrent = call("model_is_recurrent")(self.model) or call("model_is_hybrid")(self.model)
        self.places = MAX_RECURRENT_SEQUENCES if recurrent else MAX_SEQUENCES
        self.limit = self.choose_context(size, free)
        self.context = self.make_context()
        self.memory = call("get_memory")(self.context)
        self.batch = call("batch_init")(BATCH, 0, 1)
        self.free = list(range(self.places))
        self.clients: list[Client] = []
        self.kept: list[Sequence] = []
        """Sequences of clients that are gone, the last ones first."""
        self.clock = 0
        self.lock = Lock()

    def choose_context(self, size: int, free: int | None) -> int:
        """Return the number of tokens of the context: what was asked for, or what the model and the memory allow."""
        stated = self.call("model_n_ctx_train")(self.model)
        longest = stated if stated > 0 else DEFAULT_CONTEXT
        asked = self.options["context"]
        if asked > longest:
            raise RefusedError(f"it reads at most {longest:,} tokens; use context={longest} or less")
        wanted = asked or min(longest, DEFAULT_CONTEXT)
        if free is None:  # layers are on a GPU, whose memory is not known here
            return int(wanted)
        each = self.bytes_per_token()
        # The buffers of a pass grow with the width of the model; those of the weights are in the file.
        spare = free - size - SPARE_BYTES - BATCH * self.call("model_n_embd")(self.model) * 64
        fits = spare // each // MIN_CONTEXT * MIN_CONTEXT if each else wanted
        if fits >= wanted:
            return int(wanted)
        if fits < MIN_CONTEXT:
            raise RefusedError(
                f"it needs {(size + wanted * each) / 1e9:.1f} GB of memory with a context of {wanted:,} tokens, and "
                f"{free / 1e9:.1f} GB are free; choose a smaller file"
            )
        if asked:
            raise RefusedError(
                f"a context of {asked:,} tokens needs {asked * each / 1e9:.1f} GB of memory beside the {size / 1e9:.1f} GB of "
                f"the file, and {free / 1e9:.1f} GB are free; context={fits} fits"
            )
        return int(fits)

    def bytes_per_token(self) -> int:
        """Return the size of the keys and values of a token."""
        kind = self.metadata("general.architecture")
        heads, width = self.call("model_n_head")(self.model), self.call("model_n_embd")(self.model)
        usual = width // max(heads, 1)
        widths = [self.metadata(f"{kind}.attention.{part}_length") for part in ("key", "value")]
        both = sum(int(each) if each.isdecimal() else usual for each in widths)
        return int(self.call("model_n_layer")(self.model) * self.call("model_n_head_kv")(self.model) * both * F16_BYTES)

    def metadata(self, key: str) -> str:
        """Return a value of the file as text; empty if it has none."""
        buffer = ctypes.create_string_buffer(256)
        length = self.call("model_meta_val_str")(self.model, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if length >= 0 else ""

    def make_context(self) -> int:
        parameters = self.call("context_default_params")()
        parameters.n_ctx = self.limit
        parameters.n_batch = parameters.n_ubatch = BATCH
        parameters.n_seq_max = parameters.n_outputs_max = self.places
        parameters.n_threads = parameters.n_threads_batch = self.threads.count
        parameters.kv_unified = True  # sequences share the context: a single one may use all of it
        context: int | None = self.call("init_from_model")(self.model, parameters)
        if not context:
            raise RefusedError(
                f"there is no memory for a context of {self.limit:,} tokens; choose a smaller one, as in ?context=2048"
            )
        return context

    def describe(self) -> dict[str, Any]:
        """Return what the other end must know beside the vocabulary."""
        call, special = self.call, {}
        for name in ("bos", "eos"):
            special[name] = call(f"vocab_{name}")(self.vocabulary)
        template = call("model_chat_template")(self.model, None)
        return {
            "process": os.getpid(), "size": self.size, "rows": self.places, "context": self.limit, "threads": self.threads.count, **special,
            "add_bos": call("vocab_get_add_bos")(self.vocabulary),
            "template": template.decode("utf-8", "replace") if template else "",
        }  # fmt: skip

    def pieces(self) -> bytes:
        """Return the lengths, whether special (1) or found in any text (2), whether an end, and the bytes of all tokens, one
        after the other.

        The bytes of a special token are its name.
        """
        piece, attribute, ends = self.call("token_to_piece"), self.call("vocab_get_attr"), self.call("vocab_is_eog")
        lengths, special, end, data = array("I"), bytearray(self.size), bytearray(self.size), bytearray()
        buffer: ctypes.Array[ctypes.c_char] = ctypes.create_string_buffer(1 << 16)
        for token in range(self.size):
            attributes = attribute(self.vocabulary, token)
            is_special = attributes & (UNKNOWN | UNUSED | CONTROL) != 0
            special[token] = 1 if is_special else 2 if attributes & USER_DEFINED else 0
            end[token] = ends(self.vocabulary, token)
            length = max(piece(self.vocabulary, token, buffer, len(buffer), 0, is_special), 0)
            lengths.append(length)
            data += ctypes.string_at(buffer, length)
        return lengths.tobytes() + bytes(special) + bytes(end) + bytes(data)

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Return the tokens of a text."""
        data = text.encode("utf-8", "replace")
        room = len(data) + 16
        found = (ctypes.c_int32 * room)()
        count = self.call("tokenize")(self.vocabulary, data, len(data), found, room, False, special)
        return found[:count]

    # --- sequences ---

    def answer(self, client: "Client", request: dict[str, Any]) -> dict[str, Any]:
        """Perform a request on the sequences of a client."""
        with self.lock:
            for number in request.get("drop", ()):
                if (dropped := client.sequences.pop(number, None)) is not None:
                    self.release(dropped)
            if "fork" in request:
                return self.fork(client, *request["fork"])
            if "read" in request:
                return self.read(client, request["read"], wants_logits=request["logits"])
            if "save" in request:
                return {"done": self.save(client, *request["save"])}
            if "load" in request:
                return {"done": self.load(client, *request["load"])}
            return {}

    def join(self) -> "Client":
        """Return a new client, which has copies of the kept sequences under negative numbers."""
        with self.lock:
            client = Client(self.places * self.size * 4)
            for number, source in enumerate(self.kept, 1):
                copy = client.sequences.setdefault(-number, Sequence())
                self.copy(source, copy, len(source.tokens))
            self.clients.append(client)
            return client

    def leave(self, client: "Client") -> None:
        """Keep the last sequences of a client that is gone, and release the others."""
        with self.lock:
            self.clients.remove(client)
            own = [each for each in client.sequences.values() if each.place >= 0]
            found: list[Sequence] = []
            for each in sorted([*self.kept, *own], key=lambda each: each.used, reverse=True):
                is_begun = any(longer.tokens[: len(each.tokens)] == each.tokens for longer in found)
                if len(found) < MAX_KEPT and not is_begun and each.place >= 0:
                    found.append(each)
                else:
                    self.release(each)
            self.kept = found
            client.close()

    def release(self, sequence: Sequence) -> None:
        """Take the place of a sequence in memory."""
        if sequence.place >= 0:
            self.call("memory_seq_rm")(self.memory, sequence.place, -1, -1)
            self.free.append(sequence.place)
        sequence.place, sequence.tokens = -1, []

    def reclaim(self, kept: list[Sequence]) -> bool:
        """Release the sequence that was not used for longest; return whether there is one beside those that are kept."""
        of_clients = (each for client in self.clients for each in client.sequences.values())
        others = [each for each in (*self.kept, *of_clients) if each.place >= 0 and each not in kept]
        if not others:
            return False
        self.release(min(others, key=lambda each: each.used))
        return True

    def settle(self, sequence: Sequence, kept: list[Sequence]) -> bool:
        """Give a sequence a place in memory; return whether there is one."""
        while sequence.place < 0 and not self.free:
            if not self.reclaim(kept):
                return False
        if sequence.place < 0:
            sequence.place = self.free.pop()
        self.clock += 1
        sequence.used = self.clock
        return True

    def fork(self, client: "Client", old: int, new: int, count: int) -> dict[str, Any]:
        """Copy the first tokens of a sequence."""
        if (source := client.sequences.get(old)) is not None:
            self.copy(source, client.sequences.setdefault(new, Sequence()), count)
        return {}

    def copy(self, source: Sequence, copy: Sequence, count: int) -> None:
        """Copy the first tokens of a sequence; they share their place in memory."""
        if source.place >= 0 and self.settle(copy, [source, copy]):
            self.call("memory_seq_cp")(self.memory, source.place, copy.place, -1, -1)
            copy.tokens = list(source.tokens)
            self.cut(copy, count)

    def save(self, client: "Client", number: int, count: int, path: str) -> bool:
        """Write the first tokens of a sequence, and what was computed of them, to a file; return whether that was possible."""
        source, copy = client.sequences.get(number), Sequence()
        if source is None:
            return False
        self.copy(source, copy, count)
        tokens = (INT * count)(*copy.tokens)
        written = len(copy.tokens) == count and self.call("state_seq_save_file")(
            self.context, os.fsencode(path), copy.place, tokens, count
        )
        self.release(copy)
        return bool(written)

    def load(self, client: "Client", number: int, tokens: list[int], path: str) -> bool:
        """Make a sequence of a file that `save` wrote; return whether it holds these tokens."""
        sequence, count = client.sequences.setdefault(number, Sequence()), ctypes.c_size_t()
        if not self.settle(sequence, [sequence]):
            return False
        found = (INT * len(tokens))()
        read = self.call("state_seq_load_file")(
            self.context, os.fsencode(path), sequence.place, found, len(tokens), ctypes.byref(count)
        )
        if read and found[: count.value] == tokens:
            sequence.tokens = tokens
            return True
        self.release(sequence)
        return False

    def cut(self, sequence: Sequence, count: int) -> None:
        """Remove the tokens behind the first ones; all of them if the memory of the model cannot go back."""
        if len(sequence.tokens) <= count:
            return
        # A recurrent state holds all tokens at once and cannot drop the last ones.
        if self.call("memory_seq_rm")(self.memory, sequence.place, count, -1):
            del sequence.tokens[count:]
        else:
            self.call("memory_seq_rm")(self.memory, sequence.place, -1, -1)
            sequence.tokens = []

    def read(self, client: "Client", parts: list[tuple[int, int, list[int]]], *, wants_logits: bool) -> dict[str, Any]:
        """Read tokens at a place of each sequence; the logits after the last token of each are left in the shared memory.

        If a sequence has fewer tokens than the place says, nothing is read, and the numbers are returned as `have`.
        """
        chosen = [client.sequences.setdefault(number, Sequence()) for number, _, _ in parts]
        for sequence, (_, at, _) in zip(chosen, parts, strict=True):
            if not self.settle(sequence, chosen):
                return {"full": True}
            self.cut(sequence, at)
        have = [len(sequence.tokens) for sequence in chosen]
        if any(count < at for count, (_, at, _) in zip(have, parts, strict=True)):
            return {"have": have}
        flat = [
            (row, token, at + offset, wants_logits and offset == len(tokens) - 1)
            for row, (_, at, tokens) in enumerate(parts)
            for offset, token in enumerate(tokens)
        ]
        for start in range(0, len(flat), BATCH):
            if not self.decode(client, flat[start : start + BATCH], chosen):
                return {"full": True}
        return {"threads": self.threads.count}

    def decode(self, client: "Client", part: list[tuple[int, int, int, bool]], chosen: list[Sequence]) -> bool:
        """Read tokens of several sequences in one pass; return whether there was room."""
        batch = self.batch
        batch.n_tokens = len(part)
        for index, (row, token, position, wanted) in enumerate(part):
            batch.token[index], batch.pos[index], batch.logits[index] = token, position, wanted
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = chosen[row].place
        while True:
            wall, used = time.perf_counter(), time.process_time()
            code = self.call("decode")(self.context, batch)
            if code == 0:
                break
            if code != NO_SLOT:
                raise RuntimeError(f"llama_decode returned {code}")
            if not self.reclaim(chosen):
                return False
        for index, (row, token, _, wanted) in enumerate(part):
            chosen[row].tokens.append(token)
            if wanted:
                row_bytes = self.size * 4
                found = self.call("get_logits_ith")(self.context, index)
                ctypes.memmove(ctypes.addressof(client.logits) + row * row_bytes, found, row_bytes)
        if self.threads.note(time.perf_counter() - wall, time.process_time() - used):
            self.call("set_n_threads")(self.context, self.threads.count, self.threads.count)
        return True


def file_size(file: Path) -> int:
    """Return the bytes of a file, or of all parts of one that is divided."""
    divided = SHARD.fullmatch(file.name)
    parts = file.parent.glob(f"{divided[1]}*{divided[2]}") if divided else (file,)
    return sum(part.stat().st_size for part in parts)


def shared_memory(size: int) -> tuple[int, Any]:
    """Return a file without a name, and its bytes in memory."""
    # Logits of a large vocabulary take a megabyte a token: too much for JSON over a socket.
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("logits")
    else:
        with tempfile.TemporaryFile() as opened:
            file = os.dup(opened.fileno())
    os.ftruncate(file, size)
    return file, (ctypes.c_char * size).from_buffer(mmap.mmap(file, size))


# --- requests ---------------------------------------------------------------------------------------------------------


def send(connection: socket.socket, number: int, answer: dict[str, Any]) -> None:
    """Send an answer."""
    connection.sendall(json.dumps({"id": number, **answer}).encode() + b"\n")


class Service:
    """Serves a model, or the reason why there is none."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.failure: dict[str, Any] = {}
        try:
            call = load_library()
            self.log = LOG_FUNCTION(write_log)  # must live as long as the library
            call("log_set")(self.log, None)
            call("backend_init")()
            self.model = Llama(call, options)
            self.described, self.pieces = self.model.describe(), self.model.pieces()
        except ImportError as error:
            self.failure = {"missing": error.name or "xllamacpp"}
        except (RefusedError, OSError, MemoryError) as error:
            self.failure = {"refused": str(error) or type(error).__name__}

    def serve(self, connection: socket.socket) -> None:
        """Answer the requests of a connection until its other end is gone; the first one says what it is for."""
        with connection, suppress(OSError):
            lines = connection.makefile("rb")
            if not (first := lines.readline()):
                return
            hello = json.loads(first)
            if self.failure:
                send(connection, hello["id"], self.failure)
            elif hello["for"] == "reading":
                self.serve_reading(connection, lines, hello["id"])
            elif hello["for"] == "tokenizing":
                send(connection, hello["id"], {})
                self.answer(connection, lines, self.tokenize)
            else:
                os._exit(0)

    def serve_reading(self, connection: socket.socket, lines: Iterable[bytes], number: int) -> None:
        """Describe the model, and answer requests on sequences."""
        client = self.model.join()
        try:
            kept = [(place, each.tokens) for place, each in client.sequences.items()]
            described = {"id": number, **self.described, "vocabulary": len(self.pieces), "kept": kept}
            header = json.dumps(described).encode() + b"\n"
            socket.send_fds(connection, [header[:1]], [client.file])
            connection.sendall(header[1:] + self.pieces)
            self.answer(connection, lines, partial(self.model.answer, client))
        finally:
            self.model.leave(client)

    def answer(
        self, connection: socket.socket, lines: Iterable[bytes], perform: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> None:
        for line in lines:
            request = json.loads(line)
            send(connection, request["id"], perform(request))

    def tokenize(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the tokens of a text."""
        return {"tokens": self.model.tokenize(request["text"], special=request["special"])}

    def listen(self, listener: socket.socket, path: Path, seconds: float) -> None:
        """Serve all connections, until there has not been one for some seconds."""
        threads: list[Thread] = []
        last = time.monotonic()
        listener.settimeout(min(seconds, 1.0))
        while time.monotonic() - last < (1.0 if self.failure else seconds):
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                connection.setblocking(True)
                threads.append(Thread(target=self.serve, args=(connection,), daemon=True))
                threads[-1].start()
            threads = [each for each in threads if each.is_alive()]
            if threads:
                last = time.monotonic()
        path.unlink(missing_ok=True)


def write_log(level: int, text: bytes | None, _: object) -> None:
    """Write what is a warning or worse to standard error."""
    if text and level >= WARNING:
        with suppress(OSError):
            os.write(2, text)


def serve_and_exit(service: Service, connection: socket.socket) -> None:
    """Serve, and end the process when the other end is gone, whatever else it is doing."""
    service.serve(connection)
    os._exit(0)


def main() -> None:
    """Serve the two sockets that are inherited, or all who connect to a third."""
    os.dup2(2, 1)  # llama.cpp writes to standard output as well
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["GGML_NO_BACKTRACE"] = "1"  # abort() would start gdb
    options = json.loads(sys.argv[1])
    if options["keep"] and os.fork():  # the program that starts it does not wait for it
        os._exit(0)
    sockets = [socket.socket(fileno=number) for number in options["sockets"]]
    service = Service(options)
    if options["keep"]:
        service.listen(sockets[0], Path(options["path"]), options["keep"])
        os._exit(0)
    Thread(target=serve_and_exit, args=(service, sockets[1]), daemon=True).start()
    serve_and_exit(service, sockets[0])


WARNING = 3
"""The level of the log from which lines are kept."""

if __name__ == "__main__":
    main()
