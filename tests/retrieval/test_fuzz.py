"""Mutated documents and rules: each is read or refused with a reason, its chunks are its text, and no restriction is lost.

`make test` draws the same mutations each time, `make explore` others; what once failed is listed as an example.
"""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taiwa.kernel.errors import ConfigError
from taiwa.retrieval.chunks import split_into_chunks
from taiwa.retrieval.document_access import audience_of, read_rules
from taiwa.retrieval.readers import read_document
from taiwa.retrieval.types import PUBLIC, UnreadableError
from tests.retrieval.documents import docx, pdf

MARKDOWN = "---\ntitle: Leave\naccess: [group:hr]\n---\n# Leave\n\nTen days. 有給休暇は十日です。\n\n## Sick\n\n- a\n  1. b\n\n> q\n\n|a|b|\n|-|-|\n|1|2|\n\n```\n# x\n```\n"
HTML = "<!doctype html><html><head><title>T</title><script>x</script></head><body><nav>m</nav><h1>Leave</h1><p>Ten <b>days</b> &amp; more&#x3042;<table><tr><td>1<td>2</table><pre>\n a\n</pre><svg><title>s</title></svg></body></html>"
CSV = 'name,"phone, work",days\n"Ann ""A""",12,3\n東京,,\n'
TOKENS = (
    b"---\n", b"access:", b"Access: [x]\n", b"&a", b"*a", b"<<:", b"\n", b"\r\n", b"#", b"```", b"<svg>", b"</p>", b"<!--", b"<![CDATA[",
    b'"', b",", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\x1b$B", b"[", b"](", b"|", b"- ", b"> ", b"endobj", b"PK\x03\x04", b"&#xd800;",
)  # fmt: skip
EDIT = st.tuples(
    st.sampled_from(("cut", "repeat", "insert", "flip", "move")), st.integers(0, 1 << 16), st.integers(0, 1 << 16), st.sampled_from(TOKENS)
)  # fmt: skip
CHARACTERS = 100_000


def mutated(raw: bytes, edits: list[tuple[str, int, int, bytes]]) -> bytes:
    """Apply edits to bytes; places are taken modulo their length."""
    for kind, first, second, token in edits:
        start, end = sorted((first % (len(raw) + 1), second % (len(raw) + 1)))
        piece = raw[start : min(end, start + 2_000)]
        match kind:
            case "cut":
                raw = raw[:start] + raw[end:]
            case "repeat":
                raw = raw[:start] + piece * (1 + second % 5) + raw[start:]
            case "insert":
                raw = raw[:start] + token * (1 + second % 9) + raw[start:]
            case "flip":
                raw = (
                    raw[:start] + bytes(byte ^ (1 << second % 8) for byte in piece[:3]) + raw[start + len(piece[:3]) :]
                )
            case _:
                raw = raw[:start] + raw[start + len(piece) :] + piece
    return raw


def read(raw: bytes, kind: str) -> None:
    """Read a document as the child process does, and check its chunks."""
    try:
        reading = read_document(raw, kind, CHARACTERS)
        chunks = split_into_chunks(reading)
    except UnreadableError:
        return
    end = 0
    for chunk in chunks:
        assert chunk.start >= end
        end = chunk.start + len(chunk.text)
        assert reading.text[chunk.start : end] == chunk.text
    assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join(reading.text.split())
    assert list(reading.headings) == sorted(reading.headings, key=lambda heading: heading.start)


EDITS = st.lists(EDIT, min_size=1, max_size=8)


@given(EDITS, st.sampled_from(("markdown", "text", "table")))
def test_any_mutated_text_is_read_or_refused(edits: list[tuple[str, int, int, bytes]], kind: str) -> None:
    for text in (MARKDOWN, CSV):
        read(mutated(text.encode(), edits), kind)


@given(EDITS)
def test_any_mutated_page_is_read_or_refused(edits: list[tuple[str, int, int, bytes]]) -> None:
    read(mutated(HTML.encode(), edits), "html")


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("pdf", lambda: pdf("Ten days.", "Two.", outline=(("Leave", 0),), title="T")),
        ("docx", lambda: docx(("Heading1", "Leave"), "Ten days.")),
    ],
)
@given(edits=EDITS)
@example(edits=[("flip", 49, 50, b"")])
def test_any_mutated_binary_document_is_read_or_refused(
    kind: str, make: Callable[[], bytes], edits: list[tuple[str, int, int, bytes]]
) -> None:
    read(mutated(make(), edits), kind)


RULES = '# rules\nhr/**: [group:hr]\n"**/pay*": [group:hr, user:ann]\n./a b/?.md: x\n'
PATHS = ("hr/pay.md", "hr/x/y.md", "pay.md", "a b/c.md", "other.md")


@given(EDITS)
@example([("insert", 0, 0, b"&a")])
def test_mutated_rules_are_read_or_refused_and_each_that_is_read_holds(
    edits: list[tuple[str, int, int, bytes]],
) -> None:
    text = mutated(RULES.encode(), edits).decode(errors="replace")
    try:
        rules = read_rules(text, "rules")
    except ConfigError:
        return
    for path in PATHS:
        audience = audience_of(path, rules)
        assert set(audience) == {rule.names for rule in rules if rule.matches(path)}
        assert (audience == PUBLIC) == (not any(rule.matches(path) for rule in rules))
