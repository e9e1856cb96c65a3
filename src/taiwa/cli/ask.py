"""`taiwa ask`: a question to documents, answered with sources, or asked back."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.indexing import as_whom, named_in
from taiwa.cli.options import Flags, flags
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.conversation.app import App
    from taiwa.talk.talk import Talk
    from taiwa.talk.turn import TurnResult

__all__ = ["ask"]

ASKED_BACK, NOT_THERE = 3, 4
POLICIES = ("look_first", "article", "functions", "never", "always")
JUDGES = ("auto", "typed", "functions", "labels", "decisions", "no-model")
QUOTED = re.compile("(⟦[^⟧]*⟧)")


@dataclass(frozen=True, slots=True)
class Given:
    """What was said beside the question and the shared flags."""

    places: tuple[str, ...]
    who: tuple[str, ...]
    person: str
    policy: str | None
    judge: str | None
    rounds: int | None

    @property
    def anything(self) -> bool:
        """Whether anything was said."""
        return any((self.places, self.who, self.person, self.policy, self.judge, self.rounds is not None))


@click.command()
@click.argument("question")
@named_in
@as_whom
@click.option("--person", default="", metavar="FILE|NAME", help="Who asks: a profile, or a person of `taiwa person`.")
@click.option("--policy", type=click.Choice(POLICIES), help="When to ask back; look_first if not said.")
@click.option("--judge", type=click.Choice(JUDGES), help="How a model judges the dialogue; auto if not said.")
@click.option("--rounds", type=click.IntRange(0, 10), metavar="N", help="At most so many questions back in a row.")
@flags("model", "session", "go_on", "json", "verbose", "max_cost", "no_log", "store")
def ask(shared: Flags, question: str, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Look QUESTION (`-` for standard input) up in documents, and answer with sources or ask back.

    Without a model the passages answer themselves. Without --in all indexes are looked into; without any, a handbook that
    comes along. On a terminal a question back can be answered at once; -c replies to it later, with a number, in words, or
    "just answer". The exit code is 3 where it asked back, 4 where the documents do not answer, or may not.

    \b
    taiwa ask "How many days of annual leave do I have in Galway?"
    taiwa ask 領収書をなくしたら --in ~/handbook -v
    taiwa ask "leave" --in handbook --person me.yaml --as group:hr
    taiwa ask -c 2
    taiwa ask "Who approves a journey?" -m openai:NAME --rounds 1 --json | jq .claims
    """
    from taiwa.cli.opening import open_talk, read_text

    text = read_text(question)
    talk = open_talk(shared, _app(shared, Given(**given)))
    live = sys.stdin.isatty() and sys.stdout.isatty() and not shared.as_json
    said = _one(talk, text, shared)
    while live and _act(said) == "ask":
        reply = click.prompt("", prompt_suffix="> ", default="", show_default=False, err=True)
        if not reply.strip():
            break
        said = _one(talk, reply, shared)
    delta = _delta(said)
    if _act(said) == "ask":
        raise click.exceptions.Exit(ASKED_BACK)
    found = bool(delta.get("documented")) and not delta.get("is_uncertain")
    if _act(said) == "hand_over" or (_act(said) == "search" and not found):
        raise click.exceptions.Exit(NOT_THERE)


def _app(shared: Flags, given: Given) -> "App | str":
    """The app with what was said as its parameters; nothing to open where an old conversation goes on."""
    from taiwa.apps.catalogue import find

    if shared.go_on or (shared.session and shared.desk().store.refs.has(shared.session)):
        if given.anything:
            raise InputError(
                "a conversation that goes on keeps where it looks, for whom, and how; leave these options out"
            )
        return "ask"
    values: dict[str, Json] = {
        "in": list[Json](_places(shared, given.places)),
        "as": list[Json](given.who),
        "user": str(Path(given.person).absolute()) if Path(given.person).is_file() else given.person,
        "policy": given.policy,
        "assess_by": given.judge,
        "max_questions": given.rounds,
    }
    return find("ask").opened({name: each for name, each in values.items() if each})


def _places(shared: Flags, places: tuple[str, ...]) -> list[str]:
    """The names of indexes; a folder is read first, with a bar on a terminal."""
    from taiwa.cli.indexing import chosen, open_library
    from taiwa.talk.asking import SHIPPED

    own = [place for place in places if place != SHIPPED]
    if not own:
        return list(places)
    with open_library(shared) as library:
        return [index.name for index in chosen(library, own, shared.settings())] + [SHIPPED] * (SHIPPED in places)


def _one(talk: "Talk", text: str, shared: Flags) -> "TurnResult":
    """Have one turn and print what came of it."""
    from taiwa.cli.hear import bill_line, told
    from taiwa.cli.screen import emit, tell
    from taiwa.kernel.values import Note, TextDelta
    from taiwa.talk.turn import TurnResult

    said: TurnResult | None = None
    notes: list[Note] = []
    for event in talk.stream(text):
        if isinstance(event, TurnResult):
            said = event
        elif not isinstance(event, TextDelta):
            notes.append(event)
    if said is None:
        raise AssertionError("a stream of a turn ends with the turn")
    for note in notes:
        if note.level == "warning" or (shared.verbose and note.code != "decision"):
            tell(note.text, "yellow")
    if shared.as_json:
        emit(_object(text, told(said)))
        return said
    _print(said.text)
    if shared.verbose:
        for line in _details(_delta(said)):
            tell(line)
        tell(f"{said.session} {said.node[:12]} · {bill_line(said.spent)}")
    return said


def _print(text: str) -> None:
    """Print an answer; on a terminal what is quoted stands out."""
    from rich.text import Text

    from taiwa.cli.screen import console, plain, say_line

    if not sys.stdout.isatty():
        say_line(text)
        return
    shown = Text()
    for part in QUOTED.split(plain(text)):
        shown.append(
            part.strip("⟦⟧") if QUOTED.fullmatch(part) else part, "bold yellow" if QUOTED.fullmatch(part) else ""
        )
    console().print(shown)


def _object(question: str, whole: dict[str, Json]) -> dict[str, Json]:
    """A turn as one object: what was asked, decided, looked up and answered, with its bill."""
    delta = whole["delta"] if isinstance(whole["delta"], dict) else {}
    claims = [claim for claim in _list(delta.get("claims")) if isinstance(claim, dict)]
    cited = [each for claim in claims for each in _list(claim.get("citations"))]
    kept = ("act", "policy", "reasons", "language", "numbers", "scores", "evidence", "query", "queries", "passages")
    answered = ("documented", "is_uncertain", "source", "missing", "assumption", "case")
    return {
        "question": question,
        **{name: delta.get(name) for name in kept},
        "answer": delta.get("answer") if delta.get("act") == "search" else None,
        "claims": list[Json](claims),
        "citations": [each for at, each in enumerate(cited) if each not in cited[:at]],
        "options": delta.get("options") or [],
        **{name: delta.get(name) for name in answered},
        **{name: each for name, each in whole.items() if name != "delta"},
    }


def _details(delta: dict[str, Json]) -> list[str]:
    """The act and why, the scores, the evidence, the query and the hits, a line each."""
    lines = [f"{delta.get('policy')}: {delta.get('act')} ({', '.join(map(str, _list(delta.get('reasons'))))})"]
    for name in ("numbers", "scores", "evidence"):
        held = delta.get(name)
        if isinstance(held, dict):
            lines.append(f"{name}: " + ", ".join(f"{key} {_shown(each)}" for key, each in held.items()))
    lines += [f"looked up: {query}" for query in _list(delta.get("queries"))]
    for hit in _list(delta.get("passages")):
        if isinstance(hit, dict):
            place = " › ".join((str(hit.get("path")), *map(str, _list(hit.get("heading")))))
            page = f", page {hit['page']}" if hit.get("page") else ""
            lines.append(f"  {hit.get('score'):>8}  {place}{page}")
    return lines


def _shown(held: Json) -> str:
    return " ".join(map(str, held)) if isinstance(held, list) else str(held)


def _list(held: Json) -> list[Json]:
    return held if isinstance(held, list) else []


def _delta(said: "TurnResult") -> dict[str, Json]:
    return said.delta if isinstance(said.delta, dict) else {}


def _act(said: "TurnResult") -> Json:
    return _delta(said).get("act")
