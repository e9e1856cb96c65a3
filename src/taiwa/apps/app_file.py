"""An app file: its front matter, its instructions and its examples, parsed into an `App` and its problems."""

import json
import re
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

from taiwa.conversation.app import (
    ALL,
    EXTRACT,
    PLACEHOLDER,
    PROMPT,
    ROUTE,
    SOLVE,
    UNSET,
    UNTYPED_REPLIES,
    App,
    AppSource,
    Documents,
    Example,
    Param,
    ReplyMode,
    UnknownTurns,
    WindowPolicy,
    fit_params,
)
from taiwa.conversation.code_files import IN_FILE, function_named
from taiwa.conversation.reducers import reducer, reducer_names
from taiwa.conversation.state import (
    COMPUTED_FIELDS,
    FieldSource,
    StateField,
    check_field,
    delta_output_type,
    fits_delta,
)
from taiwa.kernel.errors import ConfigError, InputError, OutputValidationError, TaiwaError
from taiwa.kernel.messages import JsonSchema, Sampling
from taiwa.kernel.serialization import Json, is_number, parse_json
from taiwa.yamlfile import SURROGATE, Entry, Items, Location, Scalar, Table, Tree, parse_yaml, to_json, yaml_text

if TYPE_CHECKING:
    from taiwa.structured import OutputType

T = TypeVar("T", bound=str)

WITHOUT_EFFECT = {
    SOLVE: ("state", "documents"),
    EXTRACT: ("state", "documents", "tools"),
    ROUTE: ("state", "documents", "tools"),
}
"""The built-in programs of turns, with the keys that their turns do not use."""

MAX_PROBLEMS = 200

SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a file; an app with a problem of level `error` cannot be opened."""

    line: int
    column: int
    message: str
    hint: str = ""
    level: Literal["error", "warning"] = "error"

    def format(self, where: str) -> str:
        """Return the problem as one line.

        >>> Problem(3, 1, "unknown key 'stat'", "did you mean 'state'?").format("a.md")
        "a.md:3: unknown key 'stat'; did you mean 'state'?"
        """
        place = f"{where}:{self.line}" if self.line else where
        return f"{place}: {self.message}{self.hint and f'; {self.hint}'}"


@dataclass(slots=True)
class Problems:
    """The problems of one file."""

    entries: list[Problem] = field(default_factory=list[Problem])

    def error(self, at: Location, message: str, hint: str = "") -> None:
        """Add a problem that prevents opening."""
        self._add(Problem(at.line, at.column, message, hint))

    def warn(self, at: Location, message: str, hint: str = "") -> None:
        """Add a probable mistake."""
        self._add(Problem(at.line, at.column, message, hint, "warning"))

    def code(self, at: Location, error: TaiwaError) -> None:
        """Add a problem of a file of code, once for all that names the file."""
        if all(problem.message != error.message for problem in self.entries):
            self.error(at, error.message)

    def _add(self, problem: Problem) -> None:
        if len(self.entries) < MAX_PROBLEMS and problem not in self.entries:
            self.entries.append(problem)

    @property
    def fatal(self) -> bool:
        """Whether one of them is an error."""
        return any(problem.level == "error" for problem in self.entries)

    def sorted(self) -> tuple[Problem, ...]:
        """Return them in the order of the file."""
        return tuple(sorted(self.entries, key=lambda problem: (problem.line, problem.column)))


def suggest(word: str, names: tuple[str, ...], kind: str) -> str:
    """Suggest the most similar name, or list all names.

    >>> suggest("stat", ("state", "keep"), "keys"), suggest("zzz", ("state", "keep"), "keys")
    ("did you mean 'state'?", 'the keys are state, keep')
    """
    near = get_close_matches(word[:SHOWN_CHARS], names, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"the {kind} are {', '.join(names)}" if names else f"there are no {kind}"


def quoted(text: str) -> str:
    """Quote a text on one line, shortened."""
    return repr(text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…")


NAMES: dict[type[Tree], str] = {Items: "a list", Table: "a table"}


def describe(tree: Tree | None) -> str:
    """Describe a value for a message."""
    if isinstance(tree, (Items, Table)):
        return NAMES[type(tree)]
    return quoted(tree.text) if tree and tree.text else "nothing"


@dataclass(slots=True)
class Keys:
    """The keys of one table, read by type; a wrong value is reported and replaced by the default.

    `what` names the table in messages.
    """

    table: Table
    known: tuple[str, ...]
    what: str
    problems: Problems

    def __post_init__(self) -> None:
        for entry in self.table.entries:
            if entry.key not in self.known:
                message = f"unknown key {quoted(entry.key)}{self.what and f' in {self.what}'}"
                is_bare = self.what and isinstance(entry.value, Scalar) and not entry.value.text
                is_rest = is_bare and not get_close_matches(entry.key, self.known)  # `{ description: one, two }`
                hint = "a text with a comma stands in quotes" if is_rest else suggest(entry.key, self.known, "keys")
                self.problems.error(entry.at, message, hint)

    def __contains__(self, key: str) -> bool:
        return self.table.get(key) is not None

    def location(self, key: str) -> Location:
        """Return the location of a key, or that of the table if it lacks the key."""
        entry = self.table.get(key)
        return entry.at if entry else self.table.at

    def tree(self, key: str) -> Tree | None:
        """Return the value of a key; None if it is missing."""
        entry = self.table.get(key)
        return entry.value if entry else None

    def text(self, key: str, default: str = "") -> str:
        """Return a text; a number or a word such as `true` is returned as written."""
        tree = self.tree(key)
        if isinstance(tree, Scalar) and tree.value is not None:
            return tree.text
        if tree is not None:
            self.wrong(key, "a text")
        return default

    def choice(self, key: str, choices: tuple[T, ...]) -> T:
        """Return one of some texts; the first is the default."""
        text = self.text(key, choices[0])
        for each in choices:
            if each == text:
                return each
        self.wrong(key, f"{', '.join(choices[:-1])} or {choices[-1]}")
        return choices[0]

    def whole(self, key: str, low: int, default: int | None = None) -> int | None:
        """Return a whole number of at least `low`."""
        tree = self.tree(key)
        number = tree.value if isinstance(tree, Scalar) else None
        if isinstance(number, int) and not isinstance(number, bool) and low <= number:
            return number
        if tree is not None:
            self.wrong(key, f"a whole number, {low} or more")
        return default

    def flag(self, key: str) -> bool:
        """Return whether a key is `true`."""
        written = self.text(key, "false")
        if written not in ("true", "false"):
            self.wrong(key, "true or false")
        return written == "true"

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float | None:
        """Return a number from `low` to `high`, or None for null."""
        tree = self.tree(key)
        number = tree.value if isinstance(tree, Scalar) else "" if tree else default
        if number is None:
            return None
        if is_number(number) and low <= number <= high:
            return float(number)
        self.wrong(key, f"a number from {low:g} to {high:g}")
        return default

    def inner(self, key: str) -> Table | None:
        """Return a table."""
        tree = self.tree(key)
        if tree is None or isinstance(tree, Table):
            return tree
        self.wrong(key, "a table")
        return None

    def texts(self, key: str) -> tuple[Scalar, ...]:
        """Return a list of texts."""
        tree = self.tree(key)
        if isinstance(tree, Items) and all(isinstance(item, Scalar) and item.value is not None for item in tree.items):
            return cast("tuple[Scalar, ...]", tree.items)
        if tree is not None:
            self.wrong(key, "a list of names", f"write {key}: [one, two]")
        return ()

    def error(self, key: str, message: str, hint: str = "") -> None:
        """Report a problem of a key."""
        self.problems.error(self.location(key), message, hint)

    def wrong(self, key: str, wanted: str, hint: str = "change it, or leave the key out") -> None:
        """Report that the value of a key is not what is expected."""
        self.error(key, f"{key} must be {wanted}, not {describe(self.tree(key))}", hint)


FORMAT = 1

TOP = (
    "taiwa", "name", "about", "params", "state", "window", "reply", "model", "sampling", "tools", "documents", "answer", "flow",
    "unknown_turns",
)  # fmt: skip

FIELD = ("type", "reduce", "description", "init", "max_shown", "required", "from", "cite", "computed")

PARAM = ("type", "ask", "default")

WINDOW = ("max_size", "keep", "summarize", "keep_first", "keep_setting")

REPLIES: tuple[ReplyMode, ...] = get_args(ReplyMode)

UNKNOWN_TURNS: tuple[UnknownTurns, ...] = get_args(UnknownTurns)

FIELD_SOURCES: tuple[FieldSource, ...] = get_args(FieldSource)

RESERVED = {"state": ("response",), "params": (PROMPT,)}
"""Reserved names of fields, which other parts of a reply use, and reserved names of parameters."""

NOUNS = {"state": "field", "params": "parameter"}

APP_NAME = re.compile(r"\w[\w.-]{0,63}")

FIELD_NAME = re.compile(r"[^\W\d]\w{0,63}")

PARAM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(slots=True)
class Front:
    """The front matter of an app, with the locations of its name, its reply mode and its parameters."""

    app: App = field(default_factory=lambda: App(AppSource("", ""), ""))
    name_location: Location = field(default_factory=lambda: Location(1))
    param_locations: dict[str, Location] = field(default_factory=dict[str, Location])
    reply_location: Location = field(default_factory=lambda: Location(1))


def read_front(tree: Tree | None, problems: Problems, folder: Path | None = None) -> Front:
    """Read all keys; report problems and continue."""
    if not isinstance(tree, Table):
        if not problems.fatal:
            at = tree.at if tree else Location(1)
            problems.error(at, "the front matter is not a table", "write `taiwa: 1` as its first line")
        return Front()
    keys = Keys(tree, TOP, "", problems)
    _check_format(keys)
    params = _named(keys, "params", PARAM_NAME)
    entries = _named(keys, "state", FIELD_NAME)
    fields = tuple(_field(entry, problems) for entry in entries)
    answer = _answer(keys, folder)
    app = App(
        AppSource(_name(keys), ""),
        "",
        params=tuple(_param(entry, problems) for entry in params),
        fields=fields,
        window=_window(keys, fields),
        reply=keys.choice("reply", REPLIES),
        model=keys.text("model").strip(),
        about=" ".join(keys.text("about").split()),
        sampling=_sampling(keys),
        tools=_tools(keys, is_stored=folder is None),
        documents=_documents(keys),
        answer=answer.schema,
        flow=_flow(keys, is_stored=folder is None),
        unknown_turns=keys.choice("unknown_turns", UNKNOWN_TURNS),
        answer_code=answer.code,
        code_type=answer.code_type,
    )
    if app.reply != REPLIES[0] and not app.model_fields:
        message = "reply has no effect: the state has no field that the model writes"
        problems.error(keys.location("reply"), message, "remove it")
    elif app.document_settings.get("quote") and (
        app.answer is not None or app.tools or app.reply not in ("auto", "record")
    ):
        message = "a quotation has no place for a type, for the calls of tools, or for another reply than `record`"
        problems.error(keys.location("documents"), message, "remove `quote`, or what it cannot be combined with")
    elif app.answer is not None and app.reply in UNTYPED_REPLIES:
        message = f"`reply: {app.reply}` has no place for an answer that has a type"
        problems.error(keys.location("reply"), message, "remove `reply` or `answer`")
    if "unknown_turns" in keys and not (app.model_fields or app.documents is not None or app.tools or app.answer):
        message = "unknown_turns has no effect: without a state, the turns of a history are stored as they come"
        problems.error(keys.location("unknown_turns"), message, "remove it")
    for key in WITHOUT_EFFECT.get(app.flow, ()):
        if key in keys:
            problems.error(
                keys.location(key), f"{key} has no effect with `flow: {app.flow}`", f"remove it, or `flow: {app.flow}`"
            )
    for each, entry in zip(fields, entries, strict=True):
        if app.reply == "record" and each.required:
            why = f"required of {each.name} has no effect with `reply: record`, which asks for what changes"
            problems.error(entry.at, why, "remove one of the two")
        if app.reply == "environment" and not each.computed and each.reducer.needs_before:
            message = f"the field {each.name}: with `reply: environment` the model writes it whole, so {each.reduce!r} is not applied"
            problems.warn(entry.at, message, "remove `reduce`, or bound the value by union, table or last(n)")
    return Front(app, keys.location("name"), {entry.key: entry.at for entry in params}, keys.location("reply"))


def _check_format(keys: Keys) -> None:
    tree = keys.tree("taiwa")
    number = tree.value if isinstance(tree, Scalar) else None
    if tree is None:
        message = "the key taiwa is missing; it is the version of the format"
        keys.problems.error(Location(1), message, f"add `taiwa: {FORMAT}`")
    elif not isinstance(number, int) or isinstance(number, bool) or number < 1:
        keys.wrong("taiwa", f"{FORMAT}", f"write `taiwa: {FORMAT}`")
    elif number != FORMAT:
        message = f"the file has format {number}, and this program reads format {FORMAT}"
        keys.error("taiwa", message, "install a newer taiwa")


def _name(keys: Keys) -> str:
    name = keys.text("name")
    if name and not APP_NAME.fullmatch(name):
        keys.wrong("name", "a word of letters, digits, `-`, `_` and `.`")
        return ""
    return name


def _named(keys: Keys, key: str, form: re.Pattern[str]) -> tuple[Entry, ...]:
    """Return the entries of a table that have valid names."""
    table = keys.inner(key)
    good: list[Entry] = []
    for entry in table.entries if table else ():
        if not form.fullmatch(entry.key):
            message = f"{quoted(entry.key)} is not a valid name in {key}"
            keys.problems.error(entry.at, message, "use letters, digits and `_`, beginning with a letter")
        elif entry.key in RESERVED[key]:
            keys.problems.error(entry.at, f"the {NOUNS[key]} {entry.key!r} has a reserved name", "choose another name")
        else:
            good.append(entry)
    return tuple(good)


def _described(entry: Entry, known: tuple[str, ...], problems: Problems) -> Keys:
    """Return the table that describes a name; a text alone is its type."""
    tree = entry.value
    if isinstance(tree, Scalar) and tree.value is not None:
        tree = Table((Entry("type", tree, entry.at),), entry.at)
    elif not isinstance(tree, Table):
        message = f"{entry.key} must be a type or a table, not {describe(tree)}"
        problems.error(entry.at, message, f"write {entry.key}: {{ type: str }}")
        tree = Table((Entry("type", Scalar("any", "any", entry.at), entry.at),), entry.at)
    return Keys(tree, known, entry.key, problems)


def _type(keys: Keys) -> str:
    """Return a type in notation; an invalid one is reported and read as `any`."""
    tree = keys.tree("type")
    if tree is None:
        return "any"
    from taiwa.structured.type_notation import parse_notation, render_notation

    plain = tree.text if isinstance(tree, Scalar) else to_json(tree)
    try:
        annotation = parse_notation(plain if isinstance(plain, (str, dict)) else str(plain))
        return plain if isinstance(plain, str) else render_notation(annotation)
    except InputError as error:
        message = f"the type of {keys.what}{error.message.removeprefix('type notation')}"
        keys.error("type", message, "write a type such as str, int(1..5) or list[str]")
    return "any"


def _param(entry: Entry, problems: Problems) -> Param:
    keys = _described(entry, PARAM, problems)
    kind = _type(keys) if "type" in keys else "str"
    tree = keys.tree("default")
    default = to_json(tree) if tree else None
    if default is not None:
        try:
            fit_params(Param(entry.key, kind), default)
        except InputError as error:
            keys.error("default", f"the default: {error.message}", "change one of the two")
    return Param(entry.key, kind, " ".join(keys.text("ask").split()), default, "default" not in keys)


def _field(entry: Entry, problems: Problems) -> StateField:
    keys = _described(entry, FIELD, problems)
    description = " ".join(keys.text("description").split())
    if "computed" in keys:
        return _computed(entry, keys, description)
    if "type" not in keys:
        hint = "add `type: …`, or `computed: …` if the program computes it"
        problems.error(entry.at, f"the field {entry.key} has no type", hint)
        return StateField(entry.key, "any", description=description)
    tree = keys.tree("init")
    known = len(problems.entries)
    init, kind, reduce = to_json(tree) if tree else None, _type(keys), _reduce(keys)
    shown, required = keys.whole("max_shown", 0), keys.flag("required")
    cite: Literal[True, False, "user", None] = keys.flag("cite") if "cite" in keys else None
    source: FieldSource = keys.choice("from", FIELD_SOURCES)
    cite = "user" if cite and "from" in keys and source == "user" else cite
    made = StateField(entry.key, kind, init, reduce, description, shown, required=required, source=source, cite=cite)
    if len(problems.entries) == known:
        try:
            check_field(made)
        except ConfigError as error:
            named = error.message.partition(" ")[0]
            key = named if named in ("init", "cite") else "reduce" if "reduce" in keys else "type"
            keys.error(key, f"the field {entry.key}: {error.message}", "change one of the two")
    return made


def _computed(entry: Entry, keys: Keys, description: str) -> StateField:
    how = keys.text("computed")
    if how not in COMPUTED_FIELDS:
        hint = suggest(how, tuple(COMPUTED_FIELDS), "computed fields")
        keys.error("computed", f"unknown computed field {quoted(how)}", hint)
        how = next(iter(COMPUTED_FIELDS))
    for key in ("type", "reduce", "init", "max_shown", "required", "from", "cite"):
        if key in keys:
            keys.error(key, f"{entry.key} is computed and cannot have `{key}`", "remove one of the two")
    return StateField(entry.key, reduce=how, description=description)


def _reduce(keys: Keys) -> str:
    name = keys.text("reduce", "set")
    if name in COMPUTED_FIELDS:
        keys.error("reduce", f"{quoted(name)} is a computed field and not a reducer", f"write `computed: {name}`")
        return "set"
    try:
        reducer(name)
    except ConfigError as error:
        if IN_FILE.fullmatch(name):
            keys.problems.code(keys.location("reduce"), error)
            return "set"
        if name in reducer_names():  # a plug-in that cannot be used
            keys.error("reduce", error.message, "`taiwa plugins` lists the plug-ins")
            return "set"
        hint = suggest(name, reducer_names(), "reducers")
        keys.error("reduce", f"unknown reducer {quoted(name)}", hint)
        return "set"
    return name


def _window(keys: Keys, fields: tuple[StateField, ...]) -> WindowPolicy:
    tree = keys.tree("window")
    if tree is None or (isinstance(tree, Scalar) and tree.text == "all"):
        return ALL
    if not isinstance(tree, Table):
        keys.wrong("window", "`all` or a table", "write window: { max_size: 20, keep: 10, summarize: true }")
        return ALL
    inner = Keys(tree, WINDOW, "window", keys.problems)
    for key in ("max_size", "keep"):
        if key not in inner:
            mend = "write window: { max_size: 20, keep: 10 }, or window: all"
            keys.problems.error(tree.at, f"window has no `{key}`", mend)
    max_size, keep = inner.whole("max_size", 1, 1) or 1, inner.whole("keep", 0, 0) or 0
    if "max_size" in inner and keep >= max_size:
        message = f"window: `keep` is {keep} and `max_size` is {max_size}"
        inner.error("keep", message, "make `keep` smaller than `max_size`")
    summarize = inner.flag("summarize")
    names = tuple(made.name for made in fields if not made.computed)
    setting = inner.texts("keep_setting")
    for item in setting:
        if item.text not in names:
            message = f"unknown field {quoted(item.text)}"
            keys.problems.error(item.at, message, suggest(item.text, names, "fields"))
    first = inner.whole("keep_first", 0, 0) or 0
    return WindowPolicy(max_size, keep, summarize, first, tuple(item.text for item in setting))


SAMPLING_KEYS = ("temperature", "top_p", "max_tokens", "seed")


def _sampling(keys: Keys) -> Sampling:
    table = keys.inner("sampling")
    if table is None:
        return UNSET
    inner = Keys(table, SAMPLING_KEYS, "sampling", keys.problems)
    temperature, top_p = inner.number("temperature", 0, 2), inner.number("top_p", 0, 1)
    return Sampling(temperature, top_p, inner.whole("max_tokens", 1), inner.whole("seed", 0))


def _tools(keys: Keys, *, is_stored: bool) -> tuple[str, ...]:
    """Return the names of tools. Unknown names are allowed: a program can pass its own tools when it opens the app.

    A stored app may come from a place where the code was confirmed that is not known here; a turn loads it.
    """
    names: list[str] = []
    called: list[str] = []
    for item in keys.texts("tools"):
        name = item.text
        if IN_FILE.fullmatch(item.text):
            from taiwa.tools.function_tool import FunctionTool

            try:
                found = None if is_stored else function_named(item.text)
                if isinstance(found, FunctionTool):
                    name = found.spec.name
                elif not is_stored:
                    message = f"{_without_hash(item.text)} is not a tool"
                    keys.problems.error(item.at, message, "write @taiwa.tool above the function")
            except ConfigError as error:
                keys.problems.code(item.at, error)
        elif not TOOL_NAME.fullmatch(item.text):
            message = f"{quoted(item.text)} is not a valid tool name"
            hint = "use letters, digits, `_` and `-`, beginning with a letter; see `taiwa tools list`"
            keys.problems.error(item.at, message, hint)
            continue
        else:
            from taiwa.tools.registry import BUILT_IN, tool_names

            if item.text not in BUILT_IN and item.text not in tool_names():
                hint = suggest(item.text, tool_names(), "tools")
                keys.problems.warn(item.at, f"the tool {item.text} is not built in; the program must pass it", hint)
        if name in called:
            keys.problems.error(item.at, f"the tool {name} is listed twice", "remove one of the two")
        called.append(name)
        names.append(item.text)
    return tuple(names)


def _without_hash(name: str) -> str:
    """Return the name of code in a file as an app names it, without the hash under which the file was confirmed."""
    return re.sub(r"@\w+", "", name)


def _documents(keys: Keys) -> Documents | None:
    """Return the documents: a table of settings, or only the names of indexes and folders."""
    tree = keys.tree("documents")
    if tree is None:
        return None
    if not isinstance(tree, Table):
        tree = Table((Entry("in", tree, keys.location("documents")),), keys.location("documents"))
    inner = Keys(tree, Documents.KEYS, "documents", keys.problems)
    settings: dict[str, Json] = {}
    for key in ("in", "as"):
        listed = inner.tree(key)
        if isinstance(listed, Scalar) and listed.value is not None:
            settings[key] = [listed.text]
        elif listed is not None:
            settings[key] = [item.text for item in inner.texts(key)]
    for key in ("policy", "assess_by", "user"):
        if key in inner:
            settings[key] = inner.text(key)
    if "quote" in inner:
        settings["quote"] = inner.flag("quote")
    for key, low in (("max_questions", 0), ("k", 1)):
        if key in inner:
            settings[key] = inner.whole(key, low)
    from taiwa.flows.ask.decide_search_or_clarify import POLICIES
    from taiwa.flows.ask.types import ASSESS_BY

    _check_choice(inner, "policy", tuple(POLICIES))
    _check_choice(inner, "assess_by", ASSESS_BY)
    return Documents(settings or None)


def _check_choice(keys: Keys, key: str, choices: tuple[str, ...]) -> None:
    text = keys.text(key)
    if text and text not in choices:
        keys.error(key, f"unknown {key} {quoted(text)}", suggest(text, choices, "choices"))


@dataclass(frozen=True, slots=True)
class _Answer:
    """The type of the answers as JSON Schema; if code defines it, the name of that code, and in a file the type itself."""

    schema: JsonSchema | None = None
    code: str = ""
    code_type: "OutputType[Any] | None" = None


def _answer(keys: Keys, folder: Path | None) -> _Answer:
    """Return the type of the answers; in a stored app its schema stands for code, which a turn loads."""
    tree = keys.tree("answer")
    plain = to_json(tree) if isinstance(tree, Table) else keys.text("answer").strip()
    if plain == "":  # reported
        return _Answer()
    from taiwa.apps.output_types import answer_type

    if isinstance(plain, str) and IN_FILE.fullmatch(plain):
        try:
            from taiwa.structured import OutputType

            known = OutputType[Any].of(function_named(plain))
            return _Answer(_named_schema(known), plain, known)
        except (InputError, ConfigError) as error:
            keys.problems.code(keys.location("answer"), error)
            return _Answer()
    try:
        found = answer_type(plain, folder)
    except (InputError, ConfigError) as error:
        message = f"the type of answer: {error.message.removeprefix('type notation').lstrip(' ,:')}"
        hint = "write a type such as {days: int, reason: str}"
        keys.error("answer", message, "a path begins at the folder of the app" if names_type_file(tree) else hint)
        return _Answer()
    schema = _named_schema(found)
    code = str(schema.schema.get(CODE, ""))
    if not ((match := IN_FILE.fullmatch(code)) and match["hash"]):
        return _Answer(schema)
    without = JsonSchema({key: each for key, each in schema.schema.items() if key != CODE}, found.name)
    return _Answer(without, "" if names_type_file(tree) else code)  # a file without code names none


def _named_schema(found: "OutputType[Any]") -> JsonSchema:
    """Return the schema of a type with its name, if it has one of its own: as a stored app holds it."""
    schema = found.json_schema.schema
    return JsonSchema(schema if found.name == "Answer" else {"title": found.name, **schema}, found.name)


CODE = "$comment"
"""The keyword of a schema in a stored app that names the code of its type."""


def _flow(keys: Keys, *, is_stored: bool) -> str:
    """Return the program of the turns, a function of a file or a built-in one; `is_stored` as of tools."""
    name = keys.text("flow").strip()
    if "flow" not in keys or name in WITHOUT_EFFECT or (is_stored and IN_FILE.fullmatch(name)):
        return name
    try:
        found = function_named(name)
    except ConfigError as error:
        keys.problems.code(keys.location("flow"), error)
        return name
    if not callable(found):
        keys.error("flow", f"{_without_hash(name)} is not a function", "name a generator function")
    return name


RULE = re.compile(r"---[ \t]*")

HEADING = re.compile(r"## (summary|example)[ \t]*")

NEAR_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]*(summary|example)[ \t]*(?::[ \t]*)?", re.IGNORECASE)

FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)")


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of a file; `line` is the number of the first."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of an app file; `front` is None if the front matter is missing."""

    front: Block | None
    body: Block
    summaries: tuple[Block, ...] = ()
    examples: tuple[Block, ...] = ()


def split_file(text: str, problems: Problems) -> Parts:
    """Split a file with the line ends `\\n` into its parts."""
    lines = text.split("\n")
    if not RULE.fullmatch(lines[0]):
        hint = "begin the file with the lines `---`, `taiwa: 1` and `---`"
        problems.error(Location(1), "the front matter is missing", hint)
        return Parts(None, Block(text, 1))
    close = next((at for at, line in enumerate(lines) if at and RULE.fullmatch(line)), None)
    if close is None:
        problems.error(Location(1), "the front matter is not closed", "end it with a line `---`")
        return Parts(None, Block("", len(lines)))
    front = Block("\n".join(lines[1:close]), 2)
    blocks = _blocks(lines, close + 1, problems)
    summaries = tuple(block for kind, block in blocks if kind == "summary")
    examples = tuple(block for kind, block in blocks if kind == "example")
    return Parts(front, blocks[0][1], summaries, examples)


def _blocks(lines: list[str], start: int, problems: Problems) -> list[tuple[str, Block]]:
    """Return the parts below the front matter with their kinds, the instructions first."""
    cuts = [(start, "")]
    fence, opened = "", 0
    for at in range(start, len(lines)):
        line = lines[at]
        heading = HEADING.fullmatch(line)
        if cuts[-1][1] != "example":
            fence, opened = _fence(line, at, fence, opened)
            if fence:
                continue
        if heading:
            cuts.append((at + 1, heading[1]))
        elif NEAR_HEADING.fullmatch(line) and cuts[-1][1] != "example":
            word = line.strip(" \t#:").lower()
            message = f"the line {line.strip()!r} is part of the text above"
            problems.warn(Location(at + 1), message, f"to begin a part, write `## {word}`")
    if fence:
        message = "the code fence is not closed, so headings below it are ignored"
        problems.warn(Location(opened + 1), message, "close it")
    ends = [at - 1 for at, _ in cuts[1:]] + [len(lines)]
    return [(kind, Block("\n".join(lines[at:end]), at + 1)) for (at, kind), end in zip(cuts, ends, strict=True)]


def _fence(line: str, at: int, fence: str, opened: int) -> tuple[str, int]:
    """Return the code fence that is open after a line, and the line that opened it."""
    match = FENCE.fullmatch(line)
    if not match:
        return fence, opened
    if not fence:
        return match[1], at
    closes = match[1].startswith(fence) and not match[2].strip()
    return ("", at) if closes else (fence, opened)


MAX_FRONT_CHARS = 64 * 1024

MANY_FIELDS = 4
"""The number of fields from which on a model should be shown, or made, to write them."""

MAX_EXAMPLES = 50
MAX_EXAMPLE_CHARS = 64 * 1024


def read_app(text: str, name: str, folder: Path | None = None) -> tuple[App | None, tuple[Problem, ...]]:
    """Return an app and its problems in the order of the file; the app is None if one of them is an error.

    `name` is the default name. A type of a file, named from `folder`, becomes part of the text: a stored conversation has no other
    place. Line ends are normalized first, so that an app has the same hash on every machine.
    """
    problems = Problems()
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if surrogate := SURROGATE.search(text):
        at = surrogate.start()
        place = Location(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
        problems.error(place, f"half a character (U+{ord(surrogate[0]):04X})", "save the file as UTF-8")
        return None, problems.sorted()
    parts = split_file(text, problems)
    if parts.front is None:
        return None, problems.sorted()
    if len(parts.front.text) > MAX_FRONT_CHARS:
        message = f"the front matter has more than {MAX_FRONT_CHARS} characters"
        problems.error(Location(1), message, "move prose below it")
        return None, problems.sorted()
    tree = parse_yaml(parts.front.text, problems.error, parts.front.line)
    front = read_front(tree, problems, folder)
    text = _with_schema(text, tree, front.app.answer, problems)
    sound = not problems.fatal
    if not parts.body.text.strip() and not front.app.runs_file and (front.app.fields or parts.examples):
        problems.error(Location(parts.body.line), "the instructions are missing", "write them below the front matter")
    own_name = front.app.name
    if own_name not in ("", name):
        names = f"the app is named {quoted(own_name)} and its file {quoted(name)}"
        message = f"{names}: apps are found by the name of the file"
        problems.warn(front.name_location, message, "use the same name for both")
    if tree is not None:
        _check_placeholders(parts, front, problems)
    examples = _examples(parts, front.app, problems, sound)
    if front.app.reply == "text+delta" and len(front.app.model_fields) > MANY_FIELDS and not examples:
        message = f"small models leave some of {len(front.app.model_fields)} fields out of a `text+delta` reply"
        problems.warn(front.reply_location, message, "remove `reply`, or show one by `## example`")
    summary_prompt = _summary_prompt(parts, front, problems)
    if problems.fatal:
        return None, problems.sorted()
    source, body = AppSource(own_name or name, text), parts.body.text.strip()
    app = replace(front.app, source=source, body=body, examples=examples, summary_prompt=summary_prompt)
    return app, problems.sorted()


def _with_schema(text: str, tree: Tree | None, answer: JsonSchema | None, problems: Problems) -> str:
    """Return the text of an app with the schema of its answers in place of the file that declares it."""
    entry = tree.get("answer") if isinstance(tree, Table) else None
    if entry is None or answer is None or not names_type_file(entry.value):
        return text
    named = str(to_json(entry.value)).strip()
    code: dict[str, Json] = {CODE: named} if IN_FILE.fullmatch(named) else {}
    written = yaml_text(json.dumps({**code, **answer.schema}, ensure_ascii=False))
    if len(written) > MAX_FRONT_CHARS // 2:
        message = f"the type of answer has {len(written):,} characters as JSON Schema, at most {MAX_FRONT_CHARS // 2:,}"
        problems.error(entry.at, message, "leave out what an answer does not need")
    start = text.find("\n") + 1
    begin, end = (start + each for each in entry.value.span)
    end -= text[begin:end].endswith("\n")  # of a text below its key
    return f"{text[:begin]}{written}{text[end:]}"


def names_type_file(tree: Tree | None) -> bool:
    """Return whether a value of `answer` names a type of a file."""
    from taiwa.apps.output_types import DATA_FILE

    text = tree.text.strip() if isinstance(tree, Scalar) else ""
    return bool(DATA_FILE.fullmatch(text) or IN_FILE.fullmatch(text))


def _check_placeholders(parts: Parts, front: Front, problems: Problems) -> None:
    """Check that every placeholder has a parameter, and every parameter a placeholder."""
    names = tuple(param.name for param in front.app.params)
    used: set[str] = set()
    for block in (parts.body, *parts.summaries):
        for row, line in enumerate(block.text.split("\n")):
            for match in PLACEHOLDER.finditer(line):
                used.add(match[1])
                at = Location(block.line + row, match.start() + 1)
                if match[1] == PROMPT and block is parts.body:
                    if front.app.documents is not None:
                        problems.error(at, f"{quoted(match[0])} has no meaning with `documents`", "remove it")
                elif match[1] not in names:
                    near = f", or correct its name: {suggest(match[1], names, 'params')}" if names else ""
                    message = f"the placeholder {quoted(match[0])} has no parameter"
                    problems.error(at, message, f"add {match[1]} to params{near}")
    for name, at in front.param_locations.items():
        if (
            name not in used
            and not front.app.flow
            and name not in (() if front.app.documents is None else Documents.KEYS)
        ):
            hint = f"write {{{{{name}}}}} in the instructions, or remove it"
            problems.warn(at, f"the parameter {name} is never used", hint)


def _summary_prompt(parts: Parts, front: Front, problems: Problems) -> str:
    """Return the prompt of the summary of old turns."""
    if not parts.summaries:
        return ""
    for extra in parts.summaries[1:]:
        problems.error(Location(extra.line - 1), "`## summary` occurs twice", "keep one")
    first = parts.summaries[0]
    heading = Location(first.line - 1)
    if not first.text.strip():
        problems.error(heading, "`## summary` is empty", "write what a summary must keep, or remove it")
    elif not front.app.window.summarize and not problems.fatal:
        problems.warn(heading, "`## summary` is never used", "add `summarize: true` to window, or remove it")
    return first.text.strip()


def _examples(parts: Parts, app: App, problems: Problems, sound: bool) -> tuple[Example, ...]:
    """Return the example turns; they are checked if the front matter has no errors."""
    if app.flow == SOLVE and parts.examples:
        message = f"`## example` has no effect with `flow: {SOLVE}`, whose examples show calls"
        problems.error(Location(parts.examples[0].line - 1), message, f"remove it, or `flow: {SOLVE}`")
    if len(parts.examples) > MAX_EXAMPLES:
        at = Location(parts.examples[MAX_EXAMPLES].line - 1)
        problems.error(at, f"more than {MAX_EXAMPLES} examples", "keep the best")
    examples: list[Example] = []
    left = MAX_EXAMPLE_CHARS
    for block in parts.examples[:MAX_EXAMPLES]:
        left -= len(block.text)
        if left < 0:
            message = f"the examples have more than {MAX_EXAMPLE_CHARS} characters"
            problems.error(Location(block.line - 1), message, "keep the best")
            break
        examples.append(_example(block, app, problems, sound))
    return tuple(examples)


def _example(block: Block, app: App, problems: Problems, sound: bool) -> Example:
    heading = Location(block.line - 1)
    known = len(problems.entries)
    tree = parse_yaml(block.text, problems.error, block.line)
    if not isinstance(tree, Table):
        if len(problems.entries) == known:
            hint = "write `user: …`, `answer: …` and `delta: …` below the heading"
            problems.error(heading, "the example is not a table", hint)
        return Example("", "")
    keys = Keys(tree, ("user", "answer", "delta"), "the example", problems)
    for key in ("user", "answer"):
        if key not in keys:
            problems.error(heading, f"the example has no `{key}`", f"add `{key}: …`")
    delta = keys.inner("delta")
    if delta is not None and sound:
        _check_delta(delta, keys.location("delta"), app.fields, problems)
    user, answer = keys.text("user"), keys.text("answer")
    if answer and sound and app.flow != ROUTE and (typed := app.output_type) is not None:
        try:
            typed.validate(parse_json(answer))
        except (ValueError, OutputValidationError) as error:
            why = (*getattr(error, "diagnostics", ()), "not JSON")[0]
            keys.error(
                "answer", f"the answer of the example does not have the type `answer`: {why}", "write JSON of it"
            )
    return Example(user.removesuffix("\n"), answer.removesuffix("\n"), None if delta is None else to_json(delta))


def _check_delta(delta: Table, at: Location, fields: tuple[StateField, ...], problems: Problems) -> None:
    """Check that a model could write the delta."""
    names = tuple(made.name for made in fields if not made.computed)
    for entry in delta.entries:
        if entry.key not in names:
            message = f"unknown field {quoted(entry.key)}"
            problems.error(entry.at, message, suggest(entry.key, names, "fields"))
            return
    data = {entry.key: to_json(entry.value) for entry in delta.entries}
    if fits_delta(fields, data):
        return
    try:
        delta_output_type(fields).validate(data)
    except OutputValidationError as error:
        for line in error.diagnostics or (error.message,):
            named = delta.get(line.removeprefix("$.").partition(":")[0].partition(".")[0].partition("[")[0])
            text = " ".join(line.split())
            where, message = named.at if named else at, f"the delta does not fit the state: {text}"
            problems.error(where, message, "change the delta, or the field's type")
