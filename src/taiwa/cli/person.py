"""`taiwa person`: who asks, what is known of them, and what their feedback has taught."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import Flags, flags, read_params
from taiwa.cli.screen import emit, say_line, table, tell
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.flows.person import Person
    from taiwa.talk.people import People

__all__ = ["person"]


@click.group()
def person() -> None:
    """Keep who asks: department, office, language, how eagerly to ask them back, and their feedback.

    \b
    taiwa person set ann office=Osaka department=Sales language=en
    taiwa person set ann asking=0.8          ask back more readily (0 least, 1 most)
    taiwa person tell ann should_have_asked  or good, bad, should_not_have_asked
    taiwa person show ann                    the profile, and what feedback has taught
    taiwa person reset ann                   forget the feedback
    """


def _people(shared: Flags) -> "People":
    from taiwa.talk.people import People

    return People(shared.desk().store)


@person.command("list")
@flags("json", "store")
def list_(shared: Flags) -> None:
    """List who is known."""
    kept = shared.desk().store.users.list()
    if shared.as_json:
        emit([{"person": each.name, "verdicts": each.feedback, "sessions": each.sessions} for each in kept])
    elif not kept:
        tell("nobody is known yet: taiwa person set NAME office=Osaka")
    else:
        rows = [(each.name, str(each.feedback), str(each.sessions)) for each in kept]
        table(("person", "verdicts", "conversations"), rows, frozenset({1, 2}))


@person.command("show")
@click.argument("name")
@flags("json", "store")
def show_(shared: Flags, name: str) -> None:
    """Show the profile of NAME, its thresholds as feedback has moved them, and how that came."""
    people = _people(shared)
    found = people.get(name)
    told = Counter(each.verdict for each in people.feedback(name))
    if shared.as_json:
        verdicts: dict[str, Json] = {str(verdict): count for verdict, count in told.items()}
        emit({**_profile(found), "learnt": _learnt(found), "verdicts": verdicts})
        return
    say_line(found.name, "bold")
    facts = [("language", found.language)] if found.language else []
    table((), [*facts, *found.facts] or [("nothing", "is known of them")])
    say_line("")
    own, moved = _thresholds(found), _thresholds(replace(found, thresholds=found.limits))
    rows = [(each, f"{own[each]:g}", f"{moved[each]:g}") for each in own]
    table(("threshold", "own", "with feedback"), rows, frozenset({1, 2}))
    say_line("")
    heard = ", ".join(f"{verdict} {count}" for verdict, count in sorted(told.items())) or "none yet"
    say_line(f"a question back is welcome: {found.patience.mean:.0%} (verdicts: {heard})")


@person.command("set")
@click.argument("name")
@click.argument("facts", nargs=-1, metavar="[KEY=VALUE]…")
@click.option("--file", "file", type=click.Path(path_type=Path), help="Take everything from a profile in YAML first.")
@flags("json", "store")
def set_(shared: Flags, name: str, facts: tuple[str, ...], file: Path | None) -> None:
    """Say what is known of NAME: facts, `language`, or thresholds such as `asking`. `KEY=` takes one out."""
    from taiwa.apps.profile import changed, load_profile
    from taiwa.flows.person import Person

    people = _people(shared)
    found = people.get(name) if people.has(name) else Person(name)
    if file is not None:
        found = load_profile(file)
    found = replace(found, name=name)
    for key, value in read_params(facts).items():
        found = changed(found, key, value)
    people.put(replace(found, name=name))
    if shared.as_json:
        emit(_profile(people.get(name)))
    else:
        say_line(f"{name}: kept")


@person.command("tell")
@click.argument("name")
@click.argument("verdict")
@click.option("--asked", is_flag=True, help="The act was a question back (for good and bad).")
@flags("json", "store")
def tell_(shared: Flags, name: str, verdict: str, asked: bool) -> None:
    """Keep what NAME says of the last act: good, bad, should_have_asked or should_not_have_asked."""
    from taiwa.flows.person import Feedback, read_verdict

    meant = read_verdict(verdict)
    asked = asked or meant == "should_not_have_asked"
    found = _people(shared).tell(name, Feedback(meant, asked))
    if shared.as_json:
        emit({"person": found.name, "verdict": meant, "learnt": _learnt(found)})
    else:
        say_line(f"{found.name}: a question back is welcome: {found.patience.mean:.0%}")


@person.command("reset")
@click.argument("name")
@flags("json", "store")
def reset_(shared: Flags, name: str) -> None:
    """Forget what NAME said of acts, and so all that was learnt; the profile stays."""
    count = shared.desk().store.users.clear_feedback(name)
    if shared.as_json:
        emit({"person": name, "forgotten": count})
    else:
        say_line(f"{name}: {count} verdict(s) forgotten")


@person.command("remove")
@click.argument("name")
@flags("json", "store")
def remove_(shared: Flags, name: str) -> None:
    """Delete NAME with profile and feedback; their conversations stay, and are nobody's."""
    shared.desk().store.users.delete(name)
    if shared.as_json:
        emit({"removed": name})
    else:
        say_line(f"{name}: removed")


@person.command("export")
@click.argument("name")
@flags("json", "store")
def export_(shared: Flags, name: str) -> None:
    """Write the profile of NAME as YAML, which `set --file` reads; with --json all that is kept, feedback too."""
    from taiwa.apps.profile import write_profile

    people = _people(shared)
    found = people.get(name)
    if shared.as_json:
        told: list[Json] = [
            {"verdict": each.verdict, "asked": each.asked, "decision": each.decision} for each in people.feedback(name)
        ]
        sessions: list[Json] = list(shared.desk().store.users.sessions(name))
        emit({**_profile(found), "verdicts": told, "sessions": sessions})
    else:
        say_line(write_profile(found).rstrip("\n"))


def _thresholds(found: "Person") -> dict[str, float]:
    own = found.thresholds
    return {name: float(getattr(own, name)) for name in type(own).__dataclass_fields__}


def _profile(found: "Person") -> dict[str, Json]:
    thresholds: dict[str, Json] = {**_thresholds(found)}
    return {
        "person": found.name,
        "language": found.language,
        "facts": dict[str, Json](found.facts),
        "thresholds": thresholds,
    }


def _learnt(found: "Person") -> dict[str, Json]:
    return {"welcome": round(found.patience.mean, 4), "unclear": round(found.limits.unclear, 4)}
