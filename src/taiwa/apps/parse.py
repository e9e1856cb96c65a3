"""Parse an app file into an `App` and its problems."""

import re
from dataclasses import dataclass, replace

from taiwa.apps.front_matter import ASK_PARAMS, Front, Keys, Problem, Problems, quoted, read_front, suggest
from taiwa.conversation.app import PLACEHOLDER, PROMPT, App, AppSource, Example
from taiwa.conversation.state import StateField, delta_output_type
from taiwa.kernel.errors import OutputValidationError
from taiwa.yamlfile import SURROGATE, Location, Table, parse_yaml, to_json

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

MAX_EXAMPLES = 50
MAX_EXAMPLE_CHARS = 64 * 1024


def read_app(text: str, name: str) -> tuple[App | None, tuple[Problem, ...]]:
    """Return an app and its problems in the order of the file; the app is None if one of them is an error.

    `name` is the default name. Line ends are normalized first, so that an app has the same hash on every machine.
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
    front = read_front(tree, problems)
    sound = not problems.fatal
    if not parts.body.text.strip() and (front.app.fields or parts.examples):
        problems.error(Location(parts.body.line), "the instructions are missing", "write them below the front matter")
    own_name = front.app.name
    if own_name not in ("", name):
        names = f"the app is named {quoted(own_name)} and its file {quoted(name)}"
        message = f"{names}: apps are found by the name of the file"
        problems.warn(front.name_location, message, "use the same name for both")
    if tree is not None:
        _check_placeholders(parts, front, problems)
    examples = _examples(parts, front.app.fields, problems, sound)
    summary_prompt = _summary_prompt(parts, front, problems)
    if problems.fatal:
        return None, problems.sorted()
    source, body = AppSource(own_name or name, text), parts.body.text.strip()
    app = replace(front.app, source=source, body=body, examples=examples, summary_prompt=summary_prompt)
    return app, problems.sorted()


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
                    if front.app.flow == "ask":
                        problems.error(at, f"{quoted(match[0])} has no meaning with `flow: ask`", "remove it")
                elif match[1] not in names:
                    near = f", or correct its name: {suggest(match[1], names, 'params')}" if names else ""
                    message = f"the placeholder {quoted(match[0])} has no parameter"
                    problems.error(at, message, f"add {match[1]} to params{near}")
    for name, at in front.param_locations.items():
        if name not in used and name not in (ASK_PARAMS if front.app.flow == "ask" else ()):
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


def _examples(parts: Parts, fields: tuple[StateField, ...], problems: Problems, sound: bool) -> tuple[Example, ...]:
    """Return the example turns; their deltas are checked if the front matter has no errors."""
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
        examples.append(_example(block, fields, problems, sound))
    return tuple(examples)


def _example(block: Block, fields: tuple[StateField, ...], problems: Problems, sound: bool) -> Example:
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
        _check_delta(delta, keys.location("delta"), fields, problems)
    user, answer = keys.text("user"), keys.text("answer")
    return Example(user.removesuffix("\n"), answer.removesuffix("\n"), None if delta is None else to_json(delta))


def _check_delta(delta: Table, at: Location, fields: tuple[StateField, ...], problems: Problems) -> None:
    """Check that a model could write the delta."""
    names = tuple(made.name for made in fields if not made.computed)
    for entry in delta.entries:
        if entry.key not in names:
            message = f"unknown field {quoted(entry.key)}"
            problems.error(entry.at, message, suggest(entry.key, names, "fields"))
            return
    try:
        delta_output_type(fields).validate(to_json(delta))
    except OutputValidationError as error:
        for line in error.diagnostics or (error.message,):
            named = delta.get(line.removeprefix("$.").partition(":")[0].partition(".")[0].partition("[")[0])
            text = " ".join(line.split())
            where, message = named.at if named else at, f"the delta does not fit the state: {text}"
            problems.error(where, message, "change the delta, or the field's type")
