"""List, create, check and render apps."""

from pathlib import Path

import click

from taiwa.cli.options import Flags, flags, open_app
from taiwa.cli.output import emit, print_preview, say_line, table, tell
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.records import Json

__all__ = ["apps"]


@click.group()
def apps() -> None:
    """List, create, check and render apps: one Markdown file is one app.

    \b
    taiwa apps list
    taiwa apps new tutor           create a commented app file
    taiwa apps check tutor.md      list errors with their lines and remedies
    taiwa apps render translate -p target_lang=English "文(sentence)です。"
    """


@apps.command("list")
@flags("json")
def list_(shared: Flags) -> None:
    """List your own apps and the built-in ones."""
    from taiwa.apps.catalog import apps as all_apps

    found = all_apps()
    if shared.as_json:
        emit([{"app": app.name, "about": app.about, "origin": app.origin, "fault": app.problem} for app in found])
    else:
        table(("app", "origin", "about"), [(app.name, app.origin, app.problem or app.about) for app in found])


@apps.command("new")
@click.argument("name")
def new_(name: str) -> None:
    """Create a commented app file NAME: a path, or a name in the folder of your apps."""
    from taiwa.apps.catalog import new, user_folder

    path = Path(name) if "/" in name or name.endswith(".md") else user_folder() / f"{name}.md"
    made = new(path, path.stem)
    say_line(str(made))
    tell(f"edit it, then: taiwa apps check {name} && taiwa chat {name}")


@apps.command("check")
@click.argument("name")
@flags("json")
def check_(shared: Flags, name: str) -> None:
    """Check an app file: list errors with their lines and remedies. A fault gives exit code 2."""
    from taiwa.apps.catalog import check, find_path

    path = find_path(name)
    faults = check(path)
    if shared.as_json:
        rows: list[Json] = [
            {
                "line": fault.line,
                "column": fault.column,
                "level": fault.level,
                "message": fault.message,
                "remedy": fault.hint,
            }
            for fault in faults
        ]
        emit({"path": str(path), "faults": rows})
    else:
        for fault in faults:
            say_line(f"{fault.format(str(path))}{'' if fault.level == 'error' else '  (a warning)'}")
    wrong = sum(fault.level == "error" for fault in faults)
    if wrong:
        raise ConfigError(f"{path}: {wrong} error(s); the app cannot be opened")
    if not faults and not shared.as_json:
        say_line(f"{path}: no errors")


@apps.command()
@click.argument("name")
@click.argument("text", default="Hello")
@flags("params", "json")
def render(shared: Flags, name: str, text: str) -> None:
    """Print the request of a first turn with TEXT, and an estimate of its tokens."""
    from taiwa.conversation.history import begin
    from taiwa.operations.say import preview_turn

    print_preview(preview_turn(begin(open_app(name, shared.params)), text), as_json=shared.as_json)
