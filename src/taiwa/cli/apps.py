"""List, create, check and render apps."""

from pathlib import Path

import click

from taiwa.cli.options import CommonOptions, common_options, open_app
from taiwa.cli.output import print_json, print_line, print_notice, print_preview, table
from taiwa.i18n import ngettext
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.records import Json


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
@common_options("as_json")
def list_(common: CommonOptions) -> None:
    """List your own apps and the built-in ones."""
    from taiwa.apps.catalog import apps as all_apps

    found = all_apps()
    if common.as_json:
        from taiwa.operations.result_json import members

        print_json([members(app, "app=name about origin problem") for app in found])
    else:
        table(("app", "origin", "about"), [(app.name, app.origin, app.problem or app.about) for app in found])


@apps.command("new")
@click.argument("name")
def new_(name: str) -> None:
    """Create a commented app file NAME: a path, or a name in the folder of your apps."""
    from taiwa.apps.catalog import new, user_folder

    path = Path(name) if "/" in name or name.endswith(".md") else user_folder() / f"{name}.md"
    made = new(path, path.stem)
    print_line(str(made))
    print_notice(f"edit it, then: taiwa apps check {name} && taiwa chat {name}")


@apps.command("check")
@click.argument("name")
@common_options("as_json")
def check_(common: CommonOptions, name: str) -> None:
    """Check an app file: list errors with their lines and remedies. The exit code is 2 if there is an error."""
    from taiwa.apps.catalog import check, find_path

    path = find_path(name)
    problems = check(path)
    if common.as_json:
        from taiwa.operations.result_json import members

        rows: list[Json] = [members(problem, "line column level message remedy=hint") for problem in problems]
        print_json({"path": str(path), "problems": rows})
    else:
        for problem in problems:
            print_line(f"{problem.format(str(path))}{'' if problem.level == 'error' else '  (a warning)'}")
    errors = sum(problem.level == "error" for problem in problems)
    if errors:
        raise ConfigError(
            ngettext(
                "{path}: {n} error; the app cannot be opened",
                "{path}: {n} errors; the app cannot be opened",
                errors,
                path=path,
            )
        )
    if not problems and not common.as_json:
        print_line(f"{path}: no errors")


@apps.command()
@click.argument("name")
@click.argument("text", default="Hello")
@common_options("params", "as_json")
def render(common: CommonOptions, name: str, text: str) -> None:
    """Print the request of a first turn with TEXT, and an estimate of its tokens."""
    from taiwa.conversation.history import begin
    from taiwa.operations.say import preview_turn

    print_preview(preview_turn(begin(open_app(name, common.params)), text), as_json=common.as_json)
