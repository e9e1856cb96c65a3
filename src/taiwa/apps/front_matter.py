"""Read the front matter of an app file: keys and values, each problem with its location."""

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal, TypeVar, cast, get_args

from taiwa.apps.user_reducers import add_user_reducer
from taiwa.conversation.app import ALL, PROMPT, App, AppSource, Flow, Param, ReplyMode, WindowPolicy, fit_params
from taiwa.conversation.reducers import reducer, reducer_names
from taiwa.conversation.state import COMPUTED_FIELDS, StateField, check_field
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.messages import Sampling
from taiwa.structured.type_notation import parse_notation, render_notation
from taiwa.yamlfile import Entry, Items, Location, Scalar, Table, Tree, to_json

T = TypeVar("T", bound=str)

MAX_PROBLEMS = 200

SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a file; an app with a problem of level `error` cannot be opened."""

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
                self.problems.error(entry.at, message, suggest(entry.key, self.known, "keys"))

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
        if isinstance(number, (int, float)) and not isinstance(number, bool) and low <= number <= high:
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

TOP = ("taiwa", "name", "about", "params", "state", "window", "reply", "model", "sampling", "tools", "flow")

FIELD = ("type", "reduce", "description", "init", "max_shown", "required", "computed")

PARAM = ("type", "ask", "default")

WINDOW = ("max_size", "keep", "summarize", "keep_first", "keep_setting")

REPLIES: tuple[ReplyMode, ...] = get_args(ReplyMode)

FLOWS: tuple[Flow, ...] = get_args(Flow)

ASK_PARAMS = ("in", "as", "policy", "max_questions", "user", "assess_by")
"""Parameters that the flow `ask` reads."""

RESERVED = {"state": ("response",), "params": (PROMPT,)}
"""Names that no field may have, because another part of a reply has it, and those that no parameter may have."""

NOUNS = {"state": "field", "params": "parameter"}

APP_NAME = re.compile(r"\w[\w.-]{0,63}")

FIELD_NAME = re.compile(r"[^\W\d]\w{0,63}")

PARAM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(slots=True)
class Front:
    """An app without the text below its front matter, with the locations of its name and its parameters."""

    app: App = field(default_factory=lambda: App(AppSource("", ""), ""))
    name_location: Location = field(default_factory=lambda: Location(1))
    param_locations: dict[str, Location] = field(default_factory=dict[str, Location])


def read_front(tree: Tree | None, problems: Problems) -> Front:
    """Read all keys; report the problems and read on."""
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
        tools=_tools(keys),
        flow=keys.choice("flow", FLOWS),
    )
    if app.reply != REPLIES[0] and not app.model_fields:
        message = "reply has no effect: the state has no field that the model writes"
        problems.warn(keys.location("reply"), message, "remove it")
    for each, entry in zip(fields, entries, strict=True):
        if app.reply == "environment" and not each.computed and each.reducer.needs_before:
            message = f"the field {each.name}: with `reply: environment` the model writes it whole, so {each.reduce!r} is not applied"
            problems.warn(entry.at, message, "remove `reduce`, or bound the value by union, table or last(n)")
    return Front(app, keys.location("name"), {entry.key: entry.at for entry in params})


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
    made = StateField(entry.key, kind, init, reduce, description, shown, required=required)
    if len(problems.entries) == known:
        try:
            check_field(made)
        except ConfigError as error:
            key = "init" if error.message.startswith("init") else "reduce" if "reduce" in keys else "type"
            keys.error(key, f"the field {entry.key}: {error.message}", "change one of the two")
    return made


def _computed(entry: Entry, keys: Keys, description: str) -> StateField:
    how = keys.text("computed")
    if how not in COMPUTED_FIELDS:
        hint = suggest(how, tuple(COMPUTED_FIELDS), "computed fields")
        keys.error("computed", f"unknown computed field {quoted(how)}", hint)
        how = next(iter(COMPUTED_FIELDS))
    for key in ("type", "reduce", "init", "max_shown", "required"):
        if key in keys:
            keys.error(key, f"{entry.key} is computed and cannot have `{key}`", "remove one of the two")
    return StateField(entry.key, description=description, computed=how)


def _reduce(keys: Keys) -> str:
    name = keys.text("reduce", "set")
    try:
        if ".py" in name and add_user_reducer(name):
            return name
    except ConfigError as error:
        keys.error("reduce", error.message, "a reducer of your own is written FILE.py:NAME or FILE.py:NAME(ARGUMENT)")
        return "set"
    try:
        reducer(name)
    except ConfigError as error:
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


def _sampling(keys: Keys) -> Sampling:
    table = keys.inner("sampling")
    if table is None:
        return Sampling()
    inner = Keys(table, ("temperature", "top_p", "max_tokens", "seed"), "sampling", keys.problems)
    temperature, top_p = inner.number("temperature", 0, 2, 0.0), inner.number("top_p", 0, 1)
    return Sampling(temperature, top_p, inner.whole("max_tokens", 1), inner.whole("seed", 0))


def _tools(keys: Keys) -> tuple[str, ...]:
    """Return the names of tools. Unknown names are allowed: a program can pass its own tools when it opens the app."""
    names: list[str] = []
    for item in keys.texts("tools"):
        if not TOOL_NAME.fullmatch(item.text):
            message = f"{quoted(item.text)} is not a valid tool name"
            hint = "use letters, digits, `_` and `-`, beginning with a letter; see `taiwa tools list`"
            keys.problems.error(item.at, message, hint)
        elif item.text in names:
            keys.problems.error(item.at, f"the tool {item.text} is listed twice", "remove one of the two")
        else:
            from taiwa.tools.registry import builtin_tools, tool_names

            names.append(item.text)
            if item.text not in builtin_tools() and item.text not in tool_names():
                hint = suggest(item.text, tool_names(), "tools")
                keys.problems.warn(item.at, f"the tool {item.text} is not built in; the program must pass it", hint)
    return tuple(names)
