"""The lexicon of the order app: the words that the model was trained on, used to check its answers."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from taiwa.models.builtin.order_app import COUNTED, PLAIN, SIZES
from training.builtin.desk import english_lines, english_talk, english_words, foreign, japanese_talk, japanese_words
from training.builtin.desk.changing_words import CHANGES, JD, JE, J
from training.builtin.desk.correcting import WORDS as CORRECTIONS
from training.builtin.desk.english import LITTLE, plural
from training.builtin.desk.menu import DISHES, MENU
from training.builtin.desk.replies import ANSWERS, FLAVOURED
from training.builtin.desk.unknown import LOOKS
from training.builtin.desk.wishes import DRINKS
from training.builtin.noise import BACKS, BACKS_JA, FRONTS, FRONTS_JA

__all__ = ["lexicon", "write"]

WORD = re.compile(r"[a-z][a-z']+")
BEHIND = "is what i want is what we need is what i'd like would be great would be lovely will do is my order for me couple dozen"
SLOT = re.compile(r"\{\w\}")
Entry = list[str]
"""The names shown in Japanese, and all names that guests use."""


def lexicon() -> Mapping[str, Mapping[str, Entry]]:
    """Return the entries by kind and name."""
    return {
        "dishes": {dish.name: _entry(dish.japanese, _dish(dish.name)) for dish in DISHES},
        "sizes": {name: _entry(japanese_words.SIZE_WORDS[name][0], _size(name)) for name in SIZES},
        "options": {
            name: _entry(
                japanese_words.SHOWN.get(name)
                or japanese_words.ADDED[name][0] + ("シロップ" if name.endswith(FLAVOURED) else ""),
                _option(name),
            )
            for name in dict.fromkeys((*COUNTED, *PLAIN))
        },
        "drinks": {"all": [dish.name for dish in DISHES if dish.kind in DRINKS]},
        "words": {"en": sorted(_plain_words())},
        "fillers": {code: sorted(_fillers(code)) for code in ("en", "ja")},
        "done": {code: sorted(_dones(code)) for code in ("en", "ja")},
        "numbers": {str(number): _entry("", _number(number - 1)) for number in range(1, 5)},
        "answers": {
            code: sorted({each for each in answers.values() if "{" not in each}) for code, answers in ANSWERS.items()
        },
    }


def write(path: Path) -> None:
    """Write the entries to a file."""
    path.write_text(json.dumps(lexicon(), ensure_ascii=False, indent=0) + "\n", "utf-8")


def _entry(shown: str, said: Iterable[str]) -> Entry:
    return [shown, *dict.fromkeys(each for each in said if each)]


def _dish(name: str) -> Iterable[str]:
    yield from (name, plural(name), *(form for pair in english_words.NOUNS.get(name, ()) for form in pair))
    yield from (MENU[name].japanese, *japanese_words.NOUNS[name])
    for table in foreign.DISHES.values():
        yield from table.get(name, "").split("/")


def _size(name: str) -> Iterable[str]:
    yield from (name, *english_words.SIZE_WORDS.get(name, ()), *japanese_words.SIZE_WORDS[name])
    for table in foreign.SIZES.values():
        yield from table.get(name, "").split("/")


def _plain_words() -> set[str]:
    """Return the words that occur around items."""
    talk = (english_talk.HELLO, english_talk.WANT, english_talk.MORE, english_talk.TAIL, english_talk.DONE)
    texts = (*talk, *CHANGES["en"].values(), *english_lines.LINES.values(), *LITTLE.values())
    return {word for text in texts for word in WORD.findall(text) if len(word) > 3}


def _fillers(code: str) -> set[str]:
    """Return the words that occur around items and changes: English words, runs of Japanese."""
    if code == "en":
        talk = (
            english_talk.HELLO,
            english_talk.WANT,
            english_talk.MORE,
            english_talk.TAIL,
            english_talk.YES_FIRST,
            BEHIND,
        )
        texts = (
            *talk,
            *CHANGES["en"].values(),
            *CORRECTIONS["en"].values(),
            *english_talk.HESITATIONS,
            *FRONTS,
            *BACKS,
            *LOOKS,
            *foreign.FRAMES.values(),
        )
        return {
            word
            for text in texts
            for word in re.findall(r"[a-z\u00df-\u00ff][a-z'\u00df-\u00ff]*", SLOT.sub(" ", text.lower()))
        }
    own = (japanese_talk.HELLO, japanese_talk.MORE, japanese_talk.YES, japanese_talk.ASK, japanese_talk.AFTER_DE)
    texts = (*own, *japanese_talk.BETWEEN, *japanese_talk.PAUSES, *FRONTS_JA, *BACKS_JA, J, JD, JE)
    return {run for text in texts for run in re.findall(r"[^\s\[\]|、。!.,]+", text)}


def _dones(code: str) -> set[str]:
    """Return the wordings that end an order."""
    text = (english_talk if code == "en" else japanese_talk).DONE
    return {each.strip() for each in text.replace("\n", "").strip("[]").split("|")}


def _number(at: int) -> Iterable[str]:
    for numbers in foreign.NUMBERS.values():
        yield from (each for each in numbers[at].split("/") if each.isalpha() and len(each) > 1)


def _option(name: str) -> Iterable[str]:
    flavour = name.removesuffix(FLAVOURED)
    yield name
    if flavour != name:
        yield flavour
    for said in english_words.MILK_WORDS.get(name, ()):
        yield from (said, said if said.endswith("milk") else f"{said} milk")
    yield from english_words.SWEET_WORDS.get(name, ())
    for forms in (*english_words.STANDS.get(name, ()), *japanese_words.STANDS.get(name, ())):
        yield from forms
    yield from (*japanese_words.ADDED.get(name, ()), japanese_words.SHOWN.get(name, ""))
    yield from MORE.get(name, ())


MORE = {
    "whipped cream": ("whip",),
    "espresso shot": ("espresso shots", "extra espresso shot", "extra espresso shots", "extra shot", "extra shots", "added shot", "more shot", "shots", "shot of espresso", "shots of espresso", "double shot", "triple shot", "additional shots"),
    "iced": ("冰", "冰的"), "hot": ("热", "热的"), "decaf": ("低因", "低因的"), "to go": ("打包", "打包的", "持ち帰りに"), "for here": ("店内に",),
}  # fmt: skip
"""Words written in the code rather than in a table."""
