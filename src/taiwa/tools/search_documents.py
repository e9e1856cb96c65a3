"""Document search as a tool: numbered passages with their sources, from any retriever.

A passage is untrusted text: it is bounded and cleaned, so that it cannot begin a call or a role, and the specification marks
the tool as untrusted.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import Passage, ToolResult, ToolSpec
from taiwa.kernel.records import Json
from taiwa.kernel.runtime import Retriever
from taiwa.kernel.text import clean_untrusted
from taiwa.tools.function_tool import FunctionTool

MAX_QUERY_CHARS = 1_000

MAX_SOURCE_CHARS = 200

MAX_PASSAGES = 50

MAX_PASSAGE_CHARS = 20_000

MAX_HITS = 200

BEFORE = 4
"""An excerpt begins a quarter of its length before the match."""

CJK = "\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3"

WORDS = re.compile(rf"(?:(?![{CJK}])\w){{2,}}|[{CJK}](?=(?P<next>[{CJK}]))")


class SearchDocumentsTool:
    """A tool that finds passages."""

    def __init__(self, retriever: Retriever, passages: int, characters: int, name: str) -> None:
        self._retriever = retriever
        self._passages = max(1, min(passages, MAX_PASSAGES))
        self._chars_each = max(1, characters // self._passages)
        self._tool = FunctionTool(self._find, name, isolated=False)
        self.spec: ToolSpec = replace(self._tool.spec, trust="untrusted")
        """How a model sees the tool."""

    def __repr__(self) -> str:
        return f"SearchDocumentsTool({self.spec.name})"

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Find passages.

        Raises:
            ToolError: the query is too long or missing, or the documents cannot be read.
        """
        return self._tool.call(arguments)

    def _find(self, query: str) -> ToolResult:
        """Find passages of the documents that fit a question or some words; each has a number and its source."""
        if len(query) > MAX_QUERY_CHARS:
            hint = f"at most {MAX_QUERY_CHARS:,}"
            raise ToolError(f"the query has {len(query):,} characters", code="too_long", hint=hint)
        found = self._retriever.find(query, self._passages)[: self._passages]
        shown = [self._shown(number, passage, query) for number, passage in enumerate(found, start=1)]
        value: list[Json] = [
            {"number": number, "source": each.source, "start": each.start, "score": each.score, "text": each.text,
             "heading": list(each.heading), "page": each.page}
            for number, each in enumerate(found, start=1)
        ]  # fmt: skip
        return ToolResult("\n".join(shown) or "no passage fits", value=value)

    def _shown(self, number: int, passage: Passage, query: str) -> str:
        place = " › ".join((passage.source, *passage.heading)) + (f", page {passage.page}" if passage.page else "")
        words = excerpt(clean_untrusted(passage.text, MAX_PASSAGE_CHARS), query, self._chars_each)
        return f"[{number}] {' '.join(clean_untrusted(place, MAX_SOURCE_CHARS).split())}: {words}"


def excerpt(text: str, query: str, longest: int) -> str:
    """Return a part of a text on one line, of at most `longest` characters, with most words of the query.

    >>> excerpt("All about boats. " * 9 + "The ferry leaves at nine.", "when does the ferry leave", 40)
    '…about boats. The ferry leaves at nine.'
    """
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    folded = line.lower()
    terms = {match[0] + (match["next"] or "") for match in WORDS.finditer(query.lower())}
    hits = sorted(match.start() for term in terms for match in list(re.finditer(re.escape(term), folded))[:MAX_HITS])
    width = max(longest - 2, 1)
    starts = [max(min(hit - width // BEFORE, len(line) - width), 0) for hit in hits] or [0]
    best = max(starts, key=lambda start: sum(term in folded[start : start + width] for term in terms))
    before, after = "…" if best else "", "…" if best + width < len(line) else ""
    return f"{before}{line[best : best + width].strip()}{after}"


def search_tool(
    retriever: Retriever, passages: int = 5, characters: int = 4_000, name: str = "search_documents"
) -> SearchDocumentsTool:
    """Make a tool of a retriever; a result has at most `passages` and at most `characters` of their text in total.

    >>> from taiwa.retrieval import InMemoryRetriever
    >>> search_tool(InMemoryRetriever([Passage("notes.md", "Maples turn red in November.")])).call({"query": "maples"}).text
    '[1] notes.md: Maples turn red in November.'
    """
    return SearchDocumentsTool(retriever, passages, characters, name)
