"""`taiwa doctor`: what this installation has, what it lacks, and the command for each."""

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import CommonOptions, common_options
from taiwa.cli.output import print_json, print_line, print_notice, table
from taiwa.extras import EXTRAS, Extra, install_command, is_installed
from taiwa.i18n import _, gettext_noop
from taiwa.kernel.attachments import open_regular, path_kind
from taiwa.kernel.errors import ConfigError, TaiwaError

if TYPE_CHECKING:
    from taiwa.settings import Settings

PURPOSES: Mapping[Extra, str] = {
    "serve": gettext_noop("taiwa serve and taiwa ui"),
    "gguf": gettext_noop("models in GGUF files, on this machine"),
    "local": gettext_noop("models of Hugging Face, on this machine"),
    "docs": gettext_noop("documents in PDF and DOCX, main text of web pages"),
    "dense": gettext_noop("search by meaning"),
    "constraints": gettext_noop("constraints without a model here, and guides of grammars"),
    "typescript": gettext_noop("types written in TypeScript"),
    "repair": gettext_noop("a second opinion on malformed JSON"),
    "mcp": gettext_noop("tools of MCP servers, and taiwa mcp"),
    "postgres": gettext_noop("stores and indexes in PostgreSQL"),
    "charts": gettext_noop("charts of taiwa eval"),
    "ray": gettext_noop("evaluations on many machines"),
}

SQLITE = b"SQLite format 3"


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked part: its name, what was found, whether it works, and the command that corrects it."""

    name: str
    found: str
    works: bool = True
    command: str = ""


@click.command()
@common_options("as_json", "model", "store")
def doctor(common: CommonOptions) -> None:
    """Show what this installation has and lacks, with the command for what is missing. Nothing is sent.

    The exit code is 1 if something does not work. An extra that is not installed is not a fault.

    \b
    taiwa doctor
    """
    from importlib.metadata import version

    findings = [
        Finding("taiwa", f"{version('taiwa')}, {Path(__file__).parents[1]}"),
        Finding("python", f"{platform.python_version()}, {sys.executable}"),
        _system(),
    ]
    try:
        settings = common.settings()
        findings += [Finding("config", str(settings.path)), _store(settings), _model(settings)]
    except ConfigError as error:
        findings.append(Finding("config", error.message, works=False, command="taiwa config path"))
    extras = {name: is_installed(name) for name in EXTRAS}
    if common.as_json:
        print_json(
            {
                "checks": [
                    {"name": each.name, "found": each.found, "works": each.works, "command": each.command or None}
                    for each in findings
                ],
                "extras": {
                    name: {"installed": here, "command": None if here else install_command(name)}
                    for name, here in extras.items()
                },
            }
        )
    else:
        _print(findings, extras)
    if not all(each.works for each in findings):
        raise click.exceptions.Exit(1)


def _print(findings: list[Finding], extras: Mapping[Extra, bool]) -> None:
    lines: list[tuple[str, str]] = []
    for each in findings:
        lines.append((each.name, each.found if each.works else f"✗ {each.found}"))
        if each.command:
            lines.append(("", _("run: {command}", command=each.command)))
    table((), lines)
    print_line("")
    rows = [(name, _("installed") if here else _("not installed"), _(PURPOSES[name])) for name, here in extras.items()]
    table((_("extra"), _("status"), _("for")), rows)
    if not all(extras.values()):
        print_notice(_("install an extra with: {command}", command=install_command("NAME")))


def _system() -> Finding:
    """Return what is known of the system: everything is tested on Linux; the rest is known by inspection."""
    name = f"{platform.system()} {platform.machine()}"
    if sys.platform == "win32":
        lacks = _(
            "no stores or indexes in files, no models in GGUF files, no JSON Schema documents, no tools with limits"
        )
        return Finding("system", f"{name}: {lacks}", works=False, command="wsl --install")
    if sys.platform != "linux":
        lacks = _("not tested; the memory of tools and readers is not limited")
        return Finding("system", f"{name}: {lacks}")
    return Finding("system", name)


def _store(settings: "Settings") -> Finding:
    if not isinstance(settings.store, Path):
        return Finding("store", str(settings.store))
    is_there = bool(path_kind(settings.store))
    place = settings.store if is_there else _first_folder(settings.store)
    if not os.access(place, os.W_OK):
        return Finding("store", _("{path} cannot be written", path=place), False, "taiwa config set store FILE")
    if is_there and not _begins_with(settings.store, SQLITE):
        return Finding("store", _("{path} is not a store", path=place), False, "taiwa config set store FILE")
    return Finding("store", str(settings.store))


def _begins_with(file: Path, mark: bytes) -> bool:
    try:
        with open_regular(file) as opened:
            return opened.read(len(mark)) in (b"", mark)
    except OSError:
        return False


def _first_folder(path: Path) -> Path:
    return next(folder for folder in path.absolute().parents if folder.exists())


def _model(settings: "Settings") -> Finding:
    """Return the model that is set, and whether its key and its file are here; its server is not asked."""
    from taiwa.models.http_api.api_keys import find_key
    from taiwa.models.providers import resolve_probed
    from taiwa.models.weights.model_files import FIRST_MODEL, MODEL_FILES, own_file

    if settings.model is None:
        return Finding("model", _("none is set"), command=f"taiwa models pull {FIRST_MODEL} --use")
    if settings.model in MODEL_FILES and not own_file(settings.model).is_file():
        return Finding(
            "model", _("{model} is not fetched", model=settings.model), False, f"taiwa models pull {settings.model}"
        )
    try:
        target = resolve_probed(settings.model, settings)
        if target.codec is not None:
            find_key(target, settings)
    except TaiwaError as error:
        return Finding("model", error.message, works=False)
    runs_on: dict[str, Extra] = {"gguf": "gguf", "local": "local"}
    extra = runs_on.get(target.base_url)
    if extra is not None and not is_installed(extra):
        return Finding("model", _("{model} needs an extra", model=settings.model), False, install_command(extra))
    return Finding("model", settings.model)
