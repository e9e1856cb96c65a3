"""Which part of a text is the answer: not the thinking before it, not the fence around it."""

import re

__all__ = ["CLOSE", "TAGS", "after_thinking", "inside_fence"]

TAGS = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis"
OPEN = re.compile(rf"\s*(?:<({TAGS})>|\[(THINK)\]|<\|channel\|>\s*(analysis|commentary)\b)", re.IGNORECASE)
CLOSE = re.compile(rf"</(?:{TAGS})>|\[/THINK\]", re.IGNORECASE)
FINAL = re.compile(r"<\|channel\|>\s*final[^<]*<\|message\|>", re.IGNORECASE)
END_TOKEN = re.compile(r"\s*<\|(?:end|return|im_end|eot_id|endoftext)\|>\s*\Z")
FENCE = re.compile(r"\s*(`{3,}|~{3,})[^\S\n]*[\w+.-]*[^\S\n]*\r?\n?")


def after_thinking(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out a thinking block before the answer; a block that never ends leaves nothing.

    A closing tag without an opening one ends thinking too, for some chat templates write the opening one themselves; but not
    inside of JSON that has begun, where it is text.
    """
    while True:
        final = FINAL.search(text, start, end)
        if final is not None and OPEN.match(text, start, end):
            return final.end(), _before_token(text, final.end(), end)
        opened = OPEN.match(text, start, end)
        if opened is None:
            break
        close = CLOSE.search(text, opened.end(), end)
        if close is None:
            return end, end
        start = close.end()
    head = text[start : min(end, start + 64)].lstrip()
    if head[:1] not in ("{", "[", '"', "`", ""):
        close = CLOSE.search(text, start, end)
        if close is not None:
            start = close.end()
    return start, _before_token(text, start, end)


def _before_token(text: str, start: int, end: int) -> int:
    found = END_TOKEN.search(text, max(start, end - 64), end)
    return found.start() if found else end


def inside_fence(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Give the inside of a fence that holds the whole text, or None where there is no such fence."""
    opened = FENCE.match(text, start, end)
    if opened is None:
        return None
    stop = end
    while stop > opened.end() and text[stop - 1].isspace():
        stop -= 1
    if not text.startswith(opened[1], stop - len(opened[1])) or stop - len(opened[1]) < opened.end():
        return None
    return opened.end(), stop - len(opened[1])
