"""`taiwa apps`: listing, making, checking and rendering apps."""

from pathlib import Path

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, say_line, table, tell
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.records import Json

__all__ = ["apps"]


@click.group()
def apps() -> None:
    """List, make, check and render apps: one Markdown file is one app.

    \b
    taiwa apps list
    taiwa apps new tutor           a commented file to begin with, among your own apps
    taiwa apps check tutor.md      every fault with its line and how to mend it
    taiwa apps render translate -p target_lang=English "文(sentence)です。"
    """


@apps.command("list")
@flags("json")
def list_(shared: Flags) -> None:
    """List the apps that are there: your own and the built-in ones."""
    from taiwa.apps.catalogue import apps as all_apps

    found = all_apps()
    if shared.as_json:
        emit([{"app": app.name, "about": app.about, "origin": app.origin, "fault": app.fault} for app in found])
    else:
        table(("app", "origin", "about"), [(app.name, app.origin, app.fault or app.about) for app in found])


@apps.command("new")
@click.argument("name")
def new_(name: str) -> None:
    """Write a commented app file NAME to begin with: a path, or a name among your own apps."""
    from taiwa.apps.catalogue import new, own_folder

    path = Path(name) if "/" in name or name.endswith(".md") else own_folder() / f"{name}.md"
    made = new(path, path.stem)
    say_line(str(made))
    tell(f"edit it, then: taiwa apps check {name} && taiwa chat {name}")


@apps.command("check")
@click.argument("name")
@flags("json")
def check_(shared: Flags, name: str) -> None:
    """Check an app file: every fault with its line and how to mend it. A fault gives exit code 2."""
    from taiwa.apps.catalogue import find_path
    from taiwa.apps.load import check

    path = find_path(name)
    faults = check(path)
    if shared.as_json:
        rows: list[Json] = [
            {
                "line": fault.line,
                "column": fault.column,
                "level": fault.level,
                "what": fault.message,
                "mend": fault.mend,
            }
            for fault in faults
        ]
        emit({"path": str(path), "faults": rows})
    else:
        for fault in faults:
            say_line(f"{fault.told(str(path))}{'' if fault.level == 'error' else '  (a warning)'}")
    wrong = sum(fault.level == "error" for fault in faults)
    if wrong:
        raise ConfigError(f"{path}: {wrong} fault(s); it cannot be opened")
    if not faults and not shared.as_json:
        say_line(f"{path}: nothing is wrong")


@apps.command()
@click.argument("name")
@click.argument("text", default="Hello")
@flags("params", "json")
def render(shared: Flags, name: str, text: str) -> None:
    """Print the exact request of a first turn with TEXT, and about how many tokens it has."""
    from taiwa.cli.opening import open_app
    from taiwa.cli.requests import show_request
    from taiwa.conversation.history import begin

    show_request(begin(open_app(name, shared.params)), text, as_json=shared.as_json)
