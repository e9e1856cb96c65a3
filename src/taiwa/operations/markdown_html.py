"""Markdown of users and models as HTML that loads nothing and runs nothing.

Raw HTML stays text, an image becomes its description and host, a link shows its host, line breaks are kept, code is highlighted
by classes, and mathematics (`$…$`, `\\(…\\)`, `\\[…\\]`) becomes MathML, for which the extra serve is needed.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from html import escape, unescape
from importlib.util import find_spec
from time import process_time
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from xml.etree import ElementTree

from taiwa.isolation import Handler, ProcessLimits, ProcessPool
from taiwa.kernel.errors import ToolError
from taiwa.kernel.serialization import Json, items_at

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

LONG_QUERY = 80
"""Characters of a link's query above which the page asks before opening it: it may leak the conversation."""
LONG_CELL = 24
"""Bytes of a cell above which it stays wide enough to be read in a table that scrolls."""
LONGEST = 1_000_000
"""Maximum characters of a rendered text; a longer one stays plain, because its blocks would take seconds."""
LONGEST_FORMULA = 5_000
GROWTH = 8
SHORT = 256
"""Characters of an unfinished block that is rendered again with each piece of text."""
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Control characters, and those that reorder or hide the text around them."""
ADDRESS = re.compile(r"https?://[^\s<>\"'`）】」』、。，]*[^\s<>\"'`）】」』、。，.,;:!?)\]}*_]")
"""A bare address, without the punctuation after it."""
TAG = re.compile("<[^>]*>")
"""A tag of rendered HTML, whose attributes are escaped."""
MATH = frozenset(
    """math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mmultiscripts mprescripts
    mtable mtr mtd mstyle mpadded mphantom menclose merror""".split()
)
MATH_ATTRIBUTES = frozenset(
    """display mathvariant stretchy fence form separator accent accentunder columnalign rowspacing columnspacing linethickness
    notation width height depth lspace rspace minsize maxsize displaystyle scriptlevel""".split()
)


LIMITS = ProcessLimits(seconds=3.0, memory_mb=400, characters=8_000_000)
MOST_SLOW = 10_000
_processes = ProcessPool(f"{__name__}:entry", "the renderer", LIMITS)
MOST_RENDERED = 512
LONGEST_TOGETHER = 10_000
_rendered: dict[bytes, str] = {}
"""The last texts that were rendered, by digest."""
_slow: set[bytes] = set()
"""Digests of texts that stay plain, so that a page with one does not wait for it each time."""


def to_html(text: str) -> str:
    """Render Markdown (CommonMark with tables, strike-through and `$mathematics$`) as HTML, in a bounded process.

    A text that takes too long is shown as it is: each of the parsers has inputs of a few hundred characters that do.
    """
    key = _key(text)
    if key not in _rendered and key not in _slow and len(text) <= LONGEST:
        try:
            _keep(key, str(_processes.ask({"text": text})["html"]))
        except ToolError:
            if len(_slow) >= MOST_SLOW:
                _slow.clear()
            _slow.add(key)
    found = _rendered.get(key)
    return plain_html(text) if found is None else found


def shown_text(text: str) -> str:
    """Return what a reader of rendered Markdown sees, on one line."""
    return " ".join(unescape(TAG.sub("", to_html(text))).split())


def render_together(texts: Iterable[str]) -> None:
    """Render many texts with one question to the process, for `to_html`; those that make it too slow are then rendered alone."""
    new = [
        text
        for text in dict.fromkeys(texts)
        if len(text) <= LONGEST_TOGETHER and _key(text) not in _rendered.keys() | _slow
    ]
    if len(new) > 1:
        with suppress(ToolError):
            for text, html in zip(new, items_at(_processes.ask({"texts": list[Json](new)}), "html"), strict=True):
                _keep(_key(text), str(html))


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _keep(key: bytes, html: str) -> None:
    _rendered[key] = html
    while len(_rendered) > MOST_RENDERED:
        _rendered.pop(next(iter(_rendered)), None)


def plain_html(text: str) -> str:
    """Return the HTML of a text that is not rendered."""
    return f"<pre>{escape(visible(text))}</pre>"


def entry(start: dict[str, Json]) -> Handler:
    """Return the function that renders in the child process: a text, or the blocks of one that is still being written."""
    del start
    _renderer().render("```python\nx\n```\n$x$")  # imports the libraries, which takes longer than most texts

    def answer(question: dict[str, Json], characters: int) -> dict[str, Json]:
        del characters
        if "texts" in question:
            return {"html": [_renderer().render(visible(str(each))) for each in items_at(question, "texts")]}
        text = str(question["text"])
        if "streams" not in question:
            return {"html": _renderer().render(visible(text))}
        started = process_time()
        lines = text.split("\n")
        starts = [token.map[0] for token in _renderer().parse(visible(text)) if token.level == 0 and token.map]
        last = max(starts, default=0)
        closed, rest = "".join(f"{line}\n" for line in lines[:last]), "\n".join(lines[last:])
        html = [_renderer().render(visible(part)) for part in (closed, rest)]
        return {"closed": html[0], "open": html[1], "rest": rest, "seconds": process_time() - started}

    return answer


def visible(text: str) -> str:
    """Write invisible characters as code points, so that a text cannot hide or reorder another."""
    return UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n").replace("\r", "\n"))


@dataclass(frozen=True, slots=True)
class StreamedHtml:
    """The HTML of the blocks that were closed since the last time, and of the unfinished block."""

    closed: str
    open: str


class MarkdownStream:
    """Streaming Markdown: closed blocks are rendered once, and the last one again whenever it has grown by an eighth, so that
    all work is in proportion to the text. If that takes too long, alone or together, the rest stays plain.

    >>> stream = MarkdownStream()
    >>> stream.add("# Tea\\n\\nGreen"), stream.render()
    (True, StreamedHtml(closed='<h1>Tea</h1>\\n', open='<p>Green</p>\\n'))
    """

    def __init__(self) -> None:
        self._open = ""
        self._rendered = 0
        self._left = LIMITS.seconds

    def add(self, text: str) -> bool:
        """Add text; return whether it is worth to render the unfinished block again."""
        self._open += text
        grown = len(self._open) - self._rendered
        return grown * GROWTH >= len(self._open) or len(self._open) <= SHORT

    def render(self) -> StreamedHtml:
        """Render what was not closed yet; this may take a while."""
        if self._left > 0 and len(self._open) <= LONGEST:
            try:
                html = _processes.ask({"text": self._open, "streams": True})
                self._left -= cast("float", html["seconds"])
                self._open = str(html["rest"])
                self._rendered = len(self._open)
                return StreamedHtml(str(html["closed"]), str(html["open"]))
            except ToolError:
                self._left = 0
        self._rendered = len(self._open)
        return StreamedHtml("", plain_html(self._open))


@cache
def _renderer() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    rendering = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    if find_spec("mdit_py_plugins") and find_spec("latex2mathml"):  # an export works without the extra of the page
        from mdit_py_plugins.dollarmath import dollarmath_plugin
        from mdit_py_plugins.tasklists import tasklists_plugin
        from mdit_py_plugins.texmath import texmath_plugin

        rendering.use(tasklists_plugin).use(texmath_plugin, delimiters="brackets")
        rendering.use(dollarmath_plugin, renderer=_math, double_inline=True, allow_space=False, allow_digits=False)
    rendering.core.ruler.after("inline", "bare-links", _link_addresses)
    rules = {
        "image": _image,
        "html_inline": _task,
        "math_block_eqno": _numbered_math,
        "link_open": _link,
        "link_close": _link_end,
        "fence": _code,
        "th_open": _cell,
        "td_open": _cell,
    }
    for name, rule in rules.items():
        rendering.add_render_rule(name, cast("Any", rule))
    return rendering


def _link_addresses(state: "StateCore") -> None:
    """Make links of the addresses in a text."""
    from markdown_it.token import Token

    for block in state.tokens:
        depth, parts = 0, list[Token]()
        for each in block.children or ():
            depth += each.nesting if each.type in {"link_open", "link_close"} else 0
            if each.type != "text" or depth or "://" not in each.content:
                parts.append(each)
                continue
            end = 0
            for found in ADDRESS.finditer(each.content):
                href = state.md.normalizeLink(found[0])
                texts = each.content[end : found.start()], found[0]
                before, inside = (Token("text", "", 0, content=text) for text in texts)
                parts += [
                    before,
                    Token("link_open", "a", 1, attrs={"href": href}),
                    inside,
                    Token("link_close", "a", -1),
                ]
                end = found.end()
            parts.append(Token("text", "", 0, content=each.content[end:]))
        if block.children:
            block.children = parts


def _task(_: object, tokens: "Sequence[Token]", index: int, *__: object) -> str:
    """Draw the box of a task; raw HTML never gets here, since it stays text."""
    return "☑ " if "checked" in tokens[index].content else "☐ "


def _numbered_math(_: object, tokens: "Sequence[Token]", index: int, *__: object) -> str:
    return f"{_math(tokens[index].content, {'display_mode': True})} ({escape(tokens[index].info)})"


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
    shown = "".join(token.content for token in tokens[start + 2 : index])
    if ADDRESS.fullmatch(shown) and urlsplit(shown).hostname == host:
        return "</a>"  # a bare address has said so
    return f"</a> <small>({escape(host)})</small>" if host else "</a>"


def _cell(renderer: Any, tokens: "Sequence[Token]", index: int, options: Any, env: Any) -> str:  # noqa: ANN401
    aligned = str(tokens[index].attrs.pop("style", "")).removeprefix("text-align:")  # a page without inline styles
    is_long = len(tokens[index + 1].content.encode("utf-8", "replace")) > LONG_CELL
    if found := " ".join(filter(None, (aligned, "long" * is_long))):
        tokens[index].attrSet("class", found)
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
    if len(source) > LONGEST_FORMULA:
        return f"<code>{escape(source)}</code>"
    try:
        root = convert_to_element(source, display="block" if options.get("display_mode") else "inline")
        return ElementTree.tostring(_safe_math(root), encoding="unicode")
    except errors:  # for LaTeX that is invalid, or nested too deep
        return f"<code>{escape(source)}</code>"


def _safe_math(element: ElementTree.Element) -> ElementTree.Element:
    """Keep elements and attributes of MathML that neither link nor style."""
    safe = ElementTree.Element(element.tag if element.tag in MATH else "mtext")
    safe.attrib = {name: each for name, each in element.attrib.items() if name in MATH_ATTRIBUTES}
    safe.text, safe.tail = unescape(element.text or ""), element.tail
    safe.extend(_safe_math(child) for child in element)
    return safe
