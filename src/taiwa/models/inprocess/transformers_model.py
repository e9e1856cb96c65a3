"""Models of transformers from a folder or a hub: finding and loading them, the memory check, and the chat template."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, cast

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.messages import Message, Request, Role, Text, ToolCall, ToolResult
from taiwa.models.http_api.capabilities import Capabilities, capabilities
from taiwa.models.http_api.provider_interface import parse_integer, parse_options
from taiwa.models.inprocess.generator import InProcessModel, PreparedRequest
from taiwa.models.inprocess.transformers_network import Network, hub, torch, transformers
from taiwa.safetensors_file import read_header

FORM = "use local:FOLDER or local:VENDOR/NAME, optionally with ?device=cuda&dtype=bfloat16&threads=4"
DTYPES = ("auto", "float32", "float16", "bfloat16")
HUB_NAME = re.compile(r"[^./~][^/]*/[^/]+")
CONFIG = "config.json"
FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")
"""The files that are downloaded: no code, and of weights only safetensors, which cannot contain code."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Where a model is and how it is loaded: `auto` uses a GPU if there is one, and its best number format."""

    where: str
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 0
    context: int = 0


def parse_spec(text: str) -> ModelSpec:
    """Parse the part of a model name after `local:`.

    Raises:
        ConfigError: it is empty, or an option is unknown.
    """
    where, _, query = text.partition("?")
    if not where.strip():
        raise ConfigError(f"'local:' does not name a model; {FORM}")
    known = [field.name for field in fields(ModelSpec) if field.name != "where"]
    options = parse_options(query, known, "local")
    dtype = options.get("dtype", "auto")
    if dtype not in DTYPES:
        raise ConfigError(f"unknown dtype {dtype!r}; choose one of {', '.join(DTYPES)}")
    threads, context = (parse_integer(name, options.get(name, "0")) for name in ("threads", "context"))
    return ModelSpec(where, options.get("device", "auto"), dtype, threads, context)


def model_folder(spec: ModelSpec) -> Path:
    """Return the folder of a model; one of a hub is downloaded, or found in its cache.

    Raises:
        ConfigError: the folder does not exist, or does not contain a model that can be loaded.
    """
    folder = find_local_folder(spec)
    if folder is None:
        folder = _download(spec.where)
        _check_folder(folder)
    return folder


def find_local_folder(spec: ModelSpec) -> Path | None:
    """Return the folder of a model on this machine, checked without loading it; None for a model that may be on a hub.

    Raises:
        ConfigError: the folder or a file in it is missing.
    """
    folder = Path(spec.where).expanduser()
    if not folder.exists() and HUB_NAME.fullmatch(spec.where):
        return None
    _check_folder(folder)
    return folder


def _download(name: str) -> Path:
    module = hub()
    try:
        return Path(module.snapshot_download(name, allow_patterns=list(FILES)))
    except (OSError, ValueError, RuntimeError, module.errors.HfHubHTTPError) as error:
        lines = str(error).strip().splitlines()
        why = f" ({lines[0][:160]})" if lines else ""
        raise ConfigError(
            f"folder {name!r} not found, and it cannot be downloaded from the hub{why}; give the path of a folder with the model"
        ) from None


def _check_folder(folder: Path) -> None:
    if folder.is_file():
        hint = "use gguf:FILE for it" if folder.suffix == ".gguf" else "give the folder that contains it"
        raise ConfigError(f"{folder} is a file; {hint}")
    if not folder.is_dir():
        raise ConfigError(f"folder {folder} not found; {FORM}")
    if not (folder / CONFIG).is_file():
        inner = next((each.parent for each in sorted(folder.glob(f"*/{CONFIG}"))), None)
        contents = f"the folder of a model has {CONFIG}, tokenizer.json and *.safetensors"
        hint = f"did you mean {inner}?" if inner else contents
        raise ConfigError(f"{folder} does not contain a model; {hint}")
    if not any(folder.glob("*.safetensors")):
        why = "its weights (*.safetensors) are missing"
        if any((*folder.glob("*.bin"), *folder.glob("*.pt"))):
            why = "its weights are pickled, which can run code: convert them to safetensors"
        raise ConfigError(f"cannot load {folder}: {why}")


GB = 1e9
MARGIN = 1.05
"""Memory in relation to the weights alone."""
CGROUP = Path("/sys/fs/cgroup")


def count_weights(folder: Path) -> dict[str, int]:
    """Count the parameters of each type (`F32`, `BF16` …) in the safetensors files of a folder, from their headers.

    Raises:
        ConfigError: a file is broken.
    """
    counts = Counter[str]()
    for path in sorted(folder.glob("*.safetensors")):
        try:
            tensors = read_header(path).tensors.values()
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read the weights in {path} ({error}); download the file again") from None
        for info in tensors:
            counts[info.dtype] += prod(info.shape)
    return counts


def available_memory() -> int | None:
    """Return the bytes of memory that this process may still allocate; None if the system does not report them."""
    limits: list[int] = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
        limit, used = (CGROUP / "memory.max").read_text().strip(), (CGROUP / "memory.current").read_text().strip()
        if limit.isdecimal():
            limits.append(int(limit) - int(used))
    except OSError:
        pass
    if not limits and hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)


def check_memory(folder: Path, parameters: int, width: int, free: int | None) -> None:
    """Check that parameters of `width` bytes each fit into `free` bytes of memory.

    Raises:
        ConfigError: they do not fit.
    """
    needed = int(parameters * width * MARGIN)
    if free is not None and needed > free:
        smaller = "choose a smaller model" + ("" if width <= 2 else ", or add ?dtype=bfloat16 to its name")
        raise ConfigError(
            f"{folder} needs about {needed / GB:.1f} GB of memory as {width * 8}-bit numbers, and {free / GB:.1f} GB are free; {smaller}"
        )


SPACE = "▁"
ANCHOR = "\x02"
"""Put before a text if the tokenizer adds a space before every text; its tokens are cut off with the space."""


class TextEncoder:
    """Divides texts into tokens; names of special tokens in a text are ordinary text.

    A tokenizer reads `<|im_end|>` in a text as the token, so that any text could end a message. A second tokenizer that does
    not is made when the first text with such a name arrives.
    """

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401  (transformers')
        self._backend: Any = tokenizer.backend_tokenizer
        self._plain: Any = None
        added = tokenizer.added_tokens_decoder.items()
        self.ids: dict[str, int] = {str(each): int(token) for token, each in added if each.special}
        names = sorted(self.ids, key=len, reverse=True)
        self.names = re.compile("|".join(map(re.escape, names))) if names else None
        self._adds_space = self._find_added_space()

    def __call__(self, text: str) -> tuple[int, ...]:
        """Return the tokens of any part of a text, without those that mark its beginning or end."""
        if not text:
            return ()
        backend = self._backend
        if self.names is not None and self.names.search(text):
            backend = self._plain_backend()
        if self._adds_space:
            anchor = self.encode_trusted(ANCHOR)
            tokens = tuple(backend.encode(ANCHOR + text, add_special_tokens=False).ids)
            if tokens[: len(anchor)] == anchor:
                return tokens[len(anchor) :]
        return tuple(backend.encode(text, add_special_tokens=False).ids)

    def encode_trusted(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text from its beginning; names of special tokens become these tokens."""
        return tuple(self._backend.encode(text, add_special_tokens=False).ids)

    def start_tokens(self) -> tuple[int, ...]:
        """Return the special tokens with which the tokenizer begins a text."""
        return tuple(token for token in self._backend.encode("").ids if token in self.ids.values())

    def _find_added_space(self) -> bool:
        tokens = self._backend.encode("a", add_special_tokens=False).tokens
        return bool(tokens) and str(tokens[0]).startswith(SPACE)

    def _plain_backend(self) -> Any:  # noqa: ANN401  (a tokenizer of the `tokenizers` library)
        if self._plain is None:
            self._plain = cast("Any", type(self._backend)).from_str(self._backend.to_str())
            self._plain.encode_special_tokens = True
        return self._plain


PRIVATE_USE = range(0xE000, 0xF8FF)
ROLE_NAMES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


class ChatTemplate:
    """Writes conversations for one model.

    Texts of users, documents and tools never become special tokens: names of special tokens in them are marked before the
    template is rendered, so that only those of the template itself count.
    """

    def __init__(self, tokenizer: Any, encode: TextEncoder) -> None:  # noqa: ANN401  (transformers')
        self._tokenizer = tokenizer
        self._encode = encode

    def tokens(self, request: Request) -> tuple[int, ...]:
        """Return the tokens up to where the answer begins, without its prefix.

        Raises:
            InputError: the template does not support the conversation.
        """
        if not self._tokenizer.chat_template:  # the model continues plain text
            return (*self._encode.start_tokens(), *self._encode(format_transcript(request.messages)))
        turns = _turns(request.messages)
        names = self._encode.names
        if names is None or not any(names.search(text) for _, text in turns):
            return self._encode.encode_trusted(self._render_or_merge(turns))
        mark = next(chr(code) for code in PRIVATE_USE if not any(chr(code) in text for _, text in turns))

        def insert_mark(text: str) -> str:
            return names.sub(lambda found: f"{found[0][0]}{mark}{found[0][1:]}", text)

        marked: list[tuple[Role, str]] = [(role, insert_mark(text)) for role, text in turns]
        return tuple(self._tokens_of_template(self._render_or_merge(marked), mark))

    def _tokens_of_template(self, rendered: str, mark: str) -> Iterator[int]:
        """Divide the text between the special tokens of the template."""
        assert self._encode.names is not None
        end = 0
        for found in self._encode.names.finditer(rendered):
            yield from self._encode(rendered[end : found.start()].replace(mark, ""))
            yield self._encode.ids[found[0]]
            end = found.end()
        yield from self._encode(rendered[end:].replace(mark, ""))

    def _render_or_merge(self, turns: list[tuple[Role, str]]) -> str:
        template_error = import_module("jinja2").TemplateError  # installed if a template was rendered
        try:
            return self._render(turns)
        except template_error as error:
            merged, reason = _merge_turns(turns), error
        try:
            if merged != turns:
                return self._render(merged)
        except template_error as error:
            reason = error
        raise InputError(f"the chat template of the model does not support this conversation: {reason}")

    def _render(self, turns: list[tuple[Role, str]]) -> str:
        messages = [{"role": role, "content": text} for role, text in turns]
        text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return text


def format_transcript(messages: tuple[Message, ...]) -> str:
    """Write a conversation for a model without a template: the text of a single message, or a transcript to continue."""
    turns = _turns(messages)
    if len(turns) == 1:
        return turns[0][1]
    lines = [text if role == "system" else f"{ROLE_NAMES[role]}: {text}" for role, text in turns]
    return "\n\n".join([*lines, "Assistant:"])


def _turns(messages: tuple[Message, ...]) -> list[tuple[Role, str]]:
    return [("user" if message.role == "tool" else message.role, _message_text(message)) for message in messages]


def _message_text(message: Message) -> str:
    """Return a message as text, transient parts last; calls and results as text too, because templates differ in them."""
    texts = sorted((part for part in message.parts if isinstance(part, Text)), key=lambda part: part.transient)
    calls = [f"{part.name}({part.arguments})" for part in message.parts if isinstance(part, ToolCall)]
    results = [part.text for part in message.parts if isinstance(part, ToolResult)]
    # The parts of an answer are joined as the model wrote them; blocks of other messages are separated by a blank line.
    text = ("" if message.role == "assistant" else "\n\n").join(part.text for part in texts if part.text)
    return "\n\n".join(filter(None, [*results, text, *calls]))


def _merge_turns(turns: list[tuple[Role, str]]) -> list[tuple[Role, str]]:
    """Merge turns for templates without system messages, and for those that require alternating roles."""
    merged: list[tuple[Role, str]] = []
    for role, text in turns:
        new_role: Role = "user" if role == "system" else role
        if merged and merged[-1][0] == new_role:
            merged[-1] = (new_role, f"{merged[-1][1]}\n\n{text}")
        else:
            merged.append((new_role, text))
    return merged


WIDTHS = {"float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in memory; see `taiwa.models.inprocess.generator.LoadedModel`."""

    network: Network
    encode: TextEncoder
    chat_template: ChatTemplate
    folder: Path

    def prepare(self, request: Request) -> PreparedRequest:
        """Return the tokens of a conversation up to where the answer begins, without its prefix.

        Raises:
            InputError: the chat template does not support the conversation.
        """
        return PreparedRequest(self.chat_template.tokens(request))


def load(spec: ModelSpec) -> Loaded:
    """Load a model and its tokenizer. Code in the folder of a model is never run.

    Raises:
        ConfigError: it is missing or broken, does not fit into memory, or its tokenizer is not supported.
    """
    folder = model_folder(spec)
    library = torch()
    device = _device(spec, library)
    if spec.threads:
        library.set_num_threads(spec.threads)
    dtype = _dtype(spec, device, library)
    if device.type == "cpu":
        width = WIDTHS[str(dtype).rpartition(".")[2]]
        check_memory(folder, sum(count_weights(folder).values()), width, available_memory())
    module = transformers()
    try:
        tokenizer = module.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = module.AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, local_files_only=True
        )
        model.to(device).eval()
    except (library.OutOfMemoryError, MemoryError):
        raise ConfigError(
            f"{folder} does not fit into the memory of {device}; choose a smaller model, ?dtype=bfloat16, or another device"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, ImportError, AttributeError) as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        if "trust_remote_code" in str(error):
            reason = "it needs code from its folder, which is not run"
        raise ConfigError(f"cannot load {folder}: {reason[:200]}") from None
    encode = TextEncoder(tokenizer)
    vocabulary = _vocabulary(model, tokenizer, encode, spec.where)
    return Loaded(Network(model, vocabulary, spec.context), encode, ChatTemplate(tokenizer, encode), folder)


def _device(spec: ModelSpec, library: Any) -> Any:  # noqa: ANN401  (torch's)
    wanted = spec.device
    if wanted == "auto":
        wanted = "cuda" if library.cuda.is_available() else "cpu"
    try:
        device = library.device(wanted)
    except RuntimeError:
        raise ConfigError(f"unknown device {wanted!r}; use device=cpu or device=cuda") from None
    if device.type == "cuda" and not library.cuda.is_available():
        raise ConfigError("device=cuda: torch does not find a GPU; install torch for CUDA, or use device=cpu")
    if device.type == "cuda" and (device.index or 0) >= library.cuda.device_count():
        raise ConfigError(f"device={wanted}: there are {library.cuda.device_count()} GPUs, counted from 0")
    return device


def _dtype(spec: ModelSpec, device: Any, library: Any) -> Any:  # noqa: ANN401  (torch's)
    """Choose float32 on a CPU: most compute more slowly with fewer bits."""
    if spec.dtype != "auto":
        return getattr(library, spec.dtype)
    return library.float32 if device.type == "cpu" else "auto"


def _vocabulary(model: Any, tokenizer: Any, encode: TextEncoder, name: str) -> Vocabulary:  # noqa: ANN401  (transformers')
    """Return the tokens by the rows of the output head, with all end tokens that `generate()` knows."""
    rows = int(model.get_output_embeddings().weight.shape[0])
    try:  # without end tokens of the model, those of the tokenizer count
        vocabulary = Vocabulary.from_hf(
            tokenizer, end=getattr(model.generation_config, "eos_token_id", None), size=rows
        )
    except InputError as error:
        raise ConfigError(f"the tokenizer of {name} is not supported: {error.message}") from None
    return Vocabulary(vocabulary.tokens, vocabulary.end, vocabulary.special, encode=encode, name=name)


class LocalModel(InProcessModel["Loaded"]):
    """A model in a folder or of a hub: `local:FOLDER`, `local:VENDOR/NAME`.

    Raises:
        ConfigError: the name is invalid.
    """

    def __init__(self, name: str, spec: ModelSpec | None = None, known: Capabilities | None = None) -> None:
        self.spec = spec or parse_spec(name.removeprefix("local:"))
        super().__init__(name, known or capabilities("local", self.spec.where))

    def load(self) -> "Loaded":
        """Load the folder with torch and transformers.

        Raises:
            ConfigError: it cannot be loaded; the message says what to do.
        """
        return load(self.spec)
