"""Parsing of the prompts of the order app."""

import re

from taiwa.models.builtin.order_app import MENU, Order, OrderLine

__all__ = ["read_prompt"]

PROMPT = re.compile(r"(?P<lines>.*?) \| (?P<status>[a-z]+)(?: \| (?P<asked>.*?))? > (?P<said>.*)", re.DOTALL)
LINE = re.compile(r"(\d+) (.+?) x(\d+) @[\d.]+(?: (.+))?")


def read_prompt(prompt: str) -> tuple[Order, str, str] | None:
    """Parse a prompt into the order, the last question and the user's text; None if the prompt was truncated."""
    found = PROMPT.fullmatch(prompt)
    if found is None:
        return None
    lines = () if found["lines"] == "-" else tuple(map(_line, found["lines"].split("; ")))
    return Order(lines, found["status"]), found["asked"] or "", found["said"]


def _line(text: str) -> OrderLine:
    found = LINE.fullmatch(text)
    assert found is not None, f"{text!r} is no line of an order"
    number, name, quantity, options = found.groups()
    dish, _, size = (name, "", "") if name in MENU else name.rpartition(" ")
    return OrderLine(int(number), dish, size, int(quantity), tuple(options.split(", ")) if options else ())
