"""One turn with state, tools and documents together: questions at desks whose state and documents a right answer needs.

Before each question the user has said one thing, which is recorded; no question changes it, so the state must stay as it is. The
obvious way is one call with the whole documents in the system message, and no tools.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast
from unicodedata import normalize

from evals.real.peers import Peers
from evals.real.task import (
    Found,
    RealTask,
    data_set,
    sample,
    tool_report,
)
from taiwa.apps.catalog import load_text
from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, add_turn, begin
from taiwa.evals.data import DataSet, Fields, Item, read_fields
from taiwa.evals.retrieval import Corpora
from taiwa.evals.run import Job
from taiwa.flows.ask.ask_result import CITATION_NUMBER, AskTurnOptions
from taiwa.flows.ask.types import ClarifyOptions
from taiwa.flows.turn import say
from taiwa.kernel.messages import Passage
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import without_thousands
from taiwa.kernel.usage_limits import RunUsage, UsageLimits
from taiwa.retrieval.analyzer import DENSE
from taiwa.retrieval.chunks import split_into_chunks
from taiwa.retrieval.read_text import read_markdown
from taiwa.sessions.ask_resources import MAX_PASSAGES
from taiwa.tools.registry import builtin_tools

DEFAULT_WAYS = ("taiwa", "taiwa:instructions", "openai")
WAYS = (*DEFAULT_WAYS, "taiwa:no-tools")
BUNDLED = Path(__file__).with_name("desks.jsonl")
TOOL = "calculator"
WORD = re.compile(rf"\d+(?:[.,]\d+)*|[{DENSE}]|(?:(?![{DENSE}])\w)+")
MARKS = re.compile(rf"{CITATION_NUMBER.pattern}|<<[^<>]*>>")
"""Numbers of citations, and what was written to a tool: neither is said by the answer."""


def read_desks(path: Path, limit: int | None, seed: int) -> DataSet:
    """Read desks, a row each, as one item for each question; `limit` of each language.

    Raises:
        InputError: the file or a row cannot be used.
    """
    digest, rows = read_fields(path)
    by_language: dict[str, list[Item]] = {}
    for row in rows:
        before(row)  # a row that cannot be used is an error before anything is measured
        for number, asked in enumerate(row.parts("questions"), start=1):
            accepted, kind = asked.texts("accepted"), row.text("language")
            more: dict[str, Json] = {**row.row, "questions": [dict(asked.row)]}
            item = Item(f"{row.text('id')}/{number}", asked.text("question"), accepted[0], kind, more=more)
            by_language.setdefault(kind, []).append(item)
    items = [item for found in by_language.values() for item in sample(found, limit, seed)]
    return data_set([path], [digest], items)


def words_of(text: str) -> str:
    """Return the words of a text, each between blanks; a number is one word, whatever its separators.

    >>> words_of("48,000円, or 39.20")
    ' 48000 円 or 39.2 '
    """
    words = WORD.findall(normalize("NFKC", text).casefold())
    return f" {' '.join(_number(word) if word[0].isdecimal() else word for word in words)} "


def _number(word: str) -> str:
    whole, point, part = without_thousands(word).replace(",", ".").partition(".")
    return f"{whole}.{part}".rstrip("0").rstrip(".") if point else whole


def is_accepted(text: str, accepted: Sequence[str], rejected: Sequence[str] = ()) -> bool:
    """Return whether an accepted text stands in an answer in whole words, and no rejected one.

    >>> is_accepted("Noted.", ["no"]), is_accepted("No, it is closed.", ["no"]), is_accepted("8 [2]", ["2"])
    (False, True, False)
    """
    said = words_of(MARKS.sub(" ", text))
    holds = [any(words_of(each) in said for each in texts) for texts in (accepted, rejected)]
    return holds == [True, False]


def app_of(desk: Fields, tools: Sequence[str], *, told: bool = False) -> App:
    """Return the app of a desk, as its file would be written; it is `told` the documents by its instructions, or has them."""
    front = {"taiwa": 1, "state": desk.row.get("state"), "tools": [*tools]}
    front |= {} if told else {"documents": "documents"}
    lines = (f"{name}: {json.dumps(part, ensure_ascii=False)}\n" for name, part in front.items())
    body = whole_text(desk) if told else desk.text("instructions")
    return load_text(f"---\n{''.join(lines)}---\n{body}\n", desk.where, desk.text("id"))


def whole_text(desk: Fields) -> str:
    """Return the instructions of a desk with all its documents."""
    return "\n\n".join([desk.text("instructions"), *documents_of(desk).values()])


def before(desk: Fields, tools: Sequence[str] = (), *, told: bool = False) -> Conversation:
    """Return the conversation up to a question, with what the user has said recorded."""
    app = app_of(desk, tools, told=told)
    return add_turn(begin(app), desk.text("said"), desk.text("reply"), desk.row["recorded"])


def documents_of(desk: Fields) -> Mapping[str, str]:
    """Return the documents of a desk by the names of their files."""
    return cast("dict[str, str]", desk.row["documents"])


def corpora_of(items: Sequence[Item]) -> Corpora:
    """Return the documents of the desks, split as an index splits them."""
    sets: dict[str, tuple[Passage, ...]] = {}
    for desk in map(desk_of, items):
        read = {name: read_markdown(text) for name, text in documents_of(desk).items()}
        sets[desk.text("id")] = tuple(
            Passage(name, chunk.text, heading=chunk.heading, title=document.title, id=f"{name}#{chunk.start}")
            for name, document in read.items() for chunk in split_into_chunks(document)
        )  # fmt: skip
    return Corpora(sets)


@dataclass(kw_only=True)
class TurnTask(RealTask):
    """The task of `turn`."""

    corpora: Corpora
    name: str = "turn"

    def close(self) -> None:
        """Close the indexes as well."""
        super().close()
        self.corpora.close()

    async def by_taiwa(self, job: Job, limits: UsageLimits) -> tuple[Found, RunUsage]:
        """Take the turn after the one that is recorded; a variant has no tools, or the documents in its instructions."""
        backend, _, variant = job.setting.partition(":")
        desk, tools = desk_of(job.item), () if variant == "no-tools" else (builtin_tools()[TOOL],)
        specs, told = [tool.spec for tool in tools], variant == "instructions"
        conversation = before(desk, [spec.name for spec in specs], told=told)
        conversation = replace(conversation, app=replace(conversation.app, sampling=self.real.sampling))
        finder = self.corpora.finder(desk.text("id"))
        terms = finder.index.analyzer
        options = AskTurnOptions(ClarifyOptions(k=MAX_PASSAGES, assess_by="documents"), terms=terms.name)
        turn = say(job.item.text, tools=specs, documents=None if told else options, term_weights=terms)
        done = await self.ours(backend).runtime(limits, tools=tools, retriever=finder).run_result(turn(conversation))
        reply, after = done.value
        result = reply.findings.documents
        found: Found = {
            "valid": True, "text": reply.text if result is None else result.answer_text, "state": dict(after.state),
            "state_kept": after.state == conversation.state, "tool_calls": len(reply.findings.calls),
        }  # fmt: skip
        return found, done.spent

    async def by_peer(self, job: Job, peers: Peers) -> Found:
        """Answer in one call from the whole documents."""
        desk = desk_of(job.item)
        said = (
            ("system", whole_text(desk)),
            ("user", desk.text("said")),
            ("assistant", desk.text("reply")),
            ("user", job.item.text),
        )
        return {"valid": True, "text": await peers.complete([{"role": role, "content": text} for role, text in said])}

    def score(self, item: Item, found: Found) -> Found:
        """Compare an answer with the accepted texts."""
        (asked,) = desk_of(item).parts("questions")
        rejected = asked.texts("rejected") if "rejected" in asked else ()
        return {"right": is_accepted(str(found.get("text", "")), asked.texts("accepted"), rejected)}


def desk_of(item: Item) -> Fields:
    """Return the desk of an item, with its question only."""
    return Fields(item.id, item.more)


REPORT = tool_report(
    "state kept %",
    "state_kept",
    "Right: an accepted text stands in the answer in whole words. State kept: the question, which tells nothing new, changed no field.",
    "Intervals at 95 %: Wilson's for shares, of 1,000 draws of the items for means.",
)
