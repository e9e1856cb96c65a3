"""Answers on a terminal: Markdown that is rendered while it is written, and a spinner before the first word.

A block of Markdown that has ended is printed once and stays; only the block that is being written is drawn again. Imported
only on a terminal, because rich's renderers are slow to import.
"""

import re
import time
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Self

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Heading, Markdown, MarkdownElement, Paragraph
from rich.segment import Segment, Segments
from rich.spinner import Spinner
from rich.text import Text

from taiwa.cli.line_breaks import Wrapped

if TYPE_CHECKING:
    from types import TracebackType

    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

LONG_BLOCK = 4_000
"""Characters of a block above which its end is searched for only after it has grown by a quarter."""
SPIN_AFTER = 0.3
"""Seconds before the spinner appears; an immediate answer shows none."""
REFRESHES = 12
"""Redraws per second of the unfinished block."""


MATH = re.compile(r"\\\(.+?\\\)|\\\[.+?\\\]|\$\$.+?\$\$|\$(?!\s)[^$\n]+(?<!\s)\$(?!\d)", re.DOTALL)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    parser.inline.ruler.before("escape", "math", _keep_math)
    return parser


def _keep_math(state: "StateInline", silent: bool) -> bool:
    """Keep LaTeX as it is: Markdown would remove its backslashes and take its stars and underscores for emphasis."""
    found = MATH.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("text", "", 0).content = found[0]
    state.pos = found.end()
    return True


class _Heading(Heading):
    """A heading at the left margin, like the text below it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Wrapped(self.text)


class _Paragraph(Paragraph):
    """A paragraph without spaces at the ends of its lines."""

    @classmethod
    def create(cls, markdown: Markdown, token: "Token") -> "_Paragraph":  # noqa: ARG003  (rich's signature)
        return cls(justify="default")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Wrapped(self.text)


class Block(Markdown):
    """Markdown of a model: HTML is text, links and images show their addresses, and line breaks are kept."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements, "heading_open": _Heading, "paragraph_open": _Paragraph,
    }  # fmt: skip

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.markup = text
        self.parsed = _parser().parse(text)
        for token in self.parsed:
            for child in token.children or ():
                child.type = "hardbreak" if child.type == "softbreak" else child.type
                if child.type == "image":  # rich would print it before its paragraph
                    child.type, child.tag, child.children = "text", "", None
                    child.content = f"🌆 {child.content} ({child.attrs['src']})"


class Blocks:
    """A splitter of Markdown into its blocks while it is written.

    >>> blocks = Blocks()
    >>> blocks.feed("# Tea\\nGreen"), blocks.feed(" tea.\\n\\n- one\\n"), blocks.rest
    ([], ['# Tea\\n', 'Green tea.\\n\\n'], '- one\\n')
    """

    def __init__(self) -> None:
        self.rest = ""
        """The block that is being written."""
        self._look_at = 0

    def feed(self, text: str) -> list[str]:
        """Return the blocks that have ended."""
        self.rest += text
        if "\n" not in text or len(self.rest) < self._look_at:
            return []
        # An unfinished line does not show yet what it begins.
        lines = self.rest[: self.rest.rfind("\n") + 1].split("\n")
        tokens = _parser().parse("\n".join(lines))
        starts = [token.map[0] for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]
        if len(starts) < 2:
            self._look_at = len(self.rest) * 5 // 4 if len(self.rest) > LONG_BLOCK else 0
            return []
        self._look_at = 0
        ended = ["".join(f"{line}\n" for line in lines[a:b]) for a, b in pairwise(starts)]
        self.rest = self.rest[sum(map(len, ended)) + sum(len(line) + 1 for line in lines[: starts[0]]) :]
        return ended


class AnswerDisplay:
    """Shows one answer on a terminal: a spinner, the incomplete block, and the final blocks above them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._blocks = Blocks()
        self._printed = False
        self._note = ""
        self._began = time.monotonic()
        self._spinner = Spinner("dots", style="dim")
        self._live = Live(
            console=console, transient=True, refresh_per_second=REFRESHES, get_renderable=lambda: self,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        rest, self._blocks = self._blocks.rest, Blocks()
        self._live.stop()
        self._print(rest)

    def feed(self, text: str) -> None:
        """Show the next part of the answer, which contains no control codes."""
        self._note = ""
        for block in self._blocks.feed(text):
            self._print(block)

    def wait(self, text: str) -> None:
        """Show what the answer waits for, until it continues."""
        self._note = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the block that is being written, or the spinner."""
        rest = self._blocks.rest
        waited = time.monotonic() - self._began
        if rest.strip():
            inner: RenderableType = Wrapped(Text(rest[-LONG_BLOCK:])) if len(rest) > LONG_BLOCK else Block(rest)
            if self._printed:
                yield Segment.line()
            for line in _lines(inner, console, options)[-max(console.size.height - 2, 1) :]:
                yield Segments([*line, Segment.line()])
        elif (not self._printed and waited > SPIN_AFTER) or self._note:
            self._spinner.update(text=Text(f"{waited:.0f} s" + (f"  {self._note}" if self._note else ""), style="dim"))
            yield self._spinner

    def _print(self, block: str) -> None:
        if block.strip():
            printed, self._printed = self._printed, True
            # rich decides what to erase before it writes: its thread must draw nothing in between.
            with self._live._lock:  # noqa: SLF001
                if printed:
                    self._console.print()
                print_block(self._console, block)


def print_block(console: Console, text: str) -> None:
    """Print Markdown without blank lines around it."""
    ended = [Segments([*line, Segment.line()]) for line in _lines(Block(text), console, console.options)]
    console.print(*ended, sep="", end="")


def _lines(block: RenderableType, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
    """Render a block, without the blank lines that rich puts around some."""
    lines = console.render_lines(block, options, pad=False)
    shown = [number for number, line in enumerate(lines) if any(part.text.strip() or _is_filled(part) for part in line)]
    return lines[shown[0] : shown[-1] + 1] if shown else []


def _is_filled(part: Segment) -> bool:
    return part.style is not None and part.style.bgcolor is not None and bool(part.text)
