"""Load folder or hub model; chat template; memory check."""

import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
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

__all__ = [
    "Divider",
    "Loaded",
    "LocalModel",
    "ModelSpec",
    "available",
    "fits",
    "folder_of",
    "is_local_folder",
    "parse_spec",
    "weights",
]


FORM = "say local:FOLDER or local:VENDOR/NAME, with ?device=cuda&dtype=bfloat16&threads=4 behind it where you want to"

DTYPES = ("auto", "float32", "float16", "bfloat16")

NEEDED = "config.json"

FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")
"""What is fetched from a hub: no weights but safetensors, which hold numbers and no program, and no code."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Where a model is, and how it is loaded: `auto` takes a GPU where there is one, and numbers as that reckons best."""

    where: str
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 0
    context: int = 0


def parse_spec(text: str) -> ModelSpec:
    """Read what stands behind `local:`.

    Raises:
        ConfigError: it names nothing, or an option is unknown.
    """
    where, _, given = text.partition("?")
    if not where.strip():
        raise ConfigError(f"'local:' names no model: {FORM}")
    known = [field.name for field in fields(ModelSpec) if field.name != "where"]
    found = parse_options(given, known, "local")
    dtype = found.get("dtype", "auto")
    if dtype not in DTYPES:
        raise ConfigError(f"dtype is one of {', '.join(DTYPES)}, not {dtype!r}")
    threads, context = (parse_integer(name, found.get(name, "0")) for name in ("threads", "context"))
    return ModelSpec(where, found.get("device", "auto"), dtype, threads, context)


def folder_of(place: ModelSpec) -> Path:
    """Find the folder of a model; one of a hub is fetched, or found where it was kept.

    Raises:
        ConfigError: there is none, or it holds no model that can be loaded.
    """
    folder = is_local_folder(place)
    if folder is None:
        folder = _fetched(place.where)
        _checked(folder)
    return folder


def is_local_folder(place: ModelSpec) -> Path | None:
    """The folder of a model on this machine; None for one that may be on a hub. Nothing heavy is loaded.

    Raises:
        ConfigError: it is missing, or files in it are.
    """
    folder = Path(place.where).expanduser()
    if not folder.exists() and _on_hub(place.where):
        return None
    _checked(folder)
    return folder


def _on_hub(where: str) -> bool:
    """Whether it can be the name of a model on a hub: a vendor and a name, as no path of one's own is written."""
    parts = where.split("/")
    return len(parts) == 2 and all(parts) and not where.startswith((".", "~", "/"))


def _fetched(name: str) -> Path:
    module = hub()
    try:
        return Path(module.snapshot_download(name, allow_patterns=list(FILES)))
    except (OSError, ValueError, RuntimeError, module.errors.HfHubHTTPError) as error:
        said = str(error).strip().splitlines()
        why = f" ({said[0][:160]})" if said else ""
        raise ConfigError(
            f"there is no folder {name!r} here, and it cannot be had from the hub{why}; give the path of a folder with the model"
        ) from None


def _checked(folder: Path) -> None:
    if folder.is_file():
        kind = "llama.cpp reads it: start its server" if folder.suffix == ".gguf" else "give the folder it lies in"
        raise ConfigError(f"{folder} is a file: {kind}")
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}: {FORM}")
    if not (folder / NEEDED).is_file():
        held = next((each.parent for each in sorted(folder.glob(f"*/{NEEDED}"))), None)
        hint = f"did you mean {held}?" if held else f"a model's folder has {NEEDED}, tokenizer.json and *.safetensors"
        raise ConfigError(f"{folder} holds no model: {hint}")
    if not any(folder.glob("*.safetensors")):
        pickled = any((*folder.glob("*.bin"), *folder.glob("*.pt")))
        why = (
            "its weights are pickled, which can run code: convert them to safetensors"
            if pickled
            else "its weights (*.safetensors) are missing"
        )
        raise ConfigError(f"{folder} cannot be loaded: {why}")


GB = 1e9

MARGIN = 1.05
"""What is needed beside the weights themselves."""

CGROUP = Path("/sys/fs/cgroup")


def weights(folder: Path) -> dict[str, int]:
    """Count the numbers of each type (`F32`, `BF16` …) in the safetensors files of a folder, from their headers.

    Raises:
        ConfigError: a file is broken.
    """
    found: dict[str, int] = {}
    for path in sorted(folder.glob("*.safetensors")):
        try:
            tensors = read_header(path).tensors.values()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} cannot be read as weights ({error}): fetch the file again") from None
        for info in tensors:
            found[info.dtype] = found.get(info.dtype, 0) + prod(info.shape)
    return found


def available() -> int | None:
    """How many bytes of memory this process may still take; None where the system does not say."""
    found: list[int] = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
        most, used = (CGROUP / "memory.max").read_text().strip(), (CGROUP / "memory.current").read_text().strip()
        if most.isdecimal():
            found.append(int(most) - int(used))
    except OSError:
        pass
    if not found and hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=None)


def fits(folder: Path, numbers: int, width: int, free: int | None) -> None:
    """Refuse weights that do not fit into `free` bytes; `width` is the number of bytes of one number.

    Raises:
        ConfigError: they do not fit.
    """
    needed = int(numbers * width * MARGIN)
    if free is not None and needed > free:
        smaller = "choose a smaller model" + ("" if width <= 2 else ", or add ?dtype=bfloat16 to its name")
        raise ConfigError(
            f"{folder} needs about {needed / GB:.1f} GB of memory as {width * 8}-bit numbers, and {free / GB:.1f} GB are free: {smaller}"
        )


SPACE = "▁"

ANCHOR = "\x02"
"""Stands before a text where a tokenizer puts a space before every text: what it puts there is cut off with it."""


class Divider:
    """Divides a text; the names of special tokens in it are words like any others.

    A tokenizer takes `<|im_end|>` in a text for the token, so that whoever writes it could end a message. A second tokenizer
    that does not is made when the first text with such a name comes.
    """

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401  (transformers')
        self._backend: Any = tokenizer.backend_tokenizer
        self._plain: Any = None
        added = tokenizer.added_tokens_decoder.items()
        self.ids: dict[str, int] = {str(each): int(token) for token, each in added if each.special}
        names = sorted(self.ids, key=len, reverse=True)
        self.names = re.compile("|".join(map(re.escape, names))) if names else None
        self._anchored = self._spaced()

    def __call__(self, text: str) -> tuple[int, ...]:
        """The tokens of a text, wherever it stands; none that begin or end one."""
        if not text:
            return ()
        backend = self._backend
        if self.names is not None and self.names.search(text):
            backend = self._without_names()
        if not self._anchored:
            return tuple(backend.encode(text, add_special_tokens=False).ids)
        anchor = self._anchor
        found = tuple(backend.encode(ANCHOR + text, add_special_tokens=False).ids)
        if found[: len(anchor)] == anchor:
            return found[len(anchor) :]
        return tuple(backend.encode(text, add_special_tokens=False).ids)

    def whole(self, text: str) -> tuple[int, ...]:
        """The tokens of a text that begins here, as the tokenizer makes them: names of special tokens are these tokens."""
        return tuple(self._backend.encode(text, add_special_tokens=False).ids)

    def beginning(self) -> tuple[int, ...]:
        """The special tokens with which the tokenizer begins a text."""
        return tuple(token for token in self._backend.encode("").ids if token in set(self.ids.values()))

    @property
    def _anchor(self) -> tuple[int, ...]:
        return tuple(self._backend.encode(ANCHOR, add_special_tokens=False).ids)

    def _spaced(self) -> bool:
        """Whether a text divided on its own begins with a space that is not its own."""
        divided = self._backend.encode("a", add_special_tokens=False).tokens
        return bool(divided) and str(divided[0]).startswith(SPACE)

    def _without_names(self) -> Any:  # noqa: ANN401  (a tokenizer of the `tokenizers` library)
        if self._plain is None:
            kind = cast("Any", type(self._backend))
            plain: Any = kind.from_str(self._backend.to_str())
            plain.encode_special_tokens = True
            self._plain = plain
        return self._plain


PRIVATE = range(0xE000, 0xF8FF)

NAMES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


class Dialogue:
    """Writes conversations for one model.

    What a person, a document or a tool says never becomes a special token, whatever it says: such names are marked before
    the template is filled, so that only those of the template itself count.
    """

    def __init__(self, tokenizer: Any, divider: Divider) -> None:  # noqa: ANN401  (transformers')
        self._tokenizer = tokenizer
        self._divider = divider

    @property
    def templated(self) -> bool:
        """Whether the model has a chat template: one without continues plain text."""
        return bool(self._tokenizer.chat_template)

    def tokens(self, request: Request) -> tuple[int, ...]:
        """The tokens up to where the answer begins, without its prefix.

        Raises:
            InputError: the template refuses such a conversation.
        """
        if not self.templated:
            return (*self._divider.beginning(), *self._divider(plain(request.messages)))
        turns = list(_turns(request.messages))
        names = self._divider.names
        if names is None or not any(names.search(text) for _, text in turns):
            return self._divider.whole(self._written(turns))
        mark = next(chr(code) for code in PRIVATE if not any(chr(code) in text for _, text in turns))

        def broken(text: str) -> str:
            return names.sub(lambda found: f"{found[0][0]}{mark}{found[0][1:]}", text)

        marked: list[tuple[Role, str]] = [(role, broken(text)) for role, text in turns]
        return tuple(self._pieces(self._written(marked), mark))

    def _pieces(self, written: str, mark: str) -> Iterator[int]:
        """Divide what stands between the template's own special tokens."""
        assert self._divider.names is not None
        end = 0
        for found in self._divider.names.finditer(written):
            yield from self._divider(written[end : found.start()].replace(mark, ""))
            yield self._divider.ids[found[0]]
            end = found.end()
        yield from self._divider(written[end:].replace(mark, ""))

    def _written(self, turns: list[tuple[Role, str]]) -> str:
        try:
            return self._filled(turns)
        except _template_error() as error:
            merged = _merged(turns)
            if merged == turns:
                raise InputError(f"the model's chat template refuses this conversation: {error}") from None
        try:
            return self._filled(merged)
        except _template_error() as error:
            raise InputError(f"the model's chat template refuses this conversation: {error}") from None

    def _filled(self, turns: list[tuple[Role, str]]) -> str:
        messages = [{"role": role, "content": text} for role, text in turns]
        text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return text


def _template_error() -> type[Exception]:
    """What a template raises; Jinja2 is there when a template was run."""
    from importlib import import_module

    found: type[Exception] = import_module("jinja2").TemplateError
    return found


def plain(messages: tuple[Message, ...]) -> str:
    """A conversation for a model without a template: the words of the one message, or a transcript that the model goes on."""
    turns = list(_turns(messages))
    if len(turns) == 1:
        return turns[0][1]
    lines = [text if role == "system" else f"{NAMES[role]}: {text}" for role, text in turns]
    return "\n\n".join([*lines, "Assistant:"])


def _turns(messages: tuple[Message, ...]) -> Iterator[tuple[Role, str]]:
    for message in messages:
        yield ("user" if message.role == "tool" else message.role), _words(message)


def _words(message: Message) -> str:
    """The words of a message with what is transient last; calls and results as text, for the templates differ in them."""
    lasting = [part.text for part in message.parts if isinstance(part, Text) and part.text and not part.transient]
    transient = [part.text for part in message.parts if isinstance(part, Text) and part.text and part.transient]
    calls = [f"{part.name}({part.arguments})" for part in message.parts if isinstance(part, ToolCall)]
    results = [part.text for part in message.parts if isinstance(part, ToolResult)]
    # A model's own words are joined as it wrote them; the blank line is for blocks that we lay side by side.
    said = ("" if message.role == "assistant" else "\n\n").join(lasting + transient)
    return "\n\n".join(filter(None, [*results, said, *calls]))


def _merged(turns: list[tuple[Role, str]]) -> list[tuple[Role, str]]:
    """For templates that know no system message, and those that want user and assistant in turn."""
    found: list[tuple[Role, str]] = []
    for role, text in turns:
        spoken: Role = "user" if role == "system" else role
        if found and found[-1][0] == spoken:
            found[-1] = (spoken, f"{found[-1][1]}\n\n{text}")
        else:
            found.append((spoken, text))
    return found


HALF = 2

WIDTHS = {"float32": 4, "float16": HALF, "bfloat16": HALF}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in memory: its network, how it divides texts, and how it is told a conversation."""

    network: Network
    divider: Divider
    dialogue: Dialogue
    folder: Path

    def posed(self, request: Request) -> PreparedRequest:
        """The tokens of a conversation up to where the answer begins, without its prefix.

        Raises:
            InputError: the model's template refuses such a conversation.
        """
        return PreparedRequest(self.dialogue.tokens(request))


def load(place: ModelSpec) -> Loaded:
    """Load a model and its tokenizer. Code that comes with a model is never run.

    Raises:
        ConfigError: it is not there, cannot be read, does not fit into memory, or its tokenizer cannot be followed.
    """
    folder = folder_of(place)
    library = torch()
    device = _device(place, library)
    if place.threads:
        library.set_num_threads(place.threads)
    dtype = _dtype(place, device, library)
    if device.type == "cpu":
        found = weights(folder)
        fits(folder, sum(found.values()), WIDTHS[str(dtype).rpartition(".")[2]], available())
    module = transformers()
    with _told(folder, device, library):
        tokenizer = module.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = module.AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, local_files_only=True
        )
        model.to(device).eval()
    divider = Divider(tokenizer)
    vocabulary = _vocabulary(model, tokenizer, divider, place.where)
    return Loaded(Network(model, vocabulary, place.context), divider, Dialogue(tokenizer, divider), folder)


def _device(place: ModelSpec, library: Any) -> Any:  # noqa: ANN401  (torch's)
    wanted = place.device
    if wanted == "auto":
        wanted = "cuda" if library.cuda.is_available() else "cpu"
    try:
        device = library.device(wanted)
    except RuntimeError:
        raise ConfigError(f"there is no kind of device {wanted!r}: say device=cpu or device=cuda") from None
    if device.type == "cuda" and not library.cuda.is_available():
        raise ConfigError("device=cuda: torch finds no GPU here; install torch for CUDA, or say device=cpu")
    if device.type == "cuda" and (device.index or 0) >= library.cuda.device_count():
        raise ConfigError(f"device={wanted}: there are {library.cuda.device_count()} GPUs, counted from 0")
    return device


def _dtype(place: ModelSpec, device: Any, library: Any) -> Any:  # noqa: ANN401  (torch's)
    """On a processor, numbers of 32 bits: most reckon with fewer bits more slowly."""
    if place.dtype != "auto":
        return getattr(library, place.dtype)
    return library.float32 if device.type == "cpu" else "auto"


@contextmanager
def _told(folder: Path, device: Any, library: Any) -> Generator[None]:  # noqa: ANN401  (torch's)
    """Say in one line what keeps a model from being loaded."""
    try:
        yield
    except (library.OutOfMemoryError, MemoryError):
        raise ConfigError(
            f"{folder} does not fit into the memory of {device}: choose a smaller model, ?dtype=bfloat16, or another device"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, ImportError, AttributeError) as error:
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        if "trust_remote_code" in str(error):
            said = "it comes with code of its own, which is not run"
        raise ConfigError(f"{folder} cannot be loaded: {said[:200]}") from None


def _vocabulary(model: Any, tokenizer: Any, divider: Divider, name: str) -> Vocabulary:  # noqa: ANN401  (transformers')
    """The tokens by the rows of the output head, and all that end a text, as `generate()` counts them."""
    rows = int(model.get_output_embeddings().weight.shape[0])
    ends = getattr(model.generation_config, "eos_token_id", None)
    if ends is None:
        ends = tokenizer.eos_token_id
    try:
        found = Vocabulary.from_hf(tokenizer, end=ends, size=rows)
    except InputError as error:
        raise ConfigError(f"the tokenizer of {name} cannot be followed: {error.message}") from None
    return Vocabulary(found.tokens, found.end, found.special, encode=divider, name=name)


class LocalModel(InProcessModel["Loaded"]):
    """The model in a folder or of a hub: `local:FOLDER`, `local:VENDOR/NAME`.

    Raises:
        ConfigError: the name cannot be used.
    """

    def __init__(self, name: str, place: ModelSpec | None = None, known: Capabilities | None = None) -> None:
        self.place = place or parse_spec(name.removeprefix("local:"))
        super().__init__(name, known or capabilities("local", self.place.where))

    def load(self) -> "Loaded":
        """Load its folder with torch and transformers.

        Raises:
            ConfigError: it cannot be loaded; the message says what to do.
        """

        return load(self.place)
