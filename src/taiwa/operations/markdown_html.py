"""Markdown of users and models as HTML that loads nothing and runs nothing.

Raw HTML stays text, an image becomes its description and host, a link shows its host, code is highlighted by classes, and
mathematics becomes MathML.
"""

import re
from collections.abc import Sequence
from functools import cache
from html import escape, unescape
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from xml.etree import ElementTree

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONG_QUERY = 80
"""Characters of a link's query above which the page asks before opening it: it may leak the conversation."""
LONGEST = 1_000_000
"""Maximum characters of a rendered text; a longer one stays plain, because its blocks would take seconds."""
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Control characters, and those that reorder or hide the text around them."""
MATH = frozenset(
    """math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mmultiscripts mprescripts
    mtable mtr mtd mstyle mpadded mphantom menclose merror""".split()
)
MATH_ATTRIBUTES = frozenset(
    """display mathvariant stretchy fence form separator accent accentunder columnalign rowspacing columnspacing linethickness
    notation width height depth lspace rspace minsize maxsize displaystyle scriptlevel""".split()
)


def to_html(text: str) -> str:
    """Render Markdown (CommonMark with tables, strike-through and `$mathematics$`) as HTML."""
    shown = visible(text)
    return f"<pre>{escape(shown)}</pre>" if len(shown) > LONGEST else _renderer().render(shown)


def visible(text: str) -> str:
    """Write invisible characters as code points, so that a text cannot hide or reorder another."""
    return UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n").replace("\r", "\n"))


class MarkdownStream:
    """Streaming Markdown: closed blocks are rendered once, and only the last block is rendered again.

    >>> stream = MarkdownStream()
    >>> stream.feed("# Tea\\n\\nGreen"), stream.open_html
    ('<h1>Tea</h1>\\n', '<p>Green</p>\\n')
    """

    def __init__(self) -> None:
        self._open = ""

    def feed(self, text: str) -> str:
        """Add text; return the HTML of the blocks that it closes."""
        self._open += text
        lines = self._open.split("\n")
        starts = [token.map[0] for token in _renderer().parse(visible(self._open)) if token.level == 0 and token.map]
        last = max(starts, default=0)
        if not last:
            return ""
        closed, self._open = "\n".join(lines[:last]) + "\n", "\n".join(lines[last:])
        return to_html(closed)

    @property
    def open_html(self) -> str:
        """The HTML of the unfinished block."""
        return to_html(self._open) if self._open else ""


@cache
def _renderer() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    rendering = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    rendering.use(dollarmath_plugin, renderer=_math, double_inline=True, allow_space=False, allow_digits=False)
    rules = {
        "image": _image,
        "link_open": _link,
        "link_close": _link_end,
        "fence": _code,
        "th_open": _cell,
        "td_open": _cell,
    }
    for name, rule in rules.items():
        rendering.add_render_rule(name, cast("Any", rule))
    return rendering


def _image(_: object, tokens: "Sequence[Token]", index: int, *__: object) -> str:
    token = tokens[index]
    host = urlsplit(str(token.attrGet("src") or "")).hostname or "?"
    return f'<span class="image" role="img">{escape(token.content or "image")} <small>({escape(host)})</small></span>'


def _link(renderer: Any, tokens: "Sequence[Token]", index: int, options: Any, env: Any) -> str:  # noqa: ANN401
    token = tokens[index]
    parts = urlsplit(str(token.attrGet("href") or ""))
    if parts.scheme not in {"http", "https", "mailto"}:
        token.attrs = {}
    else:
        token.attrs |= {"rel": "noreferrer noopener", "target": "_blank"}
        if len(parts.query) + len(parts.fragment) > LONG_QUERY:
            token.attrSet("data-confirm", parts.hostname or parts.path)
    return str(renderer.renderToken(tokens, index, options, env))


def _link_end(_: object, tokens: "Sequence[Token]", index: int, *__: object) -> str:
    start, depth = index - 1, 1
    while depth:
        depth -= tokens[start].nesting if tokens[start].type in {"link_open", "link_close"} else 0
        start -= 1
    host = urlsplit(str(tokens[start + 1].attrGet("href") or "")).hostname
    return f"</a> <small>({escape(host)})</small>" if host else "</a>"


def _cell(renderer: Any, tokens: "Sequence[Token]", index: int, options: Any, env: Any) -> str:  # noqa: ANN401
    aligned = str(tokens[index].attrs.pop("style", "")).removeprefix("text-align:")
    if aligned:
        tokens[index].attrSet("class", aligned)  # a page without inline styles
    return str(renderer.renderToken(tokens, index, options, env))


def _code(_: object, tokens: "Sequence[Token]", index: int, *__: object) -> str:
    token = tokens[index]
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    return f'<pre class="code" data-language="{escape(language)}"><code>{_highlighted(token.content, language)}</code></pre>\n'


def _highlighted(source: str, language: str) -> str:
    from importlib import import_module

    highlighting, lexers, formatters = (import_module(f"pygments{part}") for part in ("", ".lexers", ".formatters"))

    if not language or len(source) > LONGEST // 10:
        return escape(source)
    try:
        lexer = lexers.get_lexer_by_name(language)
    except ValueError:  # ClassNotFound
        return escape(source)
    return str(highlighting.highlight(source, lexer, formatters.HtmlFormatter(nowrap=True)))


def _math(source: str, options: dict[str, Any]) -> str:
    from latex2mathml import exceptions
    from latex2mathml.converter import convert_to_element

    found = (each for each in vars(exceptions).values() if isinstance(each, type) and issubclass(each, Exception))
    errors: tuple[type[Exception], ...] = (
        *found,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        StopIteration,
    )
    try:
        root = convert_to_element(source, display="block" if options.get("display_mode") else "inline")
    except errors:  # for invalid LaTeX
        return f"<code>{escape(source)}</code>"
    return ElementTree.tostring(_safe_math(root), encoding="unicode")


def _safe_math(element: ElementTree.Element) -> ElementTree.Element:
    """Keep elements and attributes of MathML that neither link nor style."""
    safe = ElementTree.Element(element.tag if element.tag in MATH else "mtext")
    safe.attrib = {name: each for name, each in element.attrib.items() if name in MATH_ATTRIBUTES}
    safe.text, safe.tail = unescape(element.text or ""), element.tail
    safe.extend(_safe_math(child) for child in element)
    return safe
