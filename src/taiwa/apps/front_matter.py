"""Front matter → values of an app."""

import re
from dataclasses import dataclass, field
from typing import cast, get_args

from taiwa.apps.problems import Problems, quoted, suggest
from taiwa.conversation.app import ALL, Flow, Param, ReplyMode, WindowPolicy, fit_params
from taiwa.conversation.reducers import known_reducers, reducer
from taiwa.conversation.state import COMPUTED_FIELDS, StateField, check_field
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.messages import Sampling
from taiwa.structured.type_notation import parse_notation, render_notation
from taiwa.yamlfile import Entry, Items, Location, Scalar, Table, Tree, to_json

__all__ = ["ASKED", "Front", "Keys", "read_front"]


NAMES: dict[type[Tree], str] = {Items: "a list", Table: "a table"}


def kind_name(tree: Tree) -> str:
    """Name what stands there, for a message."""
    if not isinstance(tree, Scalar):
        return NAMES[type(tree)]
    return quoted(tree.text) if tree.text else "nothing"


@dataclass(slots=True)
class Keys:
    """Reads the values of one table; `what` names the table in messages."""

    table: Table
    known: tuple[str, ...]
    what: str
    faults: Problems

    def __post_init__(self) -> None:
        for entry in self.table.entries:
            if entry.key not in self.known:
                message = f"unknown key {quoted(entry.key)}{self.what and f' in {self.what}'}"
                self.faults.error(entry.at, message, suggest(entry.key, self.known, "keys"))

    def __contains__(self, key: str) -> bool:
        return self.table.get(key) is not None

    def spot(self, key: str) -> Location:
        """Where a key stands, or else where the table begins."""
        entry = self.table.get(key)
        return entry.at if entry else self.table.at

    def tree(self, key: str) -> Tree | None:
        """Whatever a key holds."""
        entry = self.table.get(key)
        return entry.value if entry else None

    def text(self, key: str, otherwise: str = "") -> str:
        """A text; a number or a word like `true` is taken as it was written."""
        held = self.tree(key)
        if held is None:
            return otherwise
        if isinstance(held, Scalar) and held.value is not None:
            return held.text
        self.wrong(key, "a text")
        return otherwise

    def whole(self, key: str, low: int, otherwise: int | None = None) -> int | None:
        """A whole number of at least `low`."""
        held = self.tree(key)
        if held is None:
            return otherwise
        number = held.value if isinstance(held, Scalar) else None
        if isinstance(number, int) and not isinstance(number, bool) and low <= number:
            return number
        self.wrong(key, f"a whole number, {low} or more")
        return otherwise

    def number(self, key: str, low: float, high: float, otherwise: float | None = None) -> float | None:
        """A number between two others, or null."""
        held = self.tree(key)
        if held is None:
            return otherwise
        number = held.value if isinstance(held, Scalar) else ""
        if number is None:
            return None
        if isinstance(number, (int, float)) and not isinstance(number, bool) and low <= number <= high:
            return float(number)
        self.wrong(key, f"a number from {low:g} to {high:g}")
        return otherwise

    def inner(self, key: str) -> Table | None:
        """A table."""
        held = self.tree(key)
        if held is None or isinstance(held, Table):
            return held
        self.wrong(key, "a table")
        return None

    def texts(self, key: str) -> tuple[Scalar, ...]:
        """A list of texts."""
        held = self.tree(key)
        if held is None:
            return ()
        if isinstance(held, Items) and all(isinstance(item, Scalar) and item.value is not None for item in held.items):
            return cast("tuple[Scalar, ...]", held.items)
        self.wrong(key, "a list of names", f"write {key}: [one, two]")
        return ()

    def wrong(self, key: str, wanted: str, mend: str = "") -> None:
        """Note that a key holds something else than it should."""
        entry = self.table.get(key)
        held = kind_name(entry.value) if entry else "nothing"
        self.faults.error(
            self.spot(key), f"{key} must be {wanted}, not {held}", mend or "change it, or leave the key out"
        )


FORMAT = 1

TOP = ("taiwa", "name", "about", "params", "state", "window", "reply", "model", "sampling", "tools", "flow")

FIELD = ("type", "reduce", "description", "init", "max_shown", "computed")

PARAM = ("type", "ask", "default")

WINDOW = ("max_size", "keep", "summarize", "keep_first", "keep_setting")

REPLIES: tuple[str, ...] = get_args(ReplyMode)

FLOWS: tuple[str, ...] = get_args(Flow)

ASKED = ("in", "as", "policy", "max_questions", "user", "assess_by")
"""Parameters that the flow `ask` reads itself."""

RESERVED = ("response",)
"""StateField names that another part of a reply already has."""

APP_NAME = re.compile(r"\w[\w.-]{0,63}")

FIELD_NAME = re.compile(r"[^\W\d]\w{0,63}")

PARAM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(slots=True)
class Front:
    """What the front matter says; `spots` has the place of each parameter, `name_at` that of the name."""

    name: str = ""
    about: str = ""
    params: tuple[Param, ...] = ()
    fields: tuple[StateField, ...] = ()
    window: WindowPolicy = ALL
    reply: ReplyMode = "text+delta"
    model: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    tools: tuple[str, ...] = ()
    flow: Flow = "chat"
    spots: dict[str, Location] = field(default_factory=dict[str, Location])
    name_at: Location = field(default_factory=lambda: Location(1))


def read_front(tree: Tree | None, faults: Problems) -> Front:
    """Read every key; what is wrong is noted, and what can be read is read all the same."""
    if not isinstance(tree, Table):
        if not faults.fatal:
            faults.error(
                tree.at if tree else Location(1),
                "the front matter is not a table",
                "write `taiwa: 1` as its first line",
            )
        return Front()
    keys = Keys(tree, TOP, "", faults)
    _format(keys)
    front = Front(_name(keys), " ".join(keys.text("about").split()), model=keys.text("model").strip())
    front.name_at = keys.spot("name")
    front.params = tuple(_param(entry, faults) for entry in _named(keys, "params", PARAM_NAME))
    front.spots = {entry.key: entry.at for entry in _named(keys, "params", PARAM_NAME)}
    front.fields = tuple(_field(entry, faults) for entry in _named(keys, "state", FIELD_NAME))
    front.window = _window(keys, front.fields)
    front.reply = _reply(keys)
    if front.reply != REPLIES[0] and all(made.computed for made in front.fields):
        faults.warn(keys.spot("reply"), "reply changes nothing while the model writes no field", "take it out")
    front.sampling = _sampling(keys)
    front.tools = _tools(keys)
    front.flow = _flow(keys)
    return front


def _format(keys: Keys) -> None:
    held = keys.tree("taiwa")
    if held is None:
        keys.faults.error(
            Location(1), "the key taiwa is missing: it says which format this is", f"add `taiwa: {FORMAT}`"
        )
    elif (
        not isinstance(held, Scalar)
        or not isinstance(held.value, int)
        or isinstance(held.value, bool)
        or held.value < 1
    ):
        keys.wrong("taiwa", f"{FORMAT}", f"write `taiwa: {FORMAT}`")
    elif held.value != FORMAT:
        message = f"the file has format {held.value}, and this program reads format {FORMAT}"
        keys.faults.error(keys.spot("taiwa"), message, "install a newer taiwa")


def _name(keys: Keys) -> str:
    name = keys.text("name")
    if name and not APP_NAME.fullmatch(name):
        keys.wrong("name", "a word of letters, digits, `-`, `_` and `.`")
        return ""
    return name


def _named(keys: Keys, key: str, form: re.Pattern[str]) -> tuple[Entry, ...]:
    """The entries of a table of names, those with an impossible name left out."""
    table = keys.inner(key)
    good: list[Entry] = []
    for entry in table.entries if table else ():
        if not form.fullmatch(entry.key):
            message = f"{quoted(entry.key)} cannot be a name in {key}"
            keys.faults.error(entry.at, message, "take letters, digits and `_`, a letter first")
        elif key == "state" and entry.key in RESERVED:
            keys.faults.error(
                entry.at, f"the field {entry.key!r} has the name of the reply's own part", "choose another name"
            )
        else:
            good.append(entry)
    return tuple(good)


def _described(entry: Entry, known: tuple[str, ...], faults: Problems) -> Keys:
    """The table that describes a name; a text alone is its type."""
    held = entry.value
    if isinstance(held, Scalar) and held.value is not None:
        held = Table((Entry("type", held, entry.at),), entry.at)
    elif not isinstance(held, Table):
        message = f"{entry.key} must be a type or a table, not {kind_name(held)}"
        faults.error(entry.at, message, f"write {entry.key}: {{ type: str }}")
        held = Table((Entry("type", Scalar("any", "any", entry.at), entry.at),), entry.at)
    return Keys(held, known, entry.key, faults)


def _type(keys: Keys) -> str:
    """A type in notation, checked; an unreadable one counts as `any` so that reading can go on."""
    held = keys.tree("type")
    if held is None:
        return "any"
    plain = held.text if isinstance(held, Scalar) else to_json(held)
    try:
        annotation = parse_notation(plain if isinstance(plain, (str, dict)) else str(plain))
        return plain if isinstance(plain, str) else render_notation(annotation)
    except InputError as error:
        message = f"the type of {keys.what}{error.message.removeprefix('type notation')}"
        keys.faults.error(keys.spot("type"), message, "write a type such as str, int(1..5) or list[str]")
    return "any"


def _param(entry: Entry, faults: Problems) -> Param:
    keys = _described(entry, PARAM, faults)
    kind = _type(keys) if "type" in keys else "str"
    held = keys.tree("default")
    default = to_json(held) if held else None
    if default is not None:
        try:
            fit_params(Param(entry.key, kind), default)
        except InputError as error:
            faults.error(keys.spot("default"), f"the default: {error.message}", "change one of the two")
    return Param(entry.key, kind, " ".join(keys.text("ask").split()), default, "default" not in keys)


def _field(entry: Entry, faults: Problems) -> StateField:
    keys = _described(entry, FIELD, faults)
    description = " ".join(keys.text("description").split())
    if "computed" in keys:
        return _computed(entry, keys, description)
    if "type" not in keys:
        faults.error(
            entry.at, f"the field {entry.key} has no type", "add `type: …`, or `computed: …` if the program computes it"
        )
        return StateField(entry.key, "any", description=description)
    held = keys.tree("init")
    known = len(faults.found)
    made = StateField(
        entry.key,
        _type(keys),
        to_json(held) if held else None,
        _reduce(keys),
        description,
        keys.whole("max_shown", 0),
    )
    if len(faults.found) == known:
        try:
            check_field(made)
        except ConfigError as error:
            at = keys.spot("init" if error.message.startswith("init") else "reduce" if "reduce" in keys else "type")
            faults.error(at, f"the field {entry.key}: {error.message}", "change one of the two")
    return made


def _computed(entry: Entry, keys: Keys, description: str) -> StateField:
    how = keys.text("computed")
    if how not in COMPUTED_FIELDS:
        keys.faults.error(
            keys.spot("computed"),
            f"unknown computed field {quoted(how)}",
            suggest(how, tuple(COMPUTED_FIELDS), "computed fields"),
        )
        how = next(iter(COMPUTED_FIELDS))
    for key in ("type", "reduce", "init", "max_shown"):
        if key in keys:
            keys.faults.error(
                keys.spot(key), f"{entry.key} is computed and must not have {key}", "take one of the two out"
            )
    return StateField(entry.key, description=description, computed=how)


def _reduce(keys: Keys) -> str:
    name = keys.text("reduce", "set")
    try:
        reducer(name)
    except ConfigError:
        known = (*known_reducers(), "last(n)")
        keys.faults.error(keys.spot("reduce"), f"unknown reducer {quoted(name)}", suggest(name, known, "reducers"))
        return "set"
    return name


def _window(keys: Keys, fields: tuple[StateField, ...]) -> WindowPolicy:
    held = keys.tree("window")
    if held is None or (isinstance(held, Scalar) and held.text == "all"):
        return ALL
    if not isinstance(held, Table):
        keys.wrong("window", "`all` or a table", "write window: { max_size: 20, keep: 10, summarize: true }")
        return ALL
    inner = Keys(held, WINDOW, "window", keys.faults)
    for key in ("max_size", "keep"):
        if key not in inner:
            mend = "write window: { max_size: 20, keep: 10 }, or window: all"
            keys.faults.error(held.at, f"window has no `{key}`", mend)
    max_size, keep = inner.whole("max_size", 1, 1) or 1, inner.whole("keep", 0, 0) or 0
    if "max_size" in inner and keep >= max_size:
        keys.faults.error(
            inner.spot("keep"), f"window keeps {keep} of {max_size} turns", "make `keep` smaller than `max_size`"
        )
    summarize = inner.text("summarize", "false")
    if summarize not in ("true", "false"):
        inner.wrong("summarize", "true or false")
    names = tuple(made.name for made in fields if not made.computed)
    setting = inner.texts("keep_setting")
    for item in setting:
        if item.text not in names:
            message = f"the model writes no field {quoted(item.text)}"
            keys.faults.error(item.at, message, suggest(item.text, names, "fields"))
    first = inner.whole("keep_first", 0, 0) or 0
    return WindowPolicy(max_size, keep, summarize == "true", first, tuple(item.text for item in setting))


def _reply(keys: Keys) -> ReplyMode:
    reply = keys.text("reply", REPLIES[0])
    if reply not in REPLIES:
        keys.wrong("reply", f"{', '.join(REPLIES[:-1])} or {REPLIES[-1]}")
        return "text+delta"
    return cast("ReplyMode", reply)


def _flow(keys: Keys) -> Flow:
    flow = keys.text("flow", FLOWS[0])
    if flow not in FLOWS:
        keys.wrong("flow", " or ".join(FLOWS))
        return "chat"
    return cast("Flow", flow)


def _sampling(keys: Keys) -> Sampling:
    table = keys.inner("sampling")
    if table is None:
        return Sampling()
    inner = Keys(table, ("temperature", "top_p", "max_tokens", "seed"), "sampling", keys.faults)
    return Sampling(
        inner.number("temperature", 0, 2, 0.0),
        inner.number("top_p", 0, 1),
        inner.whole("max_tokens", 1),
        inner.whole("seed", 0),
    )


def _tools(keys: Keys) -> tuple[str, ...]:
    """The names of tools. Any name may stand here: a program can hand over tools of its own when it opens the app."""
    names: list[str] = []
    for item in keys.texts("tools"):
        if not TOOL_NAME.fullmatch(item.text):
            message = f"{quoted(item.text)} cannot be the name of a tool"
            keys.faults.error(
                item.at, message, "take letters, digits, `_` and `-`, a letter first; see `taiwa tools list`"
            )
        elif item.text in names:
            keys.faults.error(item.at, f"the tool {item.text} stands here twice", "take one of the two out")
        else:
            names.append(item.text)
            _is_there(item, keys.faults)
    return tuple(names)


def _is_there(item: Scalar, faults: Problems) -> None:
    from taiwa.tools import builtin

    if item.text not in builtin():
        mend = suggest(item.text, tuple(builtin()), "tools")
        faults.warn(item.at, f"the tool {item.text} is not built in, so a program must hand it over", mend)
