"""Recorded texts of real models replayed as streams, in pieces of three kinds, through the watcher of every answer.

In each turn the rest of the text is streamed, the recorded result and what follows included, so the watcher must cut it at
the call. The calls must equal those of the whole text, and text and results joined must equal the record.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from random import Random
from types import MappingProxyType

from evals.recorded.corpora import Conversation, Transcript, read_recordings
from evals.recorded.native import Cut, ReplayedConversation, replay_conversation
from evals.recorded.sums import RecordedSum, check_recorded_sum
from taiwa.flows.solve.loops import StopAtCall
from taiwa.flows.solve.tool_call_formats import CallText, ResultText, ScanEvent, TextSegment, decode, encode
from taiwa.kernel.serialization import Json, value

__all__ = ["CHUNKERS", "ReplayCounts", "replay_rows"]

TOKEN = re.compile(r" ?[A-Za-z]{1,7}| ?[0-9]{1,3}|\n+| ?[^\w\s]{1,3}|\s|.", re.DOTALL)
MAX_PIECE_LENGTH = 24
CALL_OPENINGS: Mapping[str, tuple[tuple[str, re.Pattern[str]], ...]] = MappingProxyType(
    {
        "gsm": (("an unfinished call", re.compile("<<")),),
        "fence": (("a block that is not closed", re.compile(r"^```python", re.MULTILINE)),),
        "react": (
            ("an action that is not a call", re.compile(r"^Action\b", re.MULTILINE)),
            ("an observation without a call", re.compile(r"^Observation\b", re.MULTILINE)),
        ),
    }
)
"""Patterns that look like part of a call in text without one."""


@value
class ReplayCounts:
    """The result of replaying recordings.

    `mismatches` names texts that differ, and where; `hazards` counts texts that look like a call but are not one, or have no
    result. `sums` are the recorded calculations that the calculator refuses or answers differently.
    """

    texts: int
    calls: int
    results: int
    mismatches: tuple[str, ...]
    hazards: Mapping[str, int]
    calculated: int = 0
    sums: tuple[RecordedSum, ...] = ()

    @property
    def parsed(self) -> float:
        """The share of the recorded calculations that the calculator accepts."""
        return 1 - sum(each.agreement == "refused" for each in self.sums) / self.calculated if self.calculated else 1.0


def _tokens(_: Random, text: str) -> Iterator[str]:
    return (found[0] for found in TOKEN.finditer(text))


def _random_cuts(random: Random, text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        size = random.randint(1, MAX_PIECE_LENGTH)
        yield text[at : at + size]
        at += size


def _characters(_: Random, text: str) -> Iterator[str]:
    return iter(text)


CHUNKERS: Mapping[str, Callable[[Random, str], Iterator[str]]] = MappingProxyType(
    {"tokens": _tokens, "random cuts": _random_cuts, "characters": _characters}
)
"""Ways to cut a stream: roughly at tokens, anywhere, and after every character."""


def replay_rows(rows: Iterable[Mapping[str, Json]], *, seed: int = 0) -> ReplayCounts:
    """Replay recorded rows and count.

    Raises:
        InputError: the corpus of a row is unknown.
    """
    counts, hazards, wrong, sums = Counter[str](), Counter[str](), list[str](), list[RecordedSum]()
    for recording in read_recordings(rows):
        cuts = _cuts(f"{seed} {recording.id}")
        if isinstance(recording, Conversation):
            replayed = replay_conversation(recording, cuts)
        else:
            replayed = _replay_transcript(recording, cuts)
        counts.update(
            {"texts": 1, "calls": replayed.calls, "results": replayed.results, "calculated": len(replayed.sums)}
        )
        hazards.update(replayed.hazards)
        wrong += (f"{recording.id}: {each}" for each in replayed.differing)
        sums += (each for each in replayed.sums if each.agreement not in ("equal", "rounded"))
    return ReplayCounts(
        counts["texts"],
        counts["calls"],
        counts["results"],
        tuple(wrong),
        dict(hazards),
        counts["calculated"],
        tuple(sums),
    )


def _cuts(seed: str) -> Mapping[str, Cut]:
    """Return the ways to cut, each with its own seed, independent of earlier texts."""
    return {name: partial(cut, Random(f"{seed} {name}")) for name, cut in CHUNKERS.items()}  # noqa: S311  (no secret)


def _replay_transcript(recording: Transcript, cuts: Mapping[str, Cut]) -> ReplayedConversation:
    events = decode(recording.text, recording.protocol, recording.names)
    differing = [name for name, cut in cuts.items() if list(_streamed_calls(recording, cut)) != list(_calls(events))]
    if encode(events) != recording.text:
        differing.append("the events written again")
    results = sum(isinstance(event, ResultText) for event in events)
    calls = sum(isinstance(event, CallText) for event in events)
    return ReplayedConversation(
        calls, results, tuple(differing), _hazards(recording, events), tuple(_sums(recording, events))
    )


def _calls(events: Iterable[ScanEvent]) -> Iterator[tuple[int, str, str, bool]]:
    """Yield the end, name, input and finality of each call."""
    at = 0
    for event in events:
        at += len(event.text)
        if isinstance(event, CallText):
            yield at, event.name, event.input, event.final


def _streamed_calls(recording: Transcript, cut: Cut) -> Iterator[tuple[int, str, str, bool]]:
    """Yield the same from streamed answers, each cut by its watcher and followed by the recorded result."""
    text, scanner, at = recording.text, recording.protocol.scanner(recording.names), 0
    while (length := _watch(StopAtCall(scanner), cut(text[at:]))) is not None:
        call = scanner.feed(text[at : at + length])
        if call is None or call.end != length:
            return
        at += length
        yield at, call.name, call.input, call.final
        end = recording.protocol.result_end(text, at)
        scanner.skip(text[at:end])
        at = end


def _watch(watch: StopAtCall, pieces: Iterable[str]) -> int | None:
    """Return where an answer is cut; None if it is not, or if the text shown differs from the text kept."""
    shown, said = 0, 0
    for piece in pieces:
        seen = watch.feed(piece)
        shown, said = shown + len(seen.show), said + len(piece)
        if seen.cut is not None:
            return seen.cut if shown == seen.cut <= said else None
    return None


def _hazards(recording: Transcript, events: Sequence[ScanEvent]) -> Mapping[str, int]:
    found = Counter[str]()
    for place, event in enumerate(events):
        last = place + 1 == len(events)
        if isinstance(event, TextSegment):
            found.update({name: len(form.findall(event.text)) for name, form in CALL_OPENINGS[recording.protocol.name]})
            if last and _is_open(recording, event.text):
                found[CALL_OPENINGS[recording.protocol.name][0][0]] -= 1
                found["a call with which the text ends"] += 1
        elif isinstance(event, CallText) and (last or not isinstance(events[place + 1], ResultText)):
            found["a call without a result"] += 1
    return {name: count for name, count in found.items() if count}


def _is_open(recording: Transcript, text: str) -> bool:
    scanner = recording.protocol.scanner(recording.names)
    return scanner.feed(text) is None and scanner.open


def _sums(recording: Transcript, events: Sequence[ScanEvent]) -> Iterator[RecordedSum]:
    """Yield the calculations with recorded results."""
    if recording.protocol.name == "gsm":
        for event, after in pairwise(events):
            if isinstance(event, CallText) and isinstance(after, ResultText):
                yield check_recorded_sum(event.input, after.text.removesuffix(">>"))
