"""Scenes at the counter: the order so far and the last question. A scene, a text and a reply make a sample."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from random import Random
from typing import TypeAlias

from taiwa.kernel.serialization import Json
from taiwa.models.builtin.order_app import CONFIRMED, Order, OrderLine, format_order
from taiwa.models.builtin.tokenizer import normalize_text
from taiwa.tools.calculator import calculator
from training.builtin.desk import english_lines, japanese_lines
from training.builtin.desk.changing_words import CHANGES
from training.builtin.desk.menu import MENU
from training.builtin.desk.replies import ANSWERS
from training.builtin.desk.wishes import wish
from training.builtin.desk.wording import fill
from training.builtin.samples import Sample, Span

__all__ = [
    "Changes",
    "Scene",
    "Step",
    "answer",
    "change_words",
    "closing",
    "following",
    "line_words",
    "make_sample",
    "next_number",
    "scene",
    "shown_sum",
    "step",
]

Changes: TypeAlias = Mapping[int, OrderLine | None]
RESULT_WEIGHT = 0.2
ASKED = {
    "en": {
        "more": ("Anything else?", "Anything else?", "Anything else?", "What else can I get you?", "Would you like anything else?", "Can I get you something else?", "Is there anything else?", "Would you like something to eat with that?",
            "What can I do for you?",
            "A muffin, a bagel or a sandwich?"),
        "place": ("Is that all?", "Is that everything?", "Shall I place the order?", "Shall I confirm the order?", "Would you like me to confirm it?", "Is that correct?", "Does that look right?"),
        "what": ("What would you like?", "What would you like?", "What can I get you?", "How can I help you?",
            "What can I do for you?",
            "A coffee, a tea or a hot chocolate?", "What will it be?"),
    },
    "ja": {
        "more": ("ほかにはいかがですか?", "ほかにはいかがですか?", "ほかにはいかがですか?", "ほかにご注文はありますか?", "ほかに何かございますか?", "ご一緒にお食事もいかがですか?",
            "マフィン、ベーグル、サンドイッチのどれになさいますか?"),
        "place": ("以上でよろしいですか?", "ご注文は以上ですか?", "これで確定してよろしいですか?", "ご注文を確定しますか?", "こちらでよろしいでしょうか?"),
        "what": ("何になさいますか?", "何になさいますか?", "ご注文はいかがなさいますか?",
            "いかがいたしましょうか?",
            "コーヒー、紅茶、ホットチョコレートのどれになさいますか?", "ご注文をどうぞ、何になさいますか?"),
    },
}  # fmt: skip
DEPTH = re.compile(r"\|\||[\[\]]")


@dataclass(frozen=True, slots=True)
class Scene:
    """The state before a turn. `asked` is the topic of the last question, `question` its words."""

    code: str
    order: Order
    asked: str = ""
    question: str = ""

    @property
    def lines(self) -> tuple[OrderLine, ...]:
        """Return the lines of the order."""
        return self.order.lines


@dataclass(frozen=True, slots=True)
class Step:
    """The effect of a turn: lines by number (None for a removed line), and the new status if it changes."""

    changes: Changes = field(default_factory=dict[int, OrderLine | None])
    status: str = ""


def step(place: Scene, lines: Iterable[OrderLine] = (), gone: Iterable[OrderLine] = (), *, done: bool = False) -> Step:
    """Build the step that sets some lines and removes others. A change opens an order that was not open, unless `done`."""
    changes: dict[int, OrderLine | None] = {line.number: None for line in gone}
    changes |= {line.number: line for line in lines}
    return Step(changes, CONFIRMED if done else "" if place.order.status == "open" else "open")


def scene(random: Random, code: str, least: int = 0, most: int = 6, asked: str = "") -> Scene:
    """Draw an order with some lines, a status, and a matching question."""
    count = max(least, min(most, random.choices(range(7), (26, 27, 21, 12, 7, 4, 3))[0]))
    number, lines = 0, list[OrderLine]()
    for _ in range(count):
        number += 1 if random.random() < 0.93 else 2
        lines.append(wish(random, 3 if count < 4 else 2).line(number))
    chance = random.random()
    status = "open" if chance < 0.93 or (not lines and chance < 0.98) else "cancelled" if not lines else CONFIRMED
    if not asked and status == "open" and random.random() < (0.92 if lines else 0.35):
        asked = "what" if not lines else "more" if random.random() < 0.92 else "place"
    words = random.choice(ASKED[code if random.random() < 0.96 else "en"][asked]) if asked else ""
    return Scene(code, Order(tuple(lines), status), asked, words)


def next_number(order: Order) -> int:
    """Return the number of the next line."""
    return max((line.number for line in order.lines), default=0) + 1


def following(order: Order, changes: Changes) -> tuple[OrderLine, ...]:
    """Return the lines after some changes."""
    after = {line.number: line for line in order.lines} | dict(changes)
    return tuple(line for _, line in sorted(after.items()) if line is not None)


def make_sample(
    random: Random, kind: str, place: Scene, said: str, words: Sequence[str | Span], step: Step | None = None
) -> Sample:
    """Build a sample from the user's text and the reply."""
    line = format_order(place.order, said, place.question if random.random() < 0.97 else "")
    spans = [word if isinstance(word, Span) else Span(word) for word in words]
    delta = _delta(step or Step())
    spans.append(Span(f"\n@@delta\n{json.dumps(delta, ensure_ascii=False, separators=(',', ':'))}"))
    return Sample("desk", f"{kind}.{place.code}", line or normalize_text(said), tuple(spans))


def _delta(step: Step) -> dict[str, Json]:
    delta: dict[str, Json] = {}
    if step.changes:
        delta["items"] = {
            str(number): None if line is None else _entry(line) for number, line in sorted(step.changes.items())
        }
    if step.status:
        delta["status"] = step.status
    return delta


def _entry(line: OrderLine) -> dict[str, Json]:
    size: dict[str, Json] = {"size": line.size} if line.size else {}
    return {"name": line.name, **size, "quantity": line.quantity, "options": list(line.options)}


def answer(code: str, name: str, **slots: str) -> str:
    """Draw one of the fixed sentences of the replies."""
    text = ANSWERS[code][name]
    for slot, words in slots.items():
        text = text.replace(f"{{{slot}}}", words)
    return text


def closing(place: Scene, lines: Sequence[OrderLine]) -> str:
    """Return the question at the end of a reply."""
    return answer(place.code, "more" if lines else "usual")


def shown_sum(code: str, name: str, lines: Sequence[OrderLine]) -> list[str | Span]:
    """Return a sentence with a total that the calculator works out."""
    head, _, tail = ANSWERS[code][name].partition("{x}")
    expression = "+".join(f"{line.quantity}*{MENU[line.name].price}" for line in lines)
    return [f"{head}<<calculator: {expression}>>", Span(f" {_worked(expression)}", RESULT_WEIGHT), tail]


@lru_cache(4_096)
def _worked(expression: str) -> str:
    return calculator(expression).text


def line_words(random: Random, code: str, name: str) -> str:
    """Return a text that is not an order."""
    return fill(random, random.choice(_alternatives((english_lines if code == "en" else japanese_lines).LINES[name])))


def change_words(random: Random, code: str, name: str) -> str:
    """Return the wording of a change, with slots."""
    return fill(random, random.choice(_alternatives(CHANGES[code][name])))


@cache
def _alternatives(templates: str) -> tuple[str, ...]:
    """Split templates at `||`; within brackets it means an empty alternative."""
    found, start, depth = [], 0, 0
    templates = templates.replace("\n", "")
    for mark in DEPTH.finditer(templates):
        if mark[0] == "||":
            if not depth:
                found.append(templates[start : mark.start()])
                start = mark.end()
        else:
            depth += 1 if mark[0] == "[" else -1
    return (*found, templates[start:])
