"""llama.cpp as a backend of the decode loop: the process beside this one that runs it, its sequences and its tokenizer."""

import json
import mmap
import os
import re
import signal
import socket
import subprocess
import sys
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import count
from pathlib import Path
from tempfile import gettempdir
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.extras import missing_extra, require_posix
from taiwa.isolation import environment_without_secrets
from taiwa.kernel.errors import ConfigError, InputError, ModelError, file_errors
from taiwa.models.inprocess.chat_template import CONTROL_FORM, Tokenizer, names_pattern
from taiwa.settings import check_own

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from taiwa.models.inprocess.decode_loop import Logits, Rows

PROCESS_SCRIPT = Path(__file__).with_name("gguf_process.py")
PIECE = 128
"""Tokens of a prompt that are read at a time: reading can be ended and reported after each piece."""
END_SECONDS = 3.0
SOCKET = ".sock"
MAX_SOCKET_FOLDER = 80
MAX_WAITING = 16
MAX_LOG_LINES = 400
LOG_STAMP = re.compile(r"^[\d.:]+ (?:[A-Z] )?")
ERROR_WORDS = re.compile(r"error|fail|abort|invalid|unable|cannot|out of memory", re.IGNORECASE)

T = TypeVar("T")


class LlamaProcess:
    """A process that runs llama.cpp on one file, from the construction of the object until `close` or the end of this process.

    With `keep`, a number of seconds, it outlives both for so long, and the next program connects to it.

    Raises:
        ConfigError: the extra is not installed, or llama.cpp cannot load the file.
    """

    def __init__(self, file: Path, name: str, options: Mapping[str, int | None], keep: int = 0) -> None:
        self.name = name
        self._log: deque[str] = deque(maxlen=MAX_LOG_LINES)
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._connections: tuple[_Connection, ...] = ()
        self._kept_log: Path | None = None
        given = {**options, "file": str(file.resolve()), "keep": keep}
        try:
            for is_last in (False, True) if keep else (True,):
                try:
                    self._open(given)
                    self.described = self._greet(file)
                    break
                except (EOFError, OSError):  # a kept process may have ended just now
                    if is_last:
                        raise
        except (EOFError, OSError):
            reason = self.exit_reason()
            self.close()
            raise ConfigError(f"llama.cpp cannot load {file}: {reason}") from None
        except BaseException:
            self.close()
            raise

    def _open(self, given: dict[str, Any]) -> None:
        require_posix("a model in a GGUF file")
        if not given["keep"]:
            ends = [socket.socketpair(), socket.socketpair()]
            self._connections = tuple(_Connection(ours) for ours, _ in ends)
            self._process = _start([theirs for _, theirs in ends], given, subprocess.PIPE)
            weakref.finalize(self, _kill, self._process, self._owner)
            self._logger = Thread(target=_keep_log, args=(self._process, self._log), daemon=True)
            self._logger.start()
            return
        options = (given[option] for option in ("context", "threads", "layers", "keep"))
        place = runtime_folder() / f"{file_key(Path(given['file']), *options)}{SOCKET}"
        self._kept_log = place.with_suffix(".log")
        with place.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            connected = [_connect(place), _connect(place)]
            if None in connected:
                place.unlink(missing_ok=True)
                with socket.socket(socket.AF_UNIX) as listener, self._kept_log.open("wb") as log:
                    listener.bind(str(place))
                    place.chmod(0o600)
                    listener.listen(MAX_WAITING)
                    _start([listener], {**given, "path": str(place)}, log.fileno()).wait()  # it detaches itself
                connected = [_connect(place), _connect(place)]
        self._connections = tuple(_Connection(each) for each in connected if each is not None)

    def _greet(self, file: Path) -> Mapping[str, Any]:
        reading, tokenizing = self._connections
        answer = reading.request({"for": "reading"}, with_file=True)
        if "missing" in answer:
            raise missing_extra("a model in a GGUF file", "gguf")
        if "refused" in answer:
            error = self._first_error()
            raise ConfigError(f"llama.cpp cannot load {file}: {answer['refused']}{f' ({error})' if error else ''}")
        size, rows = int(answer["size"]), int(answer["rows"])
        with os.fdopen(reading.received_file(), "rb") as shared:
            memory = mmap.mmap(shared.fileno(), rows * size * 4, access=mmap.ACCESS_READ)
        self._logits = np.frombuffer(memory, dtype=np.float32).reshape(rows, size)
        self.pieces = reading.receive(int(answer["vocabulary"]))
        self.threads = int(answer["threads"])
        """The number of threads that read tokens now."""
        tokenizing.request({"for": "tokenizing"})
        return answer

    @property
    def is_usable(self) -> bool:
        """Whether the process runs and belongs to this one, which a fork of its starter does not."""
        if self._owner != os.getpid():
            return False
        return self._connections[0].is_open if self._process is None else self._process.poll() is None

    def read(
        self, request: Mapping[str, Any], rows: "Sequence[Rows | None]"
    ) -> "tuple[Mapping[str, Any], list[Logits]]":
        """Perform a request on sequences, and return its answer with the logits of the first ones: of `rows`, or (V,).

        Raises:
            ModelError: the process has ended.
        """
        # The memory belongs to the next request, which may come from another thread.
        answer, logits = self._request(
            0,
            request,
            lambda: [each.copy() if few is None else each[few] for each, few in zip(self._logits, rows, strict=False)],
        )
        self.threads = answer.get("threads", self.threads)
        return answer, logits

    def tokenize(self, text: str, *, special: bool) -> tuple[int, ...]:
        """Return the tokens of a text; names of special tokens become these tokens if they are `special`.

        Raises:
            ModelError: the process has ended.
        """
        return tuple(self._request(1, {"text": text, "special": special}, lambda: None)[0]["tokens"])

    def _request(self, which: int, request: Mapping[str, Any], then: Callable[[], T]) -> tuple[dict[str, Any], T]:
        connection = self._connections[which]
        try:
            if self._owner != os.getpid():
                raise EOFError
            with connection.lock:
                return connection.request(request), then()
        except (EOFError, OSError):
            how = "it belongs to the process that forked this one"
            if self._owner == os.getpid():
                how = self.exit_reason()
                for each in self._connections:  # its other socket may look open for a moment
                    each.close()
            raise ModelError(f"the llama.cpp process of {self.name} has ended: {how}") from None

    def exit_reason(self) -> str:
        """Describe how the process ended and the first error in its log."""
        if self._process is None:
            error = self._first_error()
            return f"its log: {error}" if error else "its log names no error"
        try:
            code = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return "it does not answer"
        how = f"it crashed with {signal.Signals(-code).name}" if code < 0 else f"it ended with code {code}"
        if code == -signal.SIGKILL:
            how = "it was killed, probably for lack of memory; choose a smaller file or context"
        error = self._first_error()
        return f"{how}; its log: {error}" if error else how

    def _first_error(self) -> str:
        """Return the first line of the log that reports an error; later ones are mostly consequences."""
        if self._process is not None:
            self._logger.join(END_SECONDS)
        elif self._kept_log is not None:
            with suppress(OSError):
                self._log.extend(self._kept_log.read_text("utf-8", "replace").splitlines())
        lines = (LOG_STAMP.sub("", line).strip() for line in self._log)
        return next((line[:200] for line in lines if ERROR_WORDS.search(line)), "")

    def close(self) -> None:
        """End the process at once, since nothing in it needs saving; one that is kept is left."""
        for connection in self._connections:
            connection.close()
        if self._process is not None:
            _kill(self._process, self._owner)


def _start(sockets: Sequence[socket.socket], given: Mapping[str, Any], errors: int) -> subprocess.Popen[bytes]:
    handles = [each.fileno() for each in sockets]
    is_kept = bool(given["keep"])
    process = subprocess.Popen(
        # -P: do not import from the folder of the script.
        [sys.executable, "-P", str(PROCESS_SCRIPT), json.dumps({**given, "sockets": handles})],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, pass_fds=handles,
        # An interrupt at the terminal does not reach it. In a session of its own it would compete with its program for the processor.
        start_new_session=is_kept, process_group=None if is_kept else 0, env=environment_without_secrets(), cwd="/",
    )  # fmt: skip
    for each in sockets:
        each.close()
    return process


# --- processes that are kept ------------------------------------------------------------------------------------------


def runtime_folder() -> Path:
    """Return the folder of the sockets of kept processes, which only this user can open.

    Raises:
        ConfigError: it cannot be made.
    """
    own = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(own) / "taiwa" / "loaded"
    if len(str(folder)) > MAX_SOCKET_FOLDER:  # the address of a socket has 108 bytes at most
        folder = Path(gettempdir()) / f"taiwa-{os.getuid()}"
    with file_errors(f"keep a model loaded in {folder}"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_own(folder)
    return folder


def file_key(file: Path, *options: str | int | None) -> str:
    """Return a name for what a process computes: from the file as it is now, with these options, by this code."""
    facts = file.stat()
    described = [str(file.resolve()), facts.st_size, facts.st_mtime_ns, facts.st_ino, PROCESS_SCRIPT.read_text("utf-8")]
    return blake2b(json.dumps([*described, *options]).encode(), digest_size=8).hexdigest()


def _connect(place: Path) -> socket.socket | None:
    connected = socket.socket(socket.AF_UNIX)
    try:
        connected.connect(str(place))
    except OSError:
        connected.close()
        return None
    return connected


def stop_kept() -> int:
    """End all kept processes, whatever they are doing; return their number."""
    stopped = 0
    for place in sorted(runtime_folder().glob(f"*{SOCKET}")):
        if (connected := _connect(place)) is not None:
            connection = _Connection(connected)
            with suppress(EOFError, OSError):
                connection.request({"for": "stopping"})
            connection.close()
            stopped += 1
        place.unlink(missing_ok=True)
    return stopped


def _kill(process: subprocess.Popen[bytes], owner: int) -> None:
    if owner == os.getpid():
        process.kill()
        process.wait()


def _keep_log(process: subprocess.Popen[bytes], log: deque[str]) -> None:
    assert process.stderr is not None
    with process.stderr as lines:
        for line in lines:
            log.append(line.decode("utf-8", "replace").rstrip())


class _Connection:
    """One end of a socket: requests and answers are lines of JSON.

    A request whose caller was interrupted is still answered; its answer is skipped by the number that it repeats.
    """

    def __init__(self, connected: socket.socket) -> None:
        self.lock = Lock()
        self._socket = connected
        self._numbers = count(1)
        self._received = bytearray()
        self._files: list[int] = []

    def request(self, message: Mapping[str, Any], *, with_file: bool = False) -> dict[str, Any]:
        """Send a request and return its answer.

        Raises:
            EOFError, OSError: the other end is gone.
        """
        number = next(self._numbers)
        try:
            self._socket.sendall(json.dumps({"id": number, **message}).encode() + b"\n")
        except BaseException:  # a part of the line may have been sent
            self.close()
            raise
        while True:
            while (end := self._received.find(b"\n")) < 0:
                self._receive_more(with_file=with_file)
            answer: dict[str, Any] = json.loads(self._received[:end])
            del self._received[: end + 1]
            if answer["id"] == number:
                return answer

    def receive(self, size: int) -> bytes:
        """Return the next bytes."""
        while len(self._received) < size:
            self._receive_more()
        data = bytes(self._received[:size])
        del self._received[:size]
        return data

    def received_file(self) -> int:
        """Return the file descriptor that came with the last answer."""
        return self._files.pop()

    def _receive_more(self, *, with_file: bool = False) -> None:
        if with_file:
            data, files, _, _ = socket.recv_fds(self._socket, 1 << 16, 1)
            self._files += files
        else:
            data = self._socket.recv(1 << 20)
        if not data:
            raise EOFError
        self._received += data

    @property
    def is_open(self) -> bool:
        """Whether the other end is still there."""
        try:
            return self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        with suppress(OSError):
            self._socket.close()


# --- the backend ------------------------------------------------------------------------------------------------------


class GgufNetwork:
    """A model of llama.cpp; see `taiwa.models.inprocess.decode_loop.Backend`."""

    piece = PIECE

    def __init__(self, process: LlamaProcess, vocabulary: Vocabulary) -> None:
        self.process = process
        self.vocabulary = vocabulary
        self.context = int(process.described["context"])
        self.most_sequences = int(process.described["rows"])
        self.numbers = count(1)
        self.dropped: deque[int] = deque()
        """Sequences that are not needed any more; a finalizer appends them, which may run anywhere and must not wait."""

    def start(self) -> "GgufSequence":
        """Return an empty sequence."""
        return GgufSequence(self)

    def kept(self) -> "list[GgufSequence]":
        """Return the sequences that an earlier program left, the last one first; they can be taken once."""
        return [GgufSequence(self, number, tokens) for number, tokens in self.process.described["kept"]]

    def fork(self, old: "GgufSequence", new: "GgufSequence") -> None:
        """Make one sequence begin as another."""
        self._perform({"fork": (old.number, new.number, len(old.tokens))})

    def save(self, sequence: "GgufSequence", count: int, path: Path) -> bool:
        """Write the first tokens of a sequence, and what was computed of them, to a file; return whether that was possible."""
        return bool(self._perform({"save": (sequence.number, count, str(path))})[0]["done"])

    def load(self, tokens: Sequence[int], path: Path) -> "GgufSequence | None":
        """Return a sequence of a file that `save` wrote; None if it cannot be used, or holds other tokens."""
        sequence = GgufSequence(self)
        if not self._perform({"load": (sequence.number, list(tokens), str(path))})[0]["done"]:
            return None
        sequence.tokens = list(tokens)
        return sequence

    def read(
        self, sequences: "Sequence[GgufSequence]", tokens: Sequence[Sequence[int]], rows: "Sequence[Rows | None]"
    ) -> "list[Logits]":
        """Read tokens of several sequences in common passes, and return the logits after the last one of each.

        Raises:
            ModelError: they do not fit into the context, or the process has ended.
        """
        for _ in range(2):
            parts = [(each.number, len(each.tokens), list(more)) for each, more in zip(sequences, tokens, strict=True)]
            answer, logits = self._perform({"read": parts, "logits": True}, rows)
            if "have" not in answer:
                for each, more in zip(sequences, tokens, strict=True):
                    each.tokens.extend(more)
                return logits
            for each, there in zip(sequences, answer["have"], strict=True):
                for start in range(there, len(each.tokens), PIECE):
                    again = each.tokens[start : start + PIECE]
                    self._perform({"read": [(each.number, start, again)], "logits": False})
        raise self._full()

    def _perform(
        self, request: dict[str, Any], rows: "Sequence[Rows | None]" = ()
    ) -> "tuple[Mapping[str, Any], list[Logits]]":
        drop: list[int] = []
        with suppress(IndexError):  # another thread may take the last one
            while self.dropped:
                drop.append(self.dropped.popleft())
        answer, logits = self.process.read({**request, "drop": drop}, rows)
        if answer.get("full"):
            raise self._full()
        return answer, logits

    def _full(self) -> ModelError:
        return ModelError(
            f"the context of {self.process.name}, {self.context:,} tokens for all answers that are written together, is full; "
            "ask for fewer at a time, or for a larger one, as in ?context=16384"
        )


class GgufSequence:
    """A text that llama.cpp has read; see `taiwa.models.inprocess.decode_loop.TokenSequence`.

    What the process does not hold any more, or never could go back to, is read again.
    """

    def __init__(self, network: GgufNetwork, number: int = 0, tokens: Sequence[int] = ()) -> None:
        self._network = network
        self.number = number or next(network.numbers)
        self.tokens: list[int] = list(tokens)
        weakref.finalize(self, network.dropped.append, self.number).atexit = False

    def read(self, tokens: Sequence[int], rows: "Rows | None" = None) -> "Logits":
        """Read more tokens and return the logits after the last."""
        return self._network.read([self], [tokens], [rows])[0]

    def rollback(self, count: int) -> None:
        """Remove the last tokens; the next `read` says where it continues."""
        if count:
            del self.tokens[-count:]

    def fork(self) -> "GgufSequence":
        """Return a copy that can be continued independently."""
        other = GgufSequence(self._network)
        self._network.fork(self, other)
        other.tokens = list(self.tokens)
        return other

    def batch(self, count: int) -> "GgufBatch | None":
        """Return `count` copies; None if there is not room for all of them."""
        if count >= self._network.most_sequences:
            return None
        return GgufBatch(self._network, [self.fork() for _ in range(count)])


class GgufBatch:
    """Copies of one text that are continued in common passes; see `taiwa.models.inprocess.decode_loop.SequenceBatch`."""

    def __init__(self, network: GgufNetwork, sequences: list[GgufSequence]) -> None:
        self._network = network
        self._sequences = sequences

    def read(self, tokens: Sequence[Sequence[int]], rows: "Sequence[Rows | None]") -> "Sequence[Logits]":
        """Read one or more tokens of each text."""
        return self._network.read(self._sequences, tokens, rows)

    def select(self, indices: Sequence[int]) -> None:
        """Continue with the texts of these indices only."""
        self._sequences = [self._sequences[index] for index in indices]


class GgufTokenizer(Tokenizer):
    """The tokenizer of a file."""

    def __init__(self, process: LlamaProcess) -> None:
        self._process = process
        size = int(process.described["size"])
        lengths = array("I")
        lengths.frombytes(process.pieces[: 4 * size])
        flags, data = process.pieces[4 * size : 6 * size], process.pieces[6 * size :]
        ends = np.cumsum(np.frombuffer(lengths, dtype=np.uint32)).tolist()
        self.tokens = tuple(data[end - length : end] for end, length in zip(ends, lengths, strict=True))
        self.special = tuple(token for token in range(size) if flags[token] == 1)
        self.end = tuple(token for token in range(size) if flags[size + token])
        known = {self.tokens[token].decode("utf-8", "replace"): token for token in range(size) if flags[token]}
        ids = {
            name: token for name, token in known.items() if name and (flags[token] == 1 or CONTROL_FORM.fullmatch(name))
        }
        self._key = blake2b(process.pieces, digest_size=16).digest()
        found = names_pattern(name for name, token in ids.items() if flags[token] == 2)
        begun = [self.tokens[token] for token in self.encode_plain("a")[:1]]
        super().__init__(ids, found, adds_space=any(text.startswith(b" ") for text in begun))

    def vocabulary(self, name: str) -> Vocabulary:
        """Return the vocabulary.

        Raises:
            InputError: no token ends a text.
        """
        _same_tokenizers.setdefault(self._key, weakref.WeakSet()).add(self)
        return Vocabulary(self.tokens, self.end, self.special, encode=partial(_encode, self._key), name=name)

    @property
    def is_usable(self) -> bool:
        """Whether its process runs."""
        return self._process.is_usable

    def encode_plain(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text as llama.cpp divides it."""
        return self._process.tokenize(text, special=False)

    def encode_trusted(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text from its beginning; names of special tokens become these tokens."""
        return self._process.tokenize(text, special=True)

    def start_tokens(self) -> tuple[int, ...]:
        """Return the special token with which a text begins, if the model wants one."""
        start = int(self._process.described["bos"])
        return (start,) if self._process.described["add_bos"] and start >= 0 else ()

    def name(self, which: str) -> str:
        """Return the name of a special token: `bos` or `eos`; empty if there is none."""
        token = int(self._process.described[which])
        return self.tokens[token].decode("utf-8", "replace") if token >= 0 else ""


_same_tokenizers: dict[bytes, weakref.WeakSet[GgufTokenizer]] = {}


@lru_cache(maxsize=1_024)
def _encode(key: bytes, text: str) -> tuple[int, ...]:
    """Tokenize by any process with the same tokens: compiled constraints are kept longer than a process may live.

    A guide asks for the same forced texts at each step; each would be a message to the process.
    """
    for tokenizer in _same_tokenizers[key]:
        if tokenizer.is_usable:
            return tokenizer(text)
    raise ModelError("the llama.cpp process of the vocabulary has ended")


def open_network(
    file: Path, name: str, options: Mapping[str, int | None], keep: int = 0
) -> tuple[GgufNetwork, GgufTokenizer]:
    """Load a file, or connect to the process that was kept.

    Raises:
        ConfigError: it cannot be loaded; the message says what to do.
    """
    process = LlamaProcess(file, name, options, keep)
    try:
        tokenizer = GgufTokenizer(process)
        return GgufNetwork(process, tokenizer.vocabulary(name)), tokenizer
    except InputError as error:
        process.close()
        raise ConfigError(f"the tokenizer of {file} is not supported: {error}") from None
    except BaseException:
        process.close()
        raise
