"""Build hook: compile the catalogues of messages, for wheels and editable installs."""

from pathlib import Path
from typing import Any

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

__all__ = ["CatalogueHook", "compile_catalogues"]


def compile_catalogues(root: Path) -> None:
    """Compile each `.po` file below a folder to an `.mo` file beside it."""
    for source in sorted(root.rglob("*.po")):
        with source.open("rb") as text:
            catalogue = read_po(text, locale=source.parent.parent.name, abort_invalid=True)
        with source.with_suffix(".mo").open("wb") as compiled:
            write_mo(compiled, catalogue)


class CatalogueHook(BuildHookInterface[Any]):
    """Compile the catalogues before the files of a wheel are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  (hatchling's signature)
        """Compile."""
        compile_catalogues(Path(self.root) / "src" / "taiwa" / "locale")
