"""Messages that keep their template and its values, so that each interface can word them in the language of its user."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Self

FIELD = re.compile(r"\{(\w+)(!r)?\}")


class Wording(str):
    """A message in English, with its template and the values in it, which can be such messages themselves.

    It is a string wherever it goes; what composes a text with it by other means than a `Wording` makes a plain string of it.

    >>> Wording("session {name!r} not found", name="tea")
    "session 'tea' not found"
    """

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, str]

    def __new__(cls, template: str, /, **values: object) -> Self:
        written = {name: value if isinstance(value, str) else str(value) for name, value in values.items()}
        made = super().__new__(cls, _fill(template, written))
        made.template, made.values = template, written
        return made

    @classmethod
    def joined(cls, separator: str, messages: Iterable[str]) -> Self:
        """Return messages as one."""
        values = {f"n{n}": message for n, message in enumerate(messages)}
        return cls(separator.join(f"{{{name}}}" for name in values), **values)

    def translated(self, translate: Callable[[str], str]) -> str:
        """Return the message by the translations of its templates."""
        values = {name: v.translated(translate) if isinstance(v, Wording) else v for name, v in self.values.items()}
        return _fill(translate(self.template), values)


def _fill(template: str, values: Mapping[str, str]) -> str:
    # Not `str.format`: a template that was stored could reach into the values.
    def value(found: re.Match[str]) -> str:
        return found[0] if found[1] not in values else repr(values[found[1]]) if found[2] else values[found[1]]

    return FIELD.sub(value, template) if values else template
