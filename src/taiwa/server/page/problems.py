"""Messages about input that cannot be used, and of a turn, in the language of the page: the library writes them in English."""

import re
from collections.abc import Sequence
from functools import cache

from taiwa.i18n import gettext_noop, translator

PROBLEMS = (
    gettext_noop("the text is empty"),
    gettext_noop("the text has {n} characters; at most {most} are allowed in one turn"),
    gettext_noop(
        "invalid type {type}; expected fields such as 'name, age int', a JSON Schema, an example as JSON, or TypeScript"
    ),
    gettext_noop("type notation, column {n}: {problem}"),
    gettext_noop("expected {expected}, not {found}"),
    gettext_noop("a type: {types}"),
    gettext_noop("the pattern {pattern} cannot be used: {problem}"),
    gettext_noop("the grammar has no rule {name} to start with"),
    gettext_noop(
        "the app {app} keeps a state or has tools of its own: it takes no response format, stop strings or logprobs of a request, and a request cannot require calls of its tools"
    ),
    gettext_noop("unknown app {app}; choose one of {names}"),
    gettext_noop("the model {name} does not exist here ({remedy})"),
    gettext_noop("GET /v1/models lists all"),
    gettext_noop("the app {app} requires the parameter {name}; pass {option}"),
    gettext_noop("the app {app} has no parameter {name}; it has: {names}"),
    gettext_noop("the parameter {name} has the type {type}, and {value} does not fit: {problem}"),
    gettext_noop("the app {app} does not take attachments; index the files: {command}"),
    gettext_noop("{model} cannot read images ({name}); choose a model that can"),
    gettext_noop("{model} cannot read PDFs ({name}); attach its text {option}, choose a model that can"),
    gettext_noop("{name} is neither a PNG, JPEG, WebP or GIF image, a PDF, nor text in UTF-8"),
    gettext_noop("{name} must be from {least} to {most}, got {value}"),
    gettext_noop("cannot go back 1 step; only 0 lead to the beginning"),
    gettext_noop("nothing to redo in session {name}: everything that was undone is restored"),
    gettext_noop("nothing to redo in session {name}: nothing was undone"),
    gettext_noop("a session name must not contain spaces, control characters or ~ @ { }, found {found}"),
    gettext_noop("session {name} already exists; choose another name"),
    gettext_noop("session {name} not found; {hint}"),
    gettext_noop("sessions: {names}"),
    gettext_noop("did you mean {near}?"),
    gettext_noop("invalid tag {tag}; give 1 to 50 characters without a comma"),
    gettext_noop("a session can have at most {most} tags, got {n}"),
    gettext_noop("the value does not fit: {place} = {value}: {problem}"),
    gettext_noop("must be {type}"),
    gettext_noop("the state has no field {name}; fields: {names}"),
    gettext_noop("the page: max_cost must be {wanted}, not {value}"),
    gettext_noop("a number such as 0.25, or none for no limit"),
    gettext_noop("a number, zero or more, or none for no limit"),
    gettext_noop("one amount each of a command, /call, /conversation and /day: 0.05, 5/day"),
    gettext_noop("unknown provider {name}: did you mean {near}? (known: {names})"),
    gettext_noop("the key for {server} contains white space or a character that no key has; {remedy}"),
    gettext_noop("set it again with {command}"),
    gettext_noop("the name of the model is not a web address; use {form}"),
    gettext_noop("the model {name} was not found on this machine"),
    gettext_noop("the model {name} is not listed by {server}"),
    gettext_noop("{key} has {n} characters; a fact has at most {most}"),
    gettext_noop("a profile has at most {most} facts"),
    gettext_noop("an index cannot be called {name}: give one line, without @, / and a dot at its beginning"),
    gettext_noop("{name} is of a type that is not read; use one of {types}"),
    gettext_noop("the file name {name} cannot be used; name it like {form}"),
    gettext_noop("the file {name} is hidden, and hidden files are not indexed; rename it"),
    gettext_noop("{name} is larger than {most} MB"),
    gettext_noop("no space left for {name}: documents may take {most} MB; delete some first"),
    gettext_noop("encrypted: it needs a password"),
    gettext_noop("broken: not a PDF that can be opened"),
    gettext_noop("broken or encrypted: not a DOCX that can be opened"),
    gettext_noop("no text layer: it is pictures of pages, so run text recognition on it first"),
    gettext_noop("not a text file"),
    gettext_noop("loading {name}"),
    gettext_noop("reading the prompt: {part}"),
    gettext_noop("{server} has not begun to answer for {n} s; still waiting"),
    gettext_noop("the limit of calls per minute"),
    gettext_noop("the model returned no text"),
    gettext_noop("the model wrote no state"),
    gettext_noop("the state is unchanged: {problem}"),
    gettext_noop("not recorded, because it was not said: {names} (`cite: false` takes it all the same)"),
    gettext_noop("quoting the passages instead: {problem}"),
    gettext_noop("the model refused to answer"),
    gettext_noop("the query could not be rewritten; searching with the last text"),
    gettext_noop("the rewritten query lost a negation; searching with the last text"),
    gettext_noop("{name} does not run in this process, and its answer has no log probabilities"),
    gettext_noop("the model {name} is not served here, and its answer has no log probabilities"),
)
"""What users of the page meet, with names for what varies; an earlier one that fits counts."""
NAME = re.compile(r"\{([a-z]+)\}")


@cache
def _patterns() -> Sequence[tuple[str, "re.Pattern[str]"]]:
    def pattern(message: str) -> str:
        parts = NAME.split(message)
        return "".join(f"(?P<{part}>.+?)" if n % 2 else re.escape(part) for n, part in enumerate(parts))

    return [(message, re.compile(pattern(message), re.DOTALL)) for message in PROBLEMS]


def translated(message: str, language: str) -> str | None:
    """Return a message about input in a language, with what varies in it; None if it is not known.

    >>> translated("'tea' went cold", "ja")
    """
    found = ((known, each.groupdict()) for known, pattern in _patterns() if (each := pattern.fullmatch(message)))
    known, varying = next(found, ("", {}))
    if not known:
        return None
    values = {name: translated(value, language) or value for name, value in varying.items()}
    return NAME.sub(lambda each: values[each[1]], translator("page", language)(known))
