"""What came of a question as text: an answer with its sources, a question back with its options, or what else was done.

Plain text, one block after another, in the language of who asks. Words of documents and models stand in their own lines, with
nothing in them that could begin another.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from taiwa.flows.acts import Advise, Ask, Case, HandOver, Look, Option, key_of
from taiwa.flows.clarify import Turn
from taiwa.flows.material import CONTROL
from taiwa.flows.quoting import TAG
from taiwa.flows.sourced import Answer, Citation, Claim

__all__ = ["WORDS", "place_of", "said", "worded"]

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "greeting": "Hello. What would you like to know?",
        "thanks": "You are welcome.",
        "farewell": "Goodbye.",
        "command": "There is nothing to stop or change here. What would you like to know?",
        "chat": "I look things up in documents. What would you like to know?",
        "consultation": "The documents do not help here; a person can.",
        "absent": "The documents do not say.",
        "weak": "The documents may not hold this. What comes nearest:",
        "nothing": "Nothing that you may see in the documents is about this.",
        "part": "Not in the documents: {text}",
        "unsupported": "(no passage carries this)",
        "also": "There is more on this; say which one you mean:",
        "hint": "(reply with a number, in your own words, or “just answer”)",
        "handed": "This is one for a person. The case as it stands:",
        "query": "looked up: {text}",
        "missing": "missing: {text}",
        "owner": "concerns: {text}",
        "page": "page {text}",
    },
    "ja": {
        "greeting": "こんにちは。何をお調べしますか。",
        "thanks": "どういたしまして。",
        "farewell": "失礼いたします。",
        "command": "ここでは止めたり変えたりするものがありません。何をお調べしますか。",
        "chat": "文書を調べてお答えします。何をお調べしますか。",
        "consultation": "文書ではお役に立てません。担当の人に相談してください。",
        "absent": "文書には書かれていません。",
        "weak": "文書には書かれていないかもしれません。近いものは次のとおりです。",
        "nothing": "ご覧になれる文書には、これについて書かれたものがありません。",
        "part": "文書にないこと: {text}",
        "unsupported": "(根拠となる箇所がありません)",
        "also": "ほかにもあります。どれについてか教えてください。",
        "hint": "(番号、または自由な言葉で。「とにかく答えて」でもかまいません)",
        "handed": "担当の人に引き継ぐ内容です。",
        "query": "調べたこと: {text}",
        "missing": "足りないこと: {text}",
        "owner": "担当: {text}",
        "page": "{text}ページ",
    },
    "zh": {
        "greeting": "您好，想查什么？",
        "thanks": "不客气。",
        "farewell": "再见。",
        "command": "这里没有可以停止或更改的内容。想查什么？",
        "chat": "我根据文档回答问题。想查什么？",
        "consultation": "文档帮不上忙，请咨询负责的同事。",
        "absent": "文档中没有说明。",
        "weak": "文档中可能没有这方面的内容，最接近的是：",
        "nothing": "您可以查看的文档中没有这方面的内容。",
        "part": "文档中没有：{text}",
        "unsupported": "（没有段落支持）",
        "also": "还有其他相关内容，请说明是哪一项：",
        "hint": "（请回复编号，或用自己的话说明，也可以说“直接回答”）",
        "handed": "这个问题需要由人来处理，情况如下：",
        "query": "查询：{text}",
        "missing": "缺少：{text}",
        "owner": "负责：{text}",
        "page": "第{text}页",
    },
}
INDENT = "    "
HEADING = re.compile(r"\s*#{1,6} [^\n]*\n")
SNIPPET = 300
"""Characters of a passage that are shown around what was quoted."""
BEFORE = 80
GAP = re.compile(r"\s+|(?<=[。！？])")


def worded(language: str, name: str, text: str = "") -> str:
    """Say it in a language, in English where it is none of the three."""
    return WORDS.get(language, WORDS["en"])[name].replace("{text}", text)


def place_of(cited: Citation, language: str = "en") -> str:
    """Where a citation stands: path, headings, page.

    >>> place_of(Citation(1, "a#0", "a.pdf", "w", 0, 1, ("Leave", "Sick"), 3))
    'a.pdf › Leave › Sick, page 3'
    """
    page = f", {worded(language, 'page', str(cited.page))}" if cited.page else ""
    return _line(" › ".join((cited.source, *cited.heading))) + page


def said(turn: Turn[Answer], language: str, also: Sequence[Option] = (), *, weak: bool = False) -> str:
    """Write what came of a turn; `also` could be meant as well, and `weak` says that there was little on the question."""
    act = turn.act
    if isinstance(act, Ask):
        hint = (worded(language, "hint"),) if act.options else ()
        return "\n".join((_line(act.question), *_options(act.options), *hint))
    if isinstance(act, HandOver):
        case = turn.clarified.case
        return "\n".join((worded(language, "handed"), *(_case(case, language) if case else ())))
    if isinstance(act, Advise):
        return worded(language, act.kind)
    blocks = [*_blocks(act, turn.answer, language, weak)]
    if also:
        blocks.append("\n".join((worded(language, "also"), *_options(also))))
    return "\n\n".join(blocks)


def _blocks(act: Look, answer: Answer | None, language: str, weak: bool) -> Iterator[str]:
    if answer is None or not answer.passages:
        yield worded(language, "nothing")
        return
    if act.assumption:
        yield _line(f"({act.assumption})")
    if not answer.documented:
        yield worded(language, "absent")
    elif weak and answer.by == "passages":
        yield worded(language, "weak")
    if answer.claims:
        yield "\n".join(_claim(claim, language) for claim in answer.claims)
    if answer.missing:
        yield worded(language, "part", _line(answer.missing))
    if answer.sources:
        yield "\n".join(_sources(answer, language))


def _claim(claim: Claim, language: str) -> str:
    numbers = "".join(f"[{number}]" for number in dict.fromkeys(each.number for each in claim.citations))
    return f"{_line(claim.text)} {numbers or worded(language, 'unsupported')}"


def _sources(answer: Answer, language: str) -> Iterator[str]:
    """Path, headings, page and a snippet of each passage that is cited; what is quoted stands in brackets."""
    held = {cited.number: cited for cited in answer.sources}
    quoted = {number: [each for each in answer.citations if each.number == number] for number in held}
    texts = {key_of(passage): passage for passage in answer.passages}
    for number, cited in held.items():
        yield f"[{number}] {place_of(cited, language)}"
        passage = texts[cited.passage]
        marks = [(each.start - passage.start, each.end - passage.start) for each in quoted[number]]
        yield INDENT + _snippet(passage.text, marks)


def _snippet(text: str, marks: Sequence[tuple[int, int]]) -> str:
    """A part of a passage around its first mark, on one line, with what is quoted in brackets; its heading is said already."""
    heading = HEADING.match(text)
    first = min(start for start, _ in marks)
    top = min(heading.end() if heading else 0, first)
    begin = top if len(text) - top <= SNIPPET else max(first - BEFORE, top)
    if top < begin < first:
        gap = GAP.search(text, begin, first)
        begin = gap.end() if gap else begin
    end = min(begin + SNIPPET, len(text))
    shown, at = "", begin
    for start, stop in _merged(marks):
        if start < end:
            shown += f"{text[at:start]}⟦{text[start : min(stop, end)]}⟧"
            at = min(stop, end)
    return _line(("…" if begin > top else "") + shown + text[at:end] + ("…" if end < len(text) else ""))


def _merged(marks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Marks in order, those that touch as one."""
    held: tuple[int, int] | None = None
    for start, end in sorted(marks):
        if held is not None and start <= held[1]:
            held = (held[0], max(held[1], end))
            continue
        if held is not None:
            yield held
        held = (start, end)
    if held is not None:
        yield held


def _options(options: Sequence[Option]) -> Iterator[str]:
    for number, option in enumerate(options, 1):
        yield _line(f"{INDENT}{number}. {option.label} ({option.count})", INDENT)


def _case(case: Case, language: str) -> Iterator[str]:
    yield INDENT + worded(language, "query", _line(case.query))
    if case.missing:
        yield INDENT + worded(language, "missing", _line(", ".join(case.missing)))
    for passage in case.passages:
        yield INDENT + _line("· " + " › ".join((passage.source, *passage.heading)))
    if case.owner:
        yield INDENT + worded(language, "owner", _line(case.owner))


def _line(text: str, indent: str = "") -> str:
    """One line, without what is not seen, and with nothing that a reader of Markdown or HTML would load or run."""
    return indent + TAG.sub("‹", " ".join(CONTROL.sub("", text).split()).replace("![", "! [").replace("](", "] ("))
