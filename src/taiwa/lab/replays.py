"""Recorded texts of real models played again: as a stream, in pieces of three kinds, through what watches every answer.

In each turn the model is taken to write all of the rest, the recorded result and what follows included, so the watch has to
cut it at the call. The calls must be those of the whole text, at the same places, and text and results joined the record.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from random import Random
from types import MappingProxyType

from taiwa.flows.interrupting import Interrupt
from taiwa.flows.protocol import Call, Event, Result, Said, decode, encode
from taiwa.kernel.records import Json, value
from taiwa.lab.arithmetic import Sum, recorded_sum
from taiwa.lab.native import Cut, Heard, conversed
from taiwa.lab.recordings import Conversation, Transcript, recordings

__all__ = ["CHUNKINGS", "Tally", "replayed"]

TOKEN = re.compile(r" ?[A-Za-z]{1,7}| ?[0-9]{1,3}|\n+| ?[^\w\s]{1,3}|\s|.", re.DOTALL)
LONGEST_PIECE = 24
OPENINGS: Mapping[str, tuple[tuple[str, re.Pattern[str]], ...]] = MappingProxyType(
    {
        "gsm": (("a call that is not finished", re.compile("<<")),),
        "fence": (("a block that is not closed", re.compile(r"^```python", re.MULTILINE)),),
        "react": (
            ("an action that is none", re.compile(r"^Action\b", re.MULTILINE)),
            ("an observation without a call", re.compile(r"^Observation\b", re.MULTILINE)),
        ),
    }
)
"""What looks like a part of a call and stands in words that hold none."""


@value
class Tally:
    """What came of playing recordings again.

    `mismatches` names the texts for which something differs, and what; `hazards` counts what looks like a call and is not
    one, or has no result. `sums` are the recorded calculations that our calculator did not give: refused, or another value.
    """

    texts: int
    calls: int
    results: int
    mismatches: tuple[str, ...]
    hazards: Mapping[str, int]
    calculated: int = 0
    sums: tuple[Sum, ...] = ()

    @property
    def parsed(self) -> float:
        """The part of the recorded calculations that the calculator reads."""
        return 1 - sum(each.agreement == "refused" for each in self.sums) / self.calculated if self.calculated else 1.0


def _tokens(_: Random, text: str) -> Iterator[str]:
    return (found[0] for found in TOKEN.finditer(text))


def _anywhere(random: Random, text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        size = random.randint(1, LONGEST_PIECE)
        yield text[at : at + size]
        at += size


def _characters(_: Random, text: str) -> Iterator[str]:
    return iter(text)


CHUNKINGS: Mapping[str, Callable[[Random, str], Iterator[str]]] = MappingProxyType(
    {"tokens": _tokens, "random cuts": _anywhere, "characters": _characters}
)
"""Ways to cut a stream: about as tokens do, anywhere, and everywhere."""


def replayed(rows: Iterable[Mapping[str, Json]], *, seed: int = 0) -> Tally:
    """Play recorded rows again, and count.

    Raises:
        InputError: a row is of no corpus that is known.
    """
    counts, hazards, wrong, sums = Counter[str](), Counter[str](), list[str](), list[Sum]()
    for recording in recordings(rows):
        cuts = _cuts(f"{seed} {recording.id}")
        if isinstance(recording, Conversation):
            heard = conversed(recording, cuts)
        else:
            heard = _played(recording, cuts)
        counts.update({"texts": 1, "calls": heard.calls, "results": heard.results, "calculated": len(heard.sums)})
        hazards.update(heard.hazards)
        wrong += (f"{recording.id}: {each}" for each in heard.differing)
        sums += (each for each in heard.sums if each.agreement not in ("equal", "rounded"))
    return Tally(
        counts["texts"],
        counts["calls"],
        counts["results"],
        tuple(wrong),
        dict(hazards),
        counts["calculated"],
        tuple(sums),
    )


def _cuts(seed: str) -> Mapping[str, Cut]:
    """The ways to cut, each from its own seed, so that none depends on what was played before."""
    return {name: partial(cut, Random(f"{seed} {name}")) for name, cut in CHUNKINGS.items()}  # noqa: S311  (no secret)


def _played(recording: Transcript, cuts: Mapping[str, Cut]) -> Heard:
    events = decode(recording.text, recording.protocol, recording.names)
    differing = [name for name, cut in cuts.items() if list(_streamed(recording, cut)) != list(_calls(events))]
    if encode(events) != recording.text:
        differing.append("the events written again")
    results = sum(isinstance(event, Result) for event in events)
    calls = sum(isinstance(event, Call) for event in events)
    return Heard(calls, results, tuple(differing), _hazards(recording, events), tuple(_sums(recording, events)))


def _calls(events: Iterable[Event]) -> Iterator[tuple[int, str, str, bool]]:
    """Where each call ends, and what it says."""
    at = 0
    for event in events:
        at += len(event.text)
        if isinstance(event, Call):
            yield at, event.name, event.input, event.final


def _streamed(recording: Transcript, cut: Cut) -> Iterator[tuple[int, str, str, bool]]:
    """The same from answers in pieces, each cut by what watches it and followed by the recorded result."""
    text, scanner, at = recording.text, recording.protocol.scanner(recording.names), 0
    while (length := _watched(Interrupt(scanner), cut(text[at:]))) is not None:
        call = scanner.feed(text[at : at + length])
        if call is None or call.end != length:
            return
        at += length
        yield at, call.name, call.input, call.final
        end = recording.protocol.recorded(text, at)
        scanner.skip(text[at:end])
        at = end


def _watched(watch: Interrupt, pieces: Iterable[str]) -> int | None:
    """Where an answer is cut; None where it is not, or where another part of it was shown than is kept."""
    shown, said = 0, 0
    for piece in pieces:
        seen = watch.feed(piece)
        shown, said = shown + len(seen.show), said + len(piece)
        if seen.cut is not None:
            return seen.cut if shown == seen.cut <= said else None
    return None


def _hazards(recording: Transcript, events: Sequence[Event]) -> Mapping[str, int]:
    found = Counter[str]()
    for place, event in enumerate(events):
        last = place + 1 == len(events)
        if isinstance(event, Said):
            found.update({name: len(form.findall(event.text)) for name, form in OPENINGS[recording.protocol.name]})
            if last and _is_open(recording, event.text):
                found[OPENINGS[recording.protocol.name][0][0]] -= 1
                found["a call with which the text ends"] += 1
        elif isinstance(event, Call) and (last or not isinstance(events[place + 1], Result)):
            found["a call without a result"] += 1
    return {name: count for name, count in found.items() if count}


def _is_open(recording: Transcript, text: str) -> bool:
    scanner = recording.protocol.scanner(recording.names)
    return scanner.feed(text) is None and scanner.open


def _sums(recording: Transcript, events: Sequence[Event]) -> Iterator[Sum]:
    """The calculations whose result is in the text."""
    if recording.protocol.name == "gsm":
        for event, after in pairwise(events):
            if isinstance(event, Call) and isinstance(after, Result):
                yield recorded_sum(event.input, after.text.removesuffix(">>"))
