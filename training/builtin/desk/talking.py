"""Turns that order nothing: totals, prices, yes and no, greetings, nonsense, and off-topic text."""

import re
from dataclasses import replace
from random import Random

from taiwa.models.builtin.order_app import CONFIRMED
from training.builtin.desk.english_talk import TAIL, WANT
from training.builtin.desk.menu import MENU
from training.builtin.desk.ordering import tongue
from training.builtin.desk.replies import kinds, listed, missing
from training.builtin.desk.scene import Scene, Step, answer, closing, line_words, make_sample, scene, shown_sum, step
from training.builtin.desk.unknown import unknown
from training.builtin.desk.wishes import NAMES, SHARES
from training.builtin.desk.wording import an, fill
from training.builtin.samples import Sample, Span

__all__ = ["call_off", "confirm", "elsewhere", "menu", "price", "social", "summary", "total", "unclear"]

POPULAR = re.compile(
    r"recommend|popular|special|best|surprise|nice|good|should|most people|おすすめ|人気|美味|どれが|何にしよう"
)
KINDS = (
    ("muffin", re.compile(r"muffin|マフィン")),
    ("tea", re.compile(r"\bteas?\b|お茶")),
    ("coffee", re.compile(r"coffee|コーヒー")),
    ("sweet", re.compile(r"cake|ケーキ")),
)
YES_LIKE, PLAIN_DONE, NO_LIKE = 0, 1, 2


def _said(random: Random, code: str, name: str) -> str:
    text = (
        line_words(random, code, name)
        .replace("{w}", "" if random.random() < 0.3 else fill(random, WANT))
        .replace("{t}", fill(random, TAIL))
    )
    return str(tongue(code)[1].written(random, " ".join(text.split())))


def _with_closing(place: Scene, words: str) -> str:
    return words + (" " if place.code == "en" else "") + closing(place, place.lines)


def total(random: Random, code: str) -> Sample:
    """Ask for the total."""
    place = scene(random, code, least=1 if random.random() < 0.92 else 0)
    text = _said(random, code, "total")
    if not place.lines:
        return make_sample(random, "total", place, text, [answer(code, "empty")])
    tail = (" " if code == "en" else "") + answer(code, "more") if place.order.status != CONFIRMED else ""
    return make_sample(
        random, "total", place, text, [*shown_sum(code, "sum", place.lines), *([Span(tail)] if tail else [])]
    )


def summary(random: Random, code: str) -> Sample:
    """Ask what has been ordered."""
    place = scene(random, code, least=1 if random.random() < 0.9 else 0)
    text = _said(random, code, "summary")
    if not place.lines:
        return make_sample(random, "summary", place, text, [answer(code, "empty")])
    return make_sample(
        random, "summary", place, text, [_with_closing(place, answer(code, "so_far", x=listed(code, place.lines)))]
    )


def price(random: Random, code: str) -> Sample:
    """Ask for a price, or whether something is available."""
    place = scene(random, code, most=3)
    way = random.choice(("price", "price", "have"))
    if random.random() < 0.22:
        said, shown = unknown(random, code)
        called = shown if code == "ja" or way == "have" else said
        return make_sample(
            random, "price", place, _about(random, code, way, called), [_with_closing(place, missing(code, [shown]))]
        )
    name = random.choice(NAMES) if random.random() < 0.6 else random.choices(NAMES, SHARES)[0]
    several = random.random() < 0.4
    called = tongue(code)[0].noun(random, name, several=several)
    if code == "en" and not several:
        called = f"{random.choice((an(called), an(called), 'one', 'your', 'the'))} {called}"
    shown = name.capitalize() if way == "price" and code == "en" else name if code == "en" else MENU[name].japanese
    words = answer(code, way, x=shown, p=MENU[name].price)
    return make_sample(random, "price", place, _about(random, code, way, called), [_with_closing(place, words)])


def _about(random: Random, code: str, way: str, called: str) -> str:
    return str(tongue(code)[1].written(random, line_words(random, code, way).replace("{x}", called), "?"))


def menu(random: Random, code: str) -> Sample:
    """Ask what is on the menu."""
    place = scene(random, code, most=2)
    text = line_words(random, code, "menu")
    words = answer(code, "menu")
    kind = next((kind for kind, pattern in KINDS if pattern.search(text)), "")
    if kind:
        words = answer(code, "coffees", x=kinds(code, kind))
    elif POPULAR.search(text):
        words = answer(code, "popular")
    return make_sample(random, "menu", place, str(tongue(code)[1].written(random, text, "?")), [words])


def confirm(random: Random, code: str) -> Sample:
    """Order everything, or answer the question with yes or no."""
    chance = random.random()
    if chance < 0.2:
        place = scene(random, code, least=1, asked="more")
        return make_sample(random, "confirm", place, _said(random, code, "yes"), [answer(code, "yes")])
    asked = "place" if chance < 0.45 else "more" if chance < 0.9 else ""
    place = scene(random, code, least=0 if random.random() < 0.06 else 1, asked=asked)
    while True:
        text = line_words(random, code, "confirm")
        group = _group(text)
        if (group != YES_LIKE or asked == "place") and (group != NO_LIKE or asked == "more"):
            break
    text = str(tongue(code)[1].written(random, text))
    if not place.lines:
        return make_sample(random, "confirm", place, text, [answer(code, "empty")])
    return make_sample(random, "confirm", place, text, shown_sum(code, "total", place.lines), Step(status=CONFIRMED))


def _group(text: str) -> int:
    """Return true if the text only says yes, begins with no, or ends the order."""
    if re.match(r"(no|nope|nah|nothing|not today|i'm good|we're good|いいえ|いえ|ううん|いや)", text):
        return NO_LIKE
    done = re.search(
        r"order|all|that's it|everything|confirm|check ?out|done|lot|set|place|send|submit|put it|book|ring|make it so|let's go|that does it|that completes|以上|全部|確定|注文|それだけ|終わり|決まり|ほか|特に|もう|結構",
        text,
    )
    return PLAIN_DONE if done else YES_LIKE


def call_off(random: Random, code: str) -> Sample:
    """Cancel the order."""
    place = scene(random, code, least=1 if random.random() < 0.93 else 0)
    text = _said(random, code, "cancel")
    return make_sample(
        random,
        "call_off",
        place,
        text,
        [answer(code, "cancelled")],
        replace(step(place, gone=place.lines), status="cancelled"),
    )


def social(random: Random, code: str) -> Sample:
    """Greet, thank, say goodbye, or make small talk."""
    place = scene(random, code, least=random.choice((0, 0, 1)))
    name = random.choices(("hello", "thanks", "bye", "complaint", "remark"), (4, 4, 2, 2, 1))[0]
    words = answer(code, "hello_more" if name == "hello" and place.lines else name)
    if name == "remark":
        words = answer(code, "remark")
    return make_sample(random, "social", place, _said(random, code, name), [words])


def unclear(random: Random, code: str) -> Sample:
    """Ask for something without saying what."""
    place = scene(random, code, most=2)
    name = random.choice(("warm", "cool", "drink", "eat", "sweet", "usual"))
    return make_sample(random, "unclear", place, _said(random, code, name), [answer(code, name)])


def elsewhere(random: Random, code: str) -> Sample:
    """Write off-topic text: other languages, other requests, prompt injections."""
    place = scene(random, code, least=random.choice((0, 0, 1)))
    name = random.choices(("offtopic", "injection", "foreign"), (5, 3, 2 if code == "en" else 0))[0]
    words = answer(code, "foreign" if name == "foreign" else "offtopic")
    return make_sample(random, "elsewhere", place, _said(random, code, name), [words])
