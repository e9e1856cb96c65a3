"""The libraries behind local models. They come with an extra, take seconds to load, and are loaded when first used."""

import os
from importlib import import_module
from typing import Any

from taiwa.kernel.errors import ConfigError

__all__ = ["hub", "torch", "transformers"]


def torch() -> Any:  # noqa: ANN401  (a module whose types take a type checker a minute to read)
    """The module `torch`.

    Raises:
        ConfigError: the extra is not installed.
    """
    return _found("torch")


def transformers() -> Any:  # noqa: ANN401  (as above)
    """The module `transformers`, without its remarks and its bars.

    Raises:
        ConfigError: the extra is not installed.
    """
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    module = _found("transformers")
    module.utils.logging.disable_progress_bar()
    return module


def hub() -> Any:  # noqa: ANN401  (as above)
    """The module `huggingface_hub`.

    Raises:
        ConfigError: the extra is not installed.
    """
    return _found("huggingface_hub")


def _found(name: str) -> Any:  # noqa: ANN401  (as above)
    try:
        return import_module(name)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != name:
            raise ConfigError(f"models in this process need {error.name}: pip install 'taiwa[local]'") from None
        raise ConfigError("models in this process need an extra: pip install 'taiwa[local]'") from None
