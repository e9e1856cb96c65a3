"""Typed results of operations: plain values, without the code that creates them. `result_json.to_json` is their JSON."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from taiwa.kernel.serialization import Json, value

if TYPE_CHECKING:
    from taiwa.constraints.explain import GuideTrace
    from taiwa.constraints.guide import Guide
    from taiwa.conversation.app import App
    from taiwa.conversation.history import Conversation, Node
    from taiwa.conversation.state import Change, StatePath
    from taiwa.flows.ask.ask_result import AskResult
    from taiwa.kernel.messages import Passage, Request, Response
    from taiwa.retrieval.types import EmbedderChoice
    from taiwa.sessions.repository import ValueOrigin
    from taiwa.store import CallRecord, CostLine, Ref
    from taiwa.store.runs import Run


@value
class RequestPreview:
    """The request that would be sent first, with an estimate of its tokens.

    `cached_tokens` estimates the common prefix with the previous request; None without one. `url` and `body` are what would
    go over the wire, if the model is known.
    """

    request: "Request"
    tokens: int
    cached_tokens: int | None = None
    url: str = ""
    body: Json = None


@value
class SchemaResult:
    """An output type in one style, and the estimated tokens of every style.

    `relaxed` are constraints that strict mode states in descriptions, `unsupported` those that it cannot state.
    """

    style: str
    texts: Mapping[str, str]
    tokens: Mapping[str, int]
    relaxed: tuple[str, ...]
    unsupported: tuple[str, ...]


@value
class GenerateResult:
    """One answer under a constraint.

    `fits` says whether the complete answer fits the constraint (None: unknown), `why` what does not. For a model in this
    process `parts` pairs each token with whether it was forced.
    """

    response: "Response"
    fits: bool | None = None
    why: str = ""
    parts: tuple[tuple[str, bool], ...] = ()


@value
class ExplainResult:
    """A constraint, its guide, and the trace of a text under it."""

    title: str
    kind: str
    source: str
    guide: "Guide"
    engine: str
    walk: "GuideTrace"


@value
class MarkedPassage:
    """A passage with the character ranges of its text that match the query."""

    passage: "Passage"
    marks: tuple[tuple[int, int], ...]


@value
class FindResult:
    """The best passages for a query, best first, and the next best; `warnings` say why embeddings were not used."""

    passages: tuple[MarkedPassage, ...]
    warnings: tuple[str, ...] = ()
    near_misses: tuple[MarkedPassage, ...] = ()


@value
class DocumentText:
    """A part of the plain text of a document.

    `text` begins at character `offset` of the `characters` of the document; `passages` are those within it. White space
    between passages is shown as line breaks.
    """

    index: str
    path: str
    title: str
    version: str
    characters: int
    offset: int
    text: str
    passages: "tuple[Passage, ...]"


@value
class AskTurn:
    """A turn that searched documents, with the texts of its passages.

    `near_misses` ranked after `passages`; `candidates` are the passages of each option.
    """

    result: "AskResult"
    passages: "tuple[Passage, ...]"
    near_misses: "tuple[Passage, ...]"
    candidates: "tuple[tuple[Passage, ...], ...]"


@value
class EmbeddingsResult:
    """The embeddings of an index: the model, and its vectors.

    `vectors` is None if the caller may not know their number; `made` counts new ones.
    """

    meaning: "EmbedderChoice"
    vectors: int | None
    made: int = 0


@value
class TurnEntry:
    """A node of a history; `turn` is its number, None in a tree, and `model` wrote its answer ("": not known)."""

    hash: str
    node: "Node"
    turn: int | None = None
    model: str = ""


@value
class SessionEntry:
    """A session in a listing: its first words, the model that wrote last ("": not known), and the cost of all its turns.

    `cost` is in billionths of the currency unit; None if it is not known. `answer` is that of the last turn.
    """

    ref: "Ref"
    text: str = ""
    model: str = ""
    cost: int | None = 0
    answer: str = ""


@value
class InterruptedTurn:
    """A turn that was cut off and can be resumed; `app` is the name of its app, and it has neither a node nor an answer yet."""

    run: "Run"
    app: str
    kind: str = "interrupted"
    node: None = None
    answer: None = None


@value
class SessionTree:
    """All histories of a store: the children of each node, and the sessions whose tip a node is."""

    children: "Mapping[str | None, Mapping[str, Node]]"
    names: Mapping[str, Sequence[str]]


@value
class ShowResult:
    """One node, the conversation after it, and its calls; `reasoning` is the model's reasoning, if requested."""

    hash: str
    node: "Node"
    conversation: "Conversation"
    calls: "tuple[CallRecord, ...]"
    reasoning: str | None = None

    @property
    def turn(self) -> int:
        """The number of the turn."""
        return self.conversation.count

    @property
    def model(self) -> str:
        """The model that answered, "" if no call was paid for."""
        return next((call.model for call in self.calls if call.model), "")


@value
class DiffResult:
    """What differs between two revisions: values of the state, lines of text, and the models that answered."""

    before: str
    after: str
    changes: "tuple[Change, ...]"
    before_lines: tuple[str, ...]
    after_lines: tuple[str, ...]
    before_models: tuple[str, ...] = ()
    after_models: tuple[str, ...] = ()

    @property
    def changed_lines(self) -> tuple[str, ...]:
        """The lines that were removed and added, each behind its sign."""
        from difflib import ndiff

        return tuple(line for line in ndiff(self.before_lines, self.after_lines) if line[0] in "+-")


@value
class WhyResult:
    """The node that set or removed a value last, and its calls."""

    path: "StatePath"
    origin: "ValueOrigin"
    calls: "tuple[CallRecord, ...]"

    @property
    def models(self) -> tuple[str, ...]:
        """The models that the node called."""
        return tuple(dict.fromkeys(call.model for call in self.calls if call.model))


@value
class StateEdit:
    """A conversation whose state was edited: the session, and the node before."""

    conversation: "Conversation"
    session: str
    parent: str | None


@value
class ValueEntry:
    """A value that a path of the state had, and the node that set it."""

    node: str
    by: str
    value: Json


@value
class CostResult:
    """The cost by app, model, day or session, including failed turns."""

    by: str
    lines: "tuple[CostLine, ...]"


@value
class UntrustedApp:
    """An imported app, the sessions that it would continue, and the `host` of its model ("": in this process, or no model)."""

    app: "App"
    sessions: tuple[str, ...] = ()
    host: str = ""

    @property
    def searches(self) -> bool:
        """Whether it searches documents."""
        return self.app.documents is not None

    @property
    def documents(self) -> tuple[str, ...]:
        """The indexes and folders that it searches; none means all indexes."""
        return self._listed("in")

    @property
    def principals(self) -> tuple[str, ...]:
        """For whom it searches."""
        return self._listed("as")

    @property
    def user(self) -> str:
        """Whose profile it reads."""
        return str(self.app.document_settings.get("user") or "")

    @property
    def max_cost(self) -> int | None:
        """Its cost limit, in billionths of the currency unit."""
        limits = self.app.options.limits
        return None if limits is None else limits.cost

    def _listed(self, name: str) -> tuple[str, ...]:
        given = self.app.document_settings.get(name)
        return tuple(map(str, given)) if isinstance(given, list) else ()

    def lines(self) -> tuple[str, ...]:
        """Describe what the app names, which applies only once it is trusted; a line each."""
        from taiwa.kernel.usage_limits import format_cost

        sent = f" (every text is sent to {self.host})" if self.host else ""
        named = {
            "model": f"{self.app.model}{sent}" if self.app.model else "",
            "tools": ", ".join(self.app.tools),
            "program": self.app.flow,
            "documents": (", ".join(self.documents) or "all indexes") if self.searches else "",
            "searches as": ", ".join(self.principals),
            "user": self.user,
            "max cost": "" if self.max_cost is None else format_cost(self.max_cost),
        }
        return tuple(f"{what}: {which}" for what, which in named.items() if which)
