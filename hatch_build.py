"""Build hook: compile the catalogues of messages, for wheels and editable installs, and compress a wheel as far as it can be."""

from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

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


def compress(wheel: Path) -> None:
    """Write a wheel again with the highest level of compression; its files stay byte for byte."""
    packed = BytesIO()
    with ZipFile(wheel) as given, ZipFile(packed, "w") as made:
        for member in given.infolist():
            made.writestr(member, given.read(member), ZIP_DEFLATED, 9)
    wheel.write_bytes(packed.getvalue())


class CatalogueHook(BuildHookInterface[Any]):
    """Compile the catalogues before the files of a wheel are collected, and compress it afterwards."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  (hatchling's signature)
        """Compile."""
        compile_catalogues(Path(self.root) / "src" / "taiwa" / "locale")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002  (hatchling's signature)
        """Compress."""
        compress(Path(artifact_path))
