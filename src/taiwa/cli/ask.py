"""Questions to documents, and the users who ask: ask, user."""

import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import Flags, flags, index_option, open_session, principal_option, read_params, read_text
from taiwa.cli.output import bill_line, console, emit, plain, say_line, table, tell, wait_for_turn
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.ask.result import AskResult
    from taiwa.ask.types import UserProfile
    from taiwa.conversation.app import App
    from taiwa.operations.ask import AskOptions
    from taiwa.sessions.session import Session
    from taiwa.sessions.users import UserProfiles

__all__ = ["ask", "user"]

ASKED_BACK, NOT_ANSWERED = 3, 4
POLICIES = ("look_first", "article", "functions", "never", "always")
ASSESS_BY = ("auto", "typed", "functions", "labels", "decisions", "no-model")
QUOTED = re.compile("(⟦[^⟧]*⟧)")


@click.command()
@click.argument("question")
@index_option
@principal_option
@click.option("--user", default="", metavar="FILE|NAME", help="Ask as this user: a profile, or a user of `taiwa user`.")
@click.option("--policy", type=click.Choice(POLICIES), help="Set when to ask back.  [default: look_first]")
@click.option(
    "--assess-by", type=click.Choice(ASSESS_BY), help="Set how a model assesses the dialogue.  [default: auto]"
)
@click.option("--max-questions", type=click.IntRange(0, 10), metavar="N", help="Ask back at most N times in a row.")
@flags("model", "session", "go_on", "json", "verbose", "max_cost", "no_store", "store")
def ask(
    shared: Flags,
    question: str,
    indexes: tuple[str, ...],
    audience: tuple[str, ...],
    user: str,
    policy: str | None,
    assess_by: str | None,
    max_questions: int | None,
) -> None:
    """Search documents for QUESTION (`-` for standard input), and answer with citations or ask back.

    Without a model the answer is quoted from the passages. Without --in all indexes are searched; if there are none, the bundled
    example handbook. On a terminal a question back can be answered at once; -c replies to it later, with a number, in words, or
    "just answer". The exit code is 3 after a question back, 4 if the documents do not answer, or may not.

    \b
    taiwa ask "How many days of annual leave do I have in Galway?"
    taiwa ask 領収書をなくしたら --in ~/handbook -v
    taiwa ask "leave" --in handbook --user me.yaml --as group:hr
    taiwa ask -c 2
    taiwa ask "Who approves a journey?" -m openai:NAME --max-questions 1 --json | jq .claims
    """
    from taiwa.operations.ask import AskOptions

    text = read_text(question)
    options = AskOptions(indexes, audience, user, policy or "", assess_by or "", max_questions)
    talk = open_session(shared, _app(shared, options))
    live = sys.stdin.isatty() and sys.stdout.isatty() and not shared.as_json
    result = _turn(talk, text, shared)
    while live and result.act_name == "ask":
        reply = click.prompt("", prompt_suffix="> ", default="", show_default=False, err=True)
        if not reply.strip():
            break
        result = _turn(talk, reply, shared)
    if result.act_name == "ask":
        raise click.exceptions.Exit(ASKED_BACK)
    if result.act_name == "hand_over" or (result.act_name == "search" and not result.is_answered):
        raise click.exceptions.Exit(NOT_ANSWERED)


def _app(shared: Flags, options: "AskOptions") -> "App | str":
    """Return the app with the options as its parameters; an existing conversation keeps those that it has."""
    from taiwa.operations.ask import AskOptions, open_ask_app

    if shared.go_on or (shared.session and shared.repository().store.refs.has(shared.session)):
        if options != AskOptions():
            raise InputError("an existing conversation keeps its indexes, user and policy; remove these options")
        return "ask"
    from taiwa.cli.index import reporter

    return open_ask_app(shared.settings(), options, reporter())


def _turn(talk: "Session", text: str, shared: Flags) -> "AskResult":
    """Make one turn and print its result."""
    from taiwa.operations.results import ask_to_json

    turn, notes = wait_for_turn(talk.stream(text))
    assert turn.ask is not None, "the turn of an app that looks things up has a result"
    for note in notes:
        if note.level == "warning" or (shared.verbose and note.code != "decision"):
            tell(note.text, "yellow")
    if shared.as_json:
        emit(ask_to_json(text, turn))
        return turn.ask
    _print_answer(turn.text)
    if shared.verbose:
        for line in _details(turn.ask):
            tell(line)
        tell(f"{turn.session} {turn.node[:12]} · {bill_line(turn.spent)}")
    return turn.ask


def _print_answer(text: str) -> None:
    """Print an answer; on a terminal quotations are highlighted."""
    if not sys.stdout.isatty():
        say_line(text)
        return
    from rich.text import Text

    shown = Text()
    for part in QUOTED.split(plain(text)):
        is_quoted = QUOTED.fullmatch(part)
        shown.append(part.strip("⟦⟧") if is_quoted else part, "bold yellow" if is_quoted else "")
    console().print(shown)


def _details(result: "AskResult") -> list[str]:
    """Describe the act with its reasons, the scores, the evidence, the queries and the passages, a line each."""
    decision = result.decision
    lines = [f"{decision.policy}: {result.act_name} ({', '.join(decision.reasons)})"]
    figures: dict[str, dict[str, Json]] = {
        "numbers": dict(decision.numbers),
        "scores": result.scores,
        "evidence": result.evidence,
    }
    for name, held in figures.items():
        if held:
            lines.append(f"{name}: " + ", ".join(f"{key} {_figure(each)}" for key, each in held.items()))
    lines += [f"searched for: {query}" for query in result.queries]
    for passage in result.passages:
        place = " › ".join((passage.source, *passage.heading))
        page = f", page {passage.page}" if passage.page else ""
        lines.append(f"  {passage.score:>8}  {place}{page}")
    return lines


def _figure(held: Json) -> str:
    return " ".join(map(str, held)) if isinstance(held, list) else str(held)


@click.group()
def user() -> None:
    """Manage user profiles: department, office, language, how readily to ask back, and feedback.

    \b
    taiwa user set ann office=Osaka department=Sales language=en
    taiwa user set ann asking=0.8          ask back more readily (0 least, 1 most)
    taiwa user tell ann should_have_asked  or good, bad, should_not_have_asked
    taiwa user show ann                    show the profile, and what feedback has changed
    taiwa user reset ann                   delete the feedback
    """


def _people(shared: Flags) -> "UserProfiles":
    from taiwa.sessions.users import UserProfiles

    return UserProfiles(shared.repository().store)


@user.command("list")
@flags("json", "store")
def list_(shared: Flags) -> None:
    """List the users."""
    kept = shared.repository().store.users.list()
    if shared.as_json:
        emit([{"user": each.name, "verdicts": each.feedback, "sessions": each.sessions} for each in kept])
    elif not kept:
        tell("there are no users yet; create one with taiwa user set NAME office=Osaka")
    else:
        rows = [(each.name, str(each.feedback), str(each.sessions)) for each in kept]
        table(("user", "verdicts", "conversations"), rows, frozenset({1, 2}))


@user.command("show")
@click.argument("name")
@flags("json", "store")
def show_(shared: Flags, name: str) -> None:
    """Show the profile of NAME, its thresholds with and without feedback, and the feedback."""
    people = _people(shared)
    found = people.get(name)
    told = Counter(each.verdict for each in people.feedback(name))
    if shared.as_json:
        verdicts: dict[str, Json] = {str(verdict): count for verdict, count in told.items()}
        emit({**_profile(found), "learnt": _learnt(found), "verdicts": verdicts})
        return
    say_line(found.name, "bold")
    facts = [("language", found.language)] if found.language else []
    table((), [*facts, *found.facts] or [("no", "facts")])
    say_line("")
    own, moved = _thresholds(found), _thresholds(replace(found, thresholds=found.limits))
    rows = [(each, f"{own[each]:g}", f"{moved[each]:g}") for each in own]
    table(("threshold", "own", "with feedback"), rows, frozenset({1, 2}))
    say_line("")
    given = ", ".join(f"{verdict} {count}" for verdict, count in sorted(told.items())) or "none yet"
    say_line(f"a question back is welcome: {found.patience.mean:.0%} (verdicts: {given})")


@user.command("set")
@click.argument("name")
@click.argument("facts", nargs=-1, metavar="[KEY=VALUE]…")
@click.option("--file", "file", type=click.Path(path_type=Path), help="Read a profile in YAML first.")
@flags("json", "store")
def set_(shared: Flags, name: str, facts: tuple[str, ...], file: Path | None) -> None:
    """Set facts of NAME, `language`, or thresholds such as `asking`. `KEY=` deletes a fact."""
    from taiwa.ask.types import UserProfile
    from taiwa.sessions.users import load_profile, set_profile_value

    people = _people(shared)
    found = people.get(name) if people.has(name) else UserProfile(name)
    if file is not None:
        found = load_profile(file)
    found = replace(found, name=name)
    for key, value in read_params(facts).items():
        found = set_profile_value(found, key, value)
    people.put(replace(found, name=name))
    if shared.as_json:
        emit(_profile(people.get(name)))
    else:
        say_line(f"{name}: saved")


@user.command("tell")
@click.argument("name")
@click.argument("verdict")
@click.option("--asked", is_flag=True, help="Rate a question back (for good and bad).")
@flags("json", "store")
def tell_(shared: Flags, name: str, verdict: str, asked: bool) -> None:
    """Store a verdict of NAME on the last act: good, bad, should_have_asked or should_not_have_asked."""
    from taiwa.ask.types import Feedback, read_verdict

    meant = read_verdict(verdict)
    asked = asked or meant == "should_not_have_asked"
    found = _people(shared).add_feedback(name, Feedback(meant, asked))
    if shared.as_json:
        emit({"user": found.name, "verdict": meant, "learnt": _learnt(found)})
    else:
        say_line(f"{found.name}: a question back is welcome: {found.patience.mean:.0%}")


@user.command("reset")
@click.argument("name")
@flags("json", "store")
def reset_(shared: Flags, name: str) -> None:
    """Delete the verdicts of NAME, and so what they changed; the profile stays."""
    count = shared.repository().store.users.clear_feedback(name)
    if shared.as_json:
        emit({"user": name, "deleted": count})
    else:
        say_line(f"{name}: {count} verdict(s) deleted")


@user.command("remove")
@click.argument("name")
@flags("json", "store")
def remove_(shared: Flags, name: str) -> None:
    """Delete NAME with profile and feedback; the conversations stay, without a user."""
    shared.repository().store.users.delete(name)
    if shared.as_json:
        emit({"removed": name})
    else:
        say_line(f"{name}: removed")


@user.command("export")
@click.argument("name")
@flags("json", "store")
def export_(shared: Flags, name: str) -> None:
    """Write the profile of NAME as YAML, which `set --file` reads; with --json everything that is stored, feedback too."""
    from taiwa.sessions.users import write_profile

    people = _people(shared)
    found = people.get(name)
    if shared.as_json:
        verdicts: list[Json] = [
            {"verdict": each.verdict, "asked": each.asked, "decision": each.decision} for each in people.feedback(name)
        ]
        sessions: list[Json] = list(shared.repository().store.users.sessions(name))
        emit({**_profile(found), "verdicts": verdicts, "sessions": sessions})
    else:
        say_line(write_profile(found).rstrip("\n"))


def _thresholds(found: "UserProfile") -> dict[str, float]:
    own = found.thresholds
    return {name: float(getattr(own, name)) for name in type(own).__dataclass_fields__}


def _profile(found: "UserProfile") -> dict[str, Json]:
    thresholds: dict[str, Json] = {**_thresholds(found)}
    return {
        "user": found.name,
        "language": found.language,
        "facts": dict[str, Json](found.facts),
        "thresholds": thresholds,
    }


def _learnt(found: "UserProfile") -> dict[str, Json]:
    return {"welcome": round(found.patience.mean, 4), "unclear": round(found.limits.unclear, 4)}
