"""Models in GGUF files: our decode loop on llama.cpp, which runs in a process of its own, so that a crash there does not end this one."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from taiwa.kernel.attachments import path_kind
from taiwa.kernel.errors import ConfigError, ModelError
from taiwa.kernel.messages import Chunk, Notice, Request
from taiwa.kernel.wording import Wording
from taiwa.models.http_api.capabilities import Capabilities, capabilities
from taiwa.models.http_api.provider_interface import parse_options
from taiwa.models.inprocess.chat_template import WIRES, ChatTemplate, IsolatedTemplate
from taiwa.models.inprocess.generator import (
    DEFAULT_OPTIONS,
    GB,
    CompileOptions,
    InProcessModel,
    LoadedModel,
    TextGenerator,
    available_memory,
)
from taiwa.models.inprocess.gguf_backend import GgufNetwork, open_network
from taiwa.models.inprocess.openings import Openings
from taiwa.models.weights.model_files import MODEL_FILES, find_model_file

FORM = "use gguf:FILE.gguf, optionally with ?context=8192&threads=4&layers=0"
MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class GgufSpec:
    """Where a model is and how it is loaded.

    `context` is the number of tokens of all texts that are kept or written together; 0 means as many as model and memory allow,
    up to 8,192. `threads` 0 means as many as there are free processors; `layers` is the number of layers on a GPU, -1 leaves it
    to llama.cpp. `keep` is the number of seconds for which the model stays loaded after the program.
    """

    file: Path
    context: int = 0
    threads: int = 0
    layers: int = -1
    keep: int = 0
    wire: str = "chat"


def parse_gguf_spec(text: str) -> GgufSpec:
    """Parse the name of a model without its scheme.

    Raises:
        ConfigError: it is empty or not on this machine, or an option is unknown or out of range.
    """
    file, _, query = text.partition("?")
    if not file.strip():
        raise ConfigError(f"'gguf:' does not name a file; {FORM}")
    options = parse_options(
        query, {**dict.fromkeys(("context", "threads", "layers", "keep"), int), "wire": WIRES}, "GGUF"
    )
    if options.get("context") == 0:
        raise ConfigError("context of a GGUF model must be at least 1")
    return GgufSpec(find_model_file(file) if file in MODEL_FILES else Path(file).expanduser(), **options)


def check_file(file: Path) -> None:
    """Check the file before a process is started for it.

    Raises:
        ConfigError: it does not exist, or is not a GGUF file.
    """
    if (kind := path_kind(file)) == "folder":
        inner = next(iter(sorted(file.glob("*.gguf"))), None)
        raise ConfigError(f"{file} is a folder; {f'did you mean {inner}?' if inner else FORM}")
    if kind == "other":  # a pipe would wait for its writer
        raise ConfigError(f"{file} is not a regular file; {FORM}")
    try:
        with file.open("rb") as opened:
            head = opened.read(len(MAGIC))
    except FileNotFoundError:
        raise ConfigError(f"file {file} not found; {FORM}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {file} ({error.strerror})") from None
    if head != MAGIC:
        raise ConfigError(f"{file} is not a GGUF file; it begins with {head!r}")


LoadedGguf: TypeAlias = LoadedModel[GgufNetwork]


class GgufModel(InProcessModel[LoadedGguf]):
    """The model in a file: `gguf:FILE`, or just its path.

    The process of llama.cpp ends with `close`, with the object, or with this process. A crash of it is reported in one line, and
    the next request starts another.

    Raises:
        ConfigError: the file does not exist, or is not a GGUF file.
    """

    def __init__(
        self, name: str, spec: GgufSpec | None = None, known: Capabilities | None = None, *, keep: int = 0
    ) -> None:
        spec = spec or parse_gguf_spec(name.removeprefix("gguf:").removeprefix("local:"))
        self.spec = spec if "keep=" in name else replace(spec, keep=spec.keep or keep)
        check_file(self.spec.file)
        super().__init__(name, known or capabilities("gguf", str(self.spec.file)))

    def __repr__(self) -> str:
        if (loaded := self.loaded) is None:
            return f"GgufModel({self.name!r})"
        network = loaded.network
        return f"GgufModel({self.name!r}, context={network.context}, threads={network.process.threads})"

    def load(self) -> LoadedGguf:
        """Load the file in a process of its own.

        Raises:
            ConfigError: it cannot be loaded; the message says what to do.
        """
        check_file(self.spec.file)
        spec = self.spec
        options = {
            "context": spec.context,
            "threads": spec.threads,
            "layers": spec.layers,
            "memory": available_memory(),
        }
        network, encode = open_network(spec.file, self.name, options, spec.keep)
        template = str(network.process.described["template"])
        render = None
        if template and spec.wire == "chat":
            render = IsolatedTemplate(template, {"bos_token": encode.name("bos"), "eos_token": encode.name("eos")})
        return LoadedGguf(network, encode, ChatTemplate(render, encode), encode.start_tokens())

    def make_generator(self) -> TextGenerator[LoadedGguf]:
        """Load the model; texts that a kept process has read for an earlier program need not be read again."""
        loaded = self.load()
        generator = TextGenerator(loaded, self.name, Openings(loaded.network, self.spec.file, self.spec.layers))
        for sequence in reversed(generator.loaded.network.kept()):  # the last one put back is looked at first
            generator.prefix_cache.put_back(sequence, tuple(sequence.tokens))
        return generator

    def is_usable(self, loaded: LoadedGguf) -> bool:
        """Whether its process still runs."""
        return loaded.network.process.is_usable

    def stream(self, request: Request, options: CompileOptions = DEFAULT_OPTIONS) -> Generator[Chunk]:
        """Answer in chunks; a kept process that another program has just stopped is replaced by a new one.

        Raises:
            ConfigError, InputError, ModelError: see `InProcessModel.stream`.
        """
        has_begun = False
        try:
            for chunk in super().stream(request, options):
                has_begun = has_begun or not isinstance(chunk, Notice)
                yield chunk
        except ModelError:
            # Its socket stays open for a moment after the process is killed, so asking it beforehand is not enough.
            loaded = self.loaded
            if has_begun or not self.spec.keep or loaded is None or self.is_usable(loaded):
                raise
        else:
            return
        yield from super().stream(request, options)

    def loading_text(self) -> str:
        """Return what is shown while it is loaded."""
        return Wording("loading {name}", name=f"{self.spec.file.name} ({self.spec.file.stat().st_size / GB:.1f} GB)")

    def _release(self) -> None:
        """End the process; the next request starts another."""
        loaded = self.loaded
        super()._release()
        if loaded is not None:
            loaded.network.process.close()
