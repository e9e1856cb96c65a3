"""Values, effects, programs and the two drivers. Standard library only."""

from taiwa.kernel.arun import AsyncRuntime
from taiwa.kernel.effects import (
    Abilities,
    CallTool,
    Complete,
    Effect,
    Program,
    Retrieve,
    Seen,
    Step,
    Tell,
    Watcher,
    bind,
    gather,
    join,
    map,
    perform,
    tell,
    unit,
)
from taiwa.kernel.errors import (
    AuthError,
    ConfigError,
    ConflictError,
    CorruptError,
    DeadEndError,
    InputError,
    LimitError,
    ModelError,
    OverloadedError,
    ProtocolError,
    RateLimitError,
    RefusalError,
    ReplayError,
    ShapeError,
    StoreError,
    TaiwaError,
    TimeoutError,
    ToolError,
    UnknownToolError,
    UnsupportedError,
)
from taiwa.kernel.journal import Entry, Journal
from taiwa.kernel.ledger import Limits, Spent
from taiwa.kernel.protocols import AsyncModel, Model, Retriever, Tool
from taiwa.kernel.records import Json, canonical, digest, record, revive, value
from taiwa.kernel.replay import replay
from taiwa.kernel.run import Runtime
from taiwa.kernel.session import Asked, Done, Event, Got, Observer
from taiwa.kernel.values import (
    Ability,
    Chunk,
    Constraint,
    Finished,
    Grammar,
    JsonSchema,
    Message,
    Note,
    Part,
    Passage,
    Regex,
    Request,
    Response,
    Role,
    Sampling,
    Text,
    TextDelta,
    Thought,
    ThoughtDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    assistant,
    fold,
    system,
    user,
)
