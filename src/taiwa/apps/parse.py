"""App file → `App` with its problems."""

import re
from dataclasses import dataclass

from taiwa.apps.front_matter import ASKED, Front, Keys, read_front
from taiwa.apps.problems import Problem, Problems, quoted, suggest
from taiwa.conversation.app import PLACEHOLDER, App, AppSource, Example
from taiwa.conversation.state import StateField, delta_output_type
from taiwa.kernel.errors import OutputValidationError
from taiwa.yamlfile import Location, Table, parse_yaml, to_json

__all__ = ["MOST_FRONT_CHARS", "Block", "divide", "read_app"]


RULE = re.compile(r"---[ \t]*")

HEADING = re.compile(r"## (summary|example)[ \t]*")

NEAR_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]*(summary|example)[ \t]*:?[ \t]*", re.IGNORECASE)

FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)")


@dataclass(frozen=True, slots=True)
class Block:
    """Some lines of a file; `line` is the number of the first."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of an app file; without front matter `front` is None."""

    front: Block | None
    body: Block
    summaries: tuple[Block, ...] = ()
    examples: tuple[Block, ...] = ()


def divide(text: str, faults: Problems) -> Parts:
    """Cut a file, whose line ends are all `\\n`, into its parts."""
    lines = text.split("\n")
    if not RULE.fullmatch(lines[0]):
        faults.error(
            Location(1), "no front matter", "begin the file with a line `---`, then `taiwa: 1`, then a line `---`"
        )
        return Parts(None, Block(text, 1))
    close = next((at for at, line in enumerate(lines) if at and RULE.fullmatch(line)), None)
    if close is None:
        faults.error(Location(1), "the front matter is not closed", "end it with a line `---`")
        return Parts(None, Block("", len(lines)))
    front = Block("\n".join(lines[1:close]), 2)
    blocks = _blocks(lines, close + 1, faults)
    summaries = tuple(block for kind, block in blocks if kind == "summary")
    examples = tuple(block for kind, block in blocks if kind == "example")
    return Parts(front, blocks[0][1], summaries, examples)


def _blocks(lines: list[str], start: int, faults: Problems) -> list[tuple[str, Block]]:
    """The parts below the front matter, the instructions first, each with its kind."""
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
            faults.warn(
                Location(at + 1),
                f"the line {line.strip()!r} stays part of the text above",
                f"to begin a part, write `## {word}`",
            )
    if fence:
        faults.warn(Location(opened + 1), "this code fence is never closed, so no heading below it counts", "close it")
    ends = [at - 1 for at, _ in cuts[1:]] + [len(lines)]
    return [(kind, Block("\n".join(lines[at:end]), at + 1)) for (at, kind), end in zip(cuts, ends, strict=True)]


def _fence(line: str, at: int, fence: str, opened: int) -> tuple[str, int]:
    """The code fence that is open after a line, and where it was opened."""
    found = FENCE.fullmatch(line)
    if not found:
        return fence, opened
    if not fence:
        return found[1], at
    closes = found[1].startswith(fence) and not found[2].strip()
    return ("", at) if closes else (fence, opened)


MOST_FRONT_CHARS = 64 * 1024

MOST_EXAMPLES = 50


def read_app(text: str, name: str) -> tuple[App | None, tuple[Problem, ...]]:
    """Read an app and all its faults, in the order of the file; with an error among them there is no app.

    `name` is what the app is called where its file does not say. Line ends are made alike first, so that one app has one
    hash on every machine.
    """
    faults = Problems()
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    parts = divide(text, faults)
    if parts.front is None:
        return None, faults.sorted()
    if len(parts.front.text) > MOST_FRONT_CHARS:
        faults.error(
            Location(1), f"the front matter has more than {MOST_FRONT_CHARS} characters", "move prose below it"
        )
        return None, faults.sorted()
    tree = parse_yaml(parts.front.text, faults.error, parts.front.line)
    front = read_front(tree, faults)
    sound = not faults.fatal
    if not parts.body.text.strip():
        faults.error(
            Location(parts.body.line),
            "there are no instructions",
            "write below the front matter what the model is to do",
        )
    if front.name not in ("", name):
        message = (
            f"the app is named {quoted(front.name)} and its file {quoted(name)}: it is found by the name of its file"
        )
        faults.warn(front.name_at, message, "name both alike")
    if tree is not None:
        _check_placeholders(parts, front, faults)
    examples = _examples(parts, front.fields, faults, sound)
    summary_prompt = _summary_prompt(parts, front, faults)
    if faults.fatal:
        return None, faults.sorted()
    source = AppSource(front.name or name, text)
    return _app(source, parts, front, examples, summary_prompt), faults.sorted()


def _app(source: AppSource, parts: Parts, front: Front, examples: tuple[Example, ...], summary_prompt: str) -> App:
    return App(
        source,
        parts.body.text.strip(),
        front.fields,
        front.params,
        front.window,
        front.reply,
        examples,
        summary_prompt,
        front.model,
        front.sampling,
        front.about,
        front.tools,
        front.flow,
    )


def _check_placeholders(parts: Parts, front: Front, faults: Problems) -> None:
    """Every placeholder has its parameter, and every parameter its placeholder."""
    names = tuple(param.name for param in front.params)
    used: set[str] = set()
    for block in (parts.body, *parts.summaries):
        for row, line in enumerate(block.text.split("\n")):
            for found in PLACEHOLDER.finditer(line):
                used.add(found[1])
                if found[1] not in names:
                    near = f", or mend its name: {suggest(found[1], names, 'params')}" if names else ""
                    message = f"the placeholder {quoted(found[0])} has no parameter"
                    faults.error(
                        Location(block.line + row, found.start() + 1), message, f"add {found[1]} to params{near}"
                    )
    for name, spot in front.spots.items():
        if name not in used and name not in (ASKED if front.flow == "ask" else ()):
            faults.warn(
                spot, f"the parameter {name} is never used", f"write {{{{{name}}}}} in the instructions, or take it out"
            )


def _summary_prompt(parts: Parts, front: Front, faults: Problems) -> str:
    """What a summary of old turns is asked for with."""
    if not parts.summaries:
        return ""
    for extra in parts.summaries[1:]:
        faults.error(Location(extra.line - 1), "there is a second `## summary`", "keep one")
    first = parts.summaries[0]
    if not first.text.strip():
        faults.error(
            Location(first.line - 1),
            "there is nothing below `## summary`",
            "write what a summary must keep, or take it out",
        )
    elif not front.window.summarize and not faults.fatal:
        faults.warn(Location(first.line - 1), "`## summary` is never used", "add `summarize: true` to window, or take it out")
    return first.text.strip()


def _examples(parts: Parts, fields: tuple[StateField, ...], faults: Problems, sound: bool) -> tuple[Example, ...]:
    """The worked turns; deltas are checked only if the front matter is sound."""
    if len(parts.examples) > MOST_EXAMPLES:
        faults.error(
            Location(parts.examples[MOST_EXAMPLES].line - 1), f"more than {MOST_EXAMPLES} examples", "keep the best"
        )
    return tuple(_example(block, fields, faults, sound) for block in parts.examples[:MOST_EXAMPLES])


def _example(block: Block, fields: tuple[StateField, ...], faults: Problems, sound: bool) -> Example:
    heading = Location(block.line - 1)
    known = len(faults.found)
    tree = parse_yaml(block.text, faults.error, block.line)
    if not isinstance(tree, Table):
        if len(faults.found) == known:
            faults.error(
                heading, "this example is no table", "write `user: …`, `answer: …` and `delta: …` below the heading"
            )
        return Example("", "")
    keys = Keys(tree, ("user", "answer", "delta"), "the example", faults)
    for key in ("user", "answer"):
        if key not in keys:
            faults.error(heading, f"this example has no `{key}`", f"add `{key}: …`")
    delta = keys.inner("delta")
    if delta is not None and sound:
        _check_delta(delta, keys.spot("delta"), fields, faults)
    user, answer = keys.text("user"), keys.text("answer")
    return Example(user.removesuffix("\n"), answer.removesuffix("\n"), None if delta is None else to_json(delta))


def _check_delta(delta: Table, at: Location, fields: tuple[StateField, ...], faults: Problems) -> None:
    """See that a model could have written it."""
    names = tuple(made.name for made in fields if not made.computed)
    for entry in delta.entries:
        if entry.key not in names:
            message = f"the model writes no field {quoted(entry.key)}"
            faults.error(entry.at, message, suggest(entry.key, names, "fields"))
            return
    try:
        delta_output_type(fields).check(to_json(delta))
    except OutputValidationError as error:
        for line in error.diagnostics or (error.message,):
            named = delta.get(line.removeprefix("$.").partition(":")[0].partition(".")[0].partition("[")[0])
            text = " ".join(line.split())
            faults.error(
                named.at if named else at,
                f"this delta does not fit the state: {text}",
                "change the delta, or the field's type",
            )
