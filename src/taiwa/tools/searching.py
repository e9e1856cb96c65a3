"""Looking documents up, as a tool: numbered passages with their sources, of any retriever.

A passage is somebody else's text. It is bounded, and made harmless, so that it can neither begin a call nor a role; the
specification says that it is untrusted.
"""

from collections.abc import Mapping
from dataclasses import replace

from taiwa.kernel.errors import ToolError
from taiwa.kernel.protocols import Retriever
from taiwa.kernel.records import Json
from taiwa.kernel.values import Passage, ToolResult, ToolSpec
from taiwa.tools.foreign import harmless
from taiwa.tools.tool import FunctionTool

__all__ = ["Searching", "searching"]

LONGEST_QUERY = 1_000
LONGEST_SOURCE = 200
MOST_PASSAGES = 50


class Searching:
    """A tool that finds passages."""

    def __init__(self, retriever: Retriever, passages: int, characters: int, name: str) -> None:
        self._retriever = retriever
        self._passages = max(1, min(passages, MOST_PASSAGES))
        self._each = max(1, characters // self._passages)
        self._asked = FunctionTool(self._find, name, isolated=False)
        self._spec = replace(self._asked.spec, trust="untrusted")

    def __repr__(self) -> str:
        return f"Searching({self._spec.name})"

    @property
    def spec(self) -> ToolSpec:
        """How a model sees the tool."""
        return self._spec

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Find passages.

        Raises:
            ToolError: the query is too long or missing, or the documents cannot be read.
        """
        return self._asked.call(arguments)

    def _find(self, query: str) -> ToolResult:
        """Find passages of the documents that fit a question or some words; each has a number and its source."""
        if len(query) > LONGEST_QUERY:
            raise ToolError(
                f"the query has {len(query):,} characters", code="too_long", hint=f"at most {LONGEST_QUERY:,}"
            )
        found = self._retriever.find(query, self._passages)[: self._passages]
        shown = [self._shown(number, passage) for number, passage in enumerate(found, start=1)]
        value: list[Json] = [
            {"number": number, "source": each.source, "start": each.start, "score": each.score, "text": each.text}
            for number, each in enumerate(found, start=1)
        ]
        return ToolResult("\n".join(shown) or "no passage fits", value=value)

    def _shown(self, number: int, passage: Passage) -> str:
        source = " ".join(harmless(passage.source, LONGEST_SOURCE).split())
        return f"[{number}] {source}: {' '.join(harmless(passage.text, self._each).split())}"


def searching(
    retriever: Retriever, passages: int = 5, characters: int = 4_000, name: str = "search_documents"
) -> Searching:
    """Make a tool of a retriever, which gives at most so many passages and characters of their text in all.

    >>> from taiwa.retrieve import InMemory
    >>> searching(InMemory([Passage("notes.md", "Maples turn red in November.")])).call({"query": "maples"}).text
    '[1] notes.md: Maples turn red in November.'
    """
    return Searching(retriever, passages, characters, name)
