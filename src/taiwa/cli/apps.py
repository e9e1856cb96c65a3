"""List, create, check and render apps."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from taiwa.apps.catalog import app_path, check, find_path, new, own_code
from taiwa.apps.catalog import apps as all_apps
from taiwa.cli.options import CommonOptions, Group, common_options, complete_session, confirm, open_app
from taiwa.cli.output import print_item, print_json, print_line, print_notice, print_preview, print_result, print_rows
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.serialization import Json

if TYPE_CHECKING:
    from taiwa.operations.results import UntrustedApp


UNCONFIRMED = "trusting an app requires a confirmation; add --yes"


@click.group(cls=Group)
def apps() -> None:
    """List, create, check and render apps: one Markdown file is one app.

    \b
    taiwa apps list
    taiwa apps new tutor           create a commented app file
    taiwa apps save travel         create an app file from what the latest conversation was set up with
    taiwa apps check tutor.md      list errors with their lines and remedies
    taiwa apps trust               list imported apps, and their models, tools and documents
    taiwa apps render translate -p target_lang=English "文(sentence)です。"
    """


@apps.command("list")
@common_options("as_json")
def list_(common: CommonOptions) -> None:
    """List your own apps and the built-in ones.

    \b
    taiwa apps list
    """
    found = all_apps()
    item = [{"app": app.name, "about": app.about, "origin": app.origin, "problem": app.problem} for app in found]
    rows = [(app.name, app.origin, app.problem or _(app.about)) for app in found]
    print_rows(item, (_("app"), _("origin"), _("about")), rows, as_json=common.as_json)


@apps.command("new")
@click.argument("name")
def new_(name: str) -> None:
    """Create a commented app file NAME: a name in the folder of your apps, or a path that ends with .md.

    \b
    taiwa apps new tutor
    """
    path = app_path(name)
    made = new(path, path.stem)
    print_line(str(made))
    print_notice(f"edit it, then: taiwa apps check {name} && taiwa chat {name}")


@apps.command("save")
@click.argument("name")
@click.argument("conversation", default="", shell_complete=complete_session)
@common_options("as_json", "store")
def save_(common: CommonOptions, name: str, conversation: str) -> None:
    """Create an app file NAME from the setup of a CONVERSATION, by default the latest: instructions, state, documents, tools, type, sampling.

    \b
    taiwa say --in handbook --state 'days int' "Three days of leave, please." && taiwa apps save leave
    """
    from taiwa.operations.apps import save_app

    repository = common.repository(reading=True)
    path = app_path(name)
    app = repository.at(repository.session(conversation)).app
    repository.require_trust(app, "saving it")
    made = save_app(app, path)
    print_item({"path": str(made)}, str(made), as_json=common.as_json)
    if not common.as_json:
        first = "" if all(file.confirmed for file in own_code(made)) else f"taiwa apps confirm {name} && "
        print_notice(f'use it: {first}taiwa say {name} "TEXT"')


@apps.command("check")
@click.argument("name")
@common_options("as_json")
def check_(common: CommonOptions, name: str) -> None:
    """Check an app file: list errors with their lines and remedies. The exit code is 2 if there is an error.

    \b
    taiwa apps check tutor.md
    """
    path = find_path(name)
    problems = check(path)
    if common.as_json:
        rows: list[Json] = [
            {
                "line": each.line, "column": each.column, "level": each.level, "message": each.message,
                "remedy": each.hint,
            }
            for each in problems
        ]  # fmt: skip
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


@apps.command("update")
@click.argument("name", default="", metavar="[CONVERSATION]", shell_complete=complete_session)
@click.argument("path", default="", metavar="[FILE]")
@common_options("as_json", "store")
def update_(common: CommonOptions, name: str, path: str) -> None:
    """Update a conversation, by default the latest, to the current version of its app file; state that fits it is kept.

    FILE is the app file if it is not in an app folder.

    \b
    taiwa apps update tutor-1
    taiwa apps update tutor-1 ./tutor.md
    """
    from taiwa.operations.open_session import update_app

    repository = common.repository()
    session = repository.session(name)
    differs = update_app(repository, session, path)
    changed = _("{session} now uses the current app file", session=session)
    same = _("the app file of {session} has not changed", session=session)
    print_item({"session": session, "changed": differs}, changed if differs else same, as_json=common.as_json)


@apps.command("confirm")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def confirm_(name: str, yes: bool) -> None:
    """Confirm the Python files that the app NAME uses (reducers, tools, the program of its turns): they may run until they change.

    \b
    taiwa apps confirm tutor.md
    """
    from taiwa.conversation.code_files import confirm_file

    files = [file for file in own_code(find_path(name)) if not file.confirmed]
    for file in files:
        print_line(f"{file.path} (sha256 {file.hash[:12]}…)", "bold")
        print_line(file.path.read_text(encoding="utf-8", errors="replace"))
    if files:
        confirm(
            "let this code run?",
            "the code was not confirmed; read it, and add --yes to let it run",
            yes=yes,
        )
        for file in files:
            confirm_file(file)
    print_line(", ".join(f"{file.path.name} is confirmed" for file in files) or f"{name}: nothing to confirm")


@apps.command()
@click.argument("name", default="")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@common_options("as_json", "store")
def trust(common: CommonOptions, name: str, yes: bool) -> None:
    """Trust the imported app NAME: use its model, tools and documents.

    They are shown first. NAME is the name of the app or of a conversation, or the beginning of the app's hash; without NAME,
    list the untrusted apps.

    \b
    taiwa apps trust
    """
    from taiwa.operations.apps import untrusted_apps

    settings = common.settings()
    repository = common.repository(settings, reading=not name)
    found = untrusted_apps(repository, settings, name)
    if not common.as_json:
        print_untrusted(found)
    if name:
        confirm("trust it?" if len(found) == 1 else "trust all of them?", UNCONFIRMED, yes=yes)
        for each in found:
            repository.trust(each.app.hash)
    if common.as_json:
        print_result(found)
    elif name or not found:
        print_line(
            ", ".join(f"{each.app.name} ({each.app.hash[:12]}) is trusted" for each in found) or "all apps are trusted"
        )


def print_untrusted(found: "Iterable[UntrustedApp]") -> None:
    """Print what untrusted apps name, and the conversations that they would continue."""
    for each in found:
        sessions = f", of {', '.join(each.sessions)}" if each.sessions else ""
        print_line(f"{each.app.name} ({each.app.hash[:12]}){sessions}", "bold")
        for line in each.lines() or ("it names no model, tool, program or document",):
            print_line(f"  {line}")


@apps.command()
@click.argument("name")
@click.argument("text", default="Hello")
@common_options("params", "as_json")
def render(common: CommonOptions, name: str, text: str) -> None:
    """Print the request of a first turn with TEXT, and an estimate of its tokens.

    \b
    taiwa apps render translate -p target_lang=English "文(sentence)です。"
    """
    from taiwa.conversation.history import begin
    from taiwa.operations.request_preview import known_tools, preview_turn

    app = open_app(name, common.params)
    print_preview(preview_turn(begin(app), text, known_tools(app)), as_json=common.as_json)
