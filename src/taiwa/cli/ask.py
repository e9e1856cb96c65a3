"""Questions to documents, and user profiles: ask, user."""

import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import (
    CommonOptions,
    Group,
    common_options,
    index_option,
    open_session,
    principal_option,
    read_params,
    require_prompt,
)
from taiwa.cli.output import (
    NOT_ANSWERED,
    ask_details,
    bill_line,
    console,
    print_each,
    print_item,
    print_json,
    print_line,
    print_no_answer,
    print_notice,
    print_rows,
    table,
    wait_for_turn,
)
from taiwa.flows.ask.types import Feedback, UserProfile, parse_verdict
from taiwa.i18n import _, ngettext, translated, user_language
from taiwa.kernel.attachments import path_kind
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import plain
from taiwa.operations.result_json import (
    ask_to_json,
    learned_to_json,
    person_to_json,
    profile_to_json,
    thresholds_of,
)
from taiwa.sessions.users import UserProfiles, load_profile, set_profile_value, write_profile

if TYPE_CHECKING:
    from taiwa.conversation.app import App
    from taiwa.flows.ask.ask_result import AskResult
    from taiwa.sessions.session import Session

USAGE = "ask takes a QUESTION, piped text, or a file (-f)"
ASKED_BACK = 3
POLICIES = ("look_first", "article", "functions", "never", "always")
ASSESS_BY = ("documents", "auto", "typed", "functions", "no-model")
QUOTED = re.compile("(⟦[^⟧]*⟧)")


@click.command()
@click.argument("question", required=False)
@index_option
@principal_option
@click.option(
    "--user", default="", metavar="FILE|NAME", help="Ask as this user of `taiwa user`; a FILE is stored as one."
)
@click.option(
    "--policy",
    metavar="NAME|FILE.md",
    help=f"Set when to ask for clarification: {', '.join(POLICIES)}, or a policy file.  [default: look_first]",
)
@click.option(
    "--assess-by",
    type=click.Choice(ASSESS_BY),
    help="Set how the dialogue is assessed: by the documents found, or by a model.  [default: documents]",
)
@click.option(
    "--max-questions", type=click.IntRange(0, 10), metavar="N", help="Ask at most N clarifying questions in a row."
)
@click.option("--quote", is_flag=True, help="Answer only with sentences of the documents, which cannot be misquoted.")
@common_options(
    "model", "temperature", "max_tokens", "session", "continue_latest", "fragments",
    "as_json", "verbose", "max_cost", "retry_paid", "no_store", "store",
)  # fmt: skip
def ask(
    common: CommonOptions,
    question: str | None,
    indexes: tuple[str, ...],
    audience: tuple[str, ...],
    user: str,
    policy: str | None,
    assess_by: str | None,
    max_questions: int | None,
    quote: bool,
) -> None:
    """Search documents for QUESTION, and answer with citations or ask for clarification.

    Piped text is appended to QUESTION after an empty line; without QUESTION, or with `-`, it is the question. Without a model
    the answer is quoted from the passages. Without --in all indexes are searched; if there are none, the bundled example
    handbook. On a terminal a clarifying question can be answered at once; -c replies to it later, with a number, in words, or
    "just answer". The exit code is 3 after a clarifying question, 4 if the documents do not, or may not, contain the answer.

    \b
    taiwa ask "How many days of annual leave do I have in Galway?"
    taiwa ask 領収書をなくしたら --in ~/handbook -v
    taiwa ask "leave" --in handbook --user me.yaml --as group:hr
    taiwa ask -c 2
    taiwa ask "Who approves a journey?" -m openai:NAME --max-questions 1 --json | jq .claims
    """
    text = require_prompt(question, USAGE, common.fragments)
    profile = _read_profile(user)
    name = user if profile is None else profile.name
    params: dict[str, Json] = {
        "in": [*indexes], "as": [*audience], "user": name, "policy": policy, "assess_by": assess_by,
        "max_questions": max_questions, "quote": quote or None,
    }  # fmt: skip
    session = open_session(common, _app(common, params))
    if profile is not None:
        UserProfiles(session.repository.store).put(profile)
    live = sys.stdin.isatty() and sys.stdout.isatty() and not common.as_json
    code = _turn(session, text, common)
    while live and code == ASKED_BACK:
        reply = click.prompt("", prompt_suffix="> ", default="", show_default=False, err=True)
        if not reply.strip():
            break
        code = _turn(session, reply, common)
    if code:
        raise click.exceptions.Exit(code)


def _exit_code(result: "AskResult") -> int:
    if (act := result.act_name) == "ask":
        return ASKED_BACK
    return 0 if act == "advise" or (act == "search" and result.is_answered) else NOT_ANSWERED


def _read_profile(user: str) -> UserProfile | None:
    """Read the file of a profile; None for the name of a user."""
    if path_kind(user) != "file":
        return None
    profile = load_profile(Path(user))
    return profile if profile.name else replace(profile, name=Path(user).stem)


def _app(common: CommonOptions, params: Mapping[str, Json]) -> "App | str":
    """Return the app with parameters; an existing conversation keeps those that it has."""
    from taiwa.operations.documents import open_ask_app

    if common.continues:
        if any(each not in (None, "", []) for each in params.values()):
            raise InputError("an existing conversation keeps its indexes, user and policy; remove these options")
        return "ask"
    if not params["in"]:
        return open_ask_app(common.settings(), params)
    from taiwa.cli.index import reporter

    return open_ask_app(common.settings(), params, reporter())


def _turn(session: "Session", text: str, common: CommonOptions) -> int:
    """Run one turn, print its result, and return the exit code."""
    turn, notes = wait_for_turn(session.stream(text))
    result, answer = turn.ask, turn.text
    assert result is not None, "a turn of the app ask has a result"
    code = _exit_code(result)
    for note in notes:
        if note.level == "warning" or common.verbose:
            print_notice(translated(note.text, user_language()), "yellow")
    if common.as_json:
        print_json(ask_to_json(text, turn))
        return code
    if code:
        print_no_answer(answer)
    else:
        _print_answer(answer)
    if common.verbose:
        print_each(ask_details(result))
        print_notice(f"{turn.session} {turn.node[:12]} · {bill_line(turn.spent)}")
    return code


def _print_answer(text: str) -> None:
    """Print an answer; on a terminal quotations are highlighted."""
    if not sys.stdout.isatty():
        print_line(text)
        return
    from rich.text import Text

    from taiwa.cli.line_breaks import Wrapped

    shown = Text()
    for part in QUOTED.split(plain(text)):
        is_quoted = QUOTED.fullmatch(part)
        shown.append(part.strip("⟦⟧") if is_quoted else part, "bold yellow" if is_quoted else "")
    console().print(Wrapped(shown))


@click.group(cls=Group)
def user() -> None:
    """Manage user profiles: department, office, language, how readily to ask for clarification, and feedback.

    \b
    taiwa user set ann office=Osaka department=Sales language=en
    taiwa user set ann eagerness=0.8          ask clarifying questions more often (0 to 1)
    taiwa user rate ann should_have_asked     or good, bad, should_not_have_asked
    taiwa user show ann                       show the profile, and what feedback has changed
    taiwa user reset ann                      delete the feedback
    """


def _users(common: CommonOptions, *, reading: bool = False) -> UserProfiles:
    return UserProfiles(common.repository(reading=reading).store)


@user.command("list")
@common_options("as_json", "store")
def list_(common: CommonOptions) -> None:
    """List the users.

    \b
    taiwa user list
    """
    users = common.repository(reading=True).store.users.list()
    rows = [(each.name, str(each.feedback), str(each.sessions)) for each in users]
    none = _("there are no users yet; create one with taiwa user set NAME office=Osaka")
    heads = (_("user"), _("feedback"), _("conversations"))
    print_rows(users, heads, rows, frozenset({1, 2}), as_json=common.as_json, none=none)


@user.command("show")
@click.argument("name")
@common_options("as_json", "store")
def show_(common: CommonOptions, name: str) -> None:
    """Show the profile of NAME, its thresholds with and without feedback, and the feedback.

    \b
    taiwa user show ann
    """
    users = _users(common)
    profile = users.get(name)
    if common.as_json:
        print_json(person_to_json(profile, users.feedback(name)))
        return
    print_line(profile.name, "bold")
    facts = [("language", profile.language)] if profile.language else []
    table((), [*facts, *profile.facts] or [("no", "facts")])
    print_line("")
    own, moved = thresholds_of(profile), thresholds_of(replace(profile, thresholds=profile.effective_thresholds))
    rows = [(each, f"{own[each]:g}", f"{moved[each]:g}") for each in own]
    table((_("threshold"), _("own"), _("with feedback")), rows, frozenset({1, 2}))
    print_line("")
    counts = Counter(each.verdict for each in users.feedback(name))
    ratings = ", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())) or "none yet"
    print_line(f"clarifying questions are welcome: {profile.tolerance.mean:.0%} (feedback: {ratings})")


@user.command("set")
@click.argument("name")
@click.argument("facts", nargs=-1, metavar="[KEY=VALUE]…")
@click.option("--file", "file", type=click.Path(path_type=Path), help="Read a profile in YAML first.")
@common_options("as_json", "store")
def set_(common: CommonOptions, name: str, facts: tuple[str, ...], file: Path | None) -> None:
    """Set facts of NAME, `language`, or thresholds such as `eagerness`. `KEY=` deletes a fact.

    \b
    taiwa user set ann office=Osaka language=en
    """
    users = _users(common)
    profile = load_profile(file) if file else users.get(name) if users.has(name) else UserProfile(name)
    for key, value in read_params(facts, "a fact").items():
        profile = set_profile_value(profile, key, value)
    users.put(replace(profile, name=name))
    print_item(profile_to_json(users.get(name)), f"{name}: saved", as_json=common.as_json)


@user.command("rate")
@click.argument("name")
@click.argument("verdict")
@click.option("--asked", is_flag=True, help="Rate a clarifying question (for good and bad).")
@common_options("as_json", "store")
def rate_(common: CommonOptions, name: str, verdict: str, asked: bool) -> None:
    """Store how NAME rates the last turn: good, bad, should_have_asked or should_not_have_asked.

    \b
    taiwa user rate ann good
    """
    meant = parse_verdict(verdict)
    asked = asked or meant == "should_not_have_asked"
    profile = _users(common).add_feedback(name, Feedback(meant, asked))
    item: Json = {"user": profile.name, "verdict": meant, "learned": learned_to_json(profile)}
    line = f"{profile.name}: clarifying questions are welcome: {profile.tolerance.mean:.0%}"
    print_item(item, line, as_json=common.as_json)


@user.command("reset")
@click.argument("name")
@common_options("as_json", "store")
def reset_(common: CommonOptions, name: str) -> None:
    """Delete the feedback of NAME, and so its effect on thresholds; the profile stays.

    \b
    taiwa user reset ann
    """
    count = common.repository().store.users.clear_feedback(name)
    line = ngettext("{name}: {n} rating deleted", "{name}: {n} ratings deleted", count, name=name)
    print_item({"user": name, "deleted": count}, line, as_json=common.as_json)


@user.command("remove")
@click.argument("name")
@common_options("as_json", "store")
def remove_(common: CommonOptions, name: str) -> None:
    """Delete the user NAME with profile and feedback; the conversations stay, without a user.

    \b
    taiwa user remove ann
    """
    common.repository().store.users.delete(name)
    print_item({"user": name, "removed": True}, f"{name}: removed", as_json=common.as_json)


@user.command("export")
@click.argument("name")
@common_options("as_json", "store")
def export_(common: CommonOptions, name: str) -> None:
    """Write the profile of NAME as YAML, which `set --file` reads; with --json everything that is stored, including feedback.

    \b
    taiwa user export ann > ann.yaml
    """
    users = _users(common, reading=True)
    profile = users.get(name)
    if common.as_json:
        feedback: list[Json] = [
            {"verdict": each.verdict, "asked": each.asked, "decision": each.decision} for each in users.feedback(name)
        ]
        sessions: list[Json] = list(common.repository(reading=True).store.users.sessions(name))
        print_json({**profile_to_json(profile), "feedback": feedback, "sessions": sessions})
    else:
        print_line(write_profile(profile).rstrip("\n"))
