"""Multi-turn dialogues in which each question depends on earlier turns."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from training.builtin.asking.scenes import Scene, Scores, Stage, Wish
from training.builtin.asking.wording import listed
from training.builtin.asking.work import ABOUT_PERSON, Topic, condition, topic, wish

__all__ = ["thread"]

NEEDS = ("site", "kind", "years", "country", "date", "people", "amount")


@dataclass(slots=True)
class Talk:
    """A dialogue under construction: its turns and its current topic."""

    stage: Stage
    about: Topic
    wish: Wish
    aspect: str
    turns: list[tuple[str, str]]

    def says(self, text: str, *keep: str) -> None:
        """Add a user turn."""
        self.turns.append(("user", self.stage.said(text, (self.about.name, *keep))))

    def moves(self, asked: Wish, aspect: str = "") -> None:
        """Replace the current question."""
        self.wish, self.aspect = asked, aspect or self.aspect

    def linked(self, text: str) -> str:
        """Return the question with a connective that links it to the previous turn."""
        if not self.stage.chance(0.3):
            return text
        return self.stage.joined(self.stage.options("links"), text)


def thread(stage: Stage) -> Scene:
    """Return a workplace dialogue with two to five user turns."""
    about = topic(stage)
    aspect = stage.random.choice(about.aspects)
    asked = wish(stage, about, aspect, _condition(stage, about) if stage.chance(0.35) else "")
    talk = Talk(stage, about, asked, aspect, [])
    _opening(talk)
    talk.moves(asked, aspect)
    for _ in range(stage.random.choice((1, 1, 1, 2, 2, 3, 4))):
        if talk.turns[-1][0] == "user":
            if stage.chance(0.5):
                talk.turns.append(("assistant", stage.options("answers")))
            elif stage.chance(0.15):
                talk.turns.append(("assistant", stage.options("apologies")))
        stage.slots.anew("n", "code", "person", "money", "date")
        stage.random.choices(MOVES, WEIGHTS)[0](talk)
    return Scene(stage.language, talk.turns, Scores(1))


def _opening(talk: Talk) -> None:
    """Write the first turn: a complete question, or a topic followed by a question."""
    stage = talk.stage
    if stage.chance(0.2):
        talk.says(stage.options("bare", {"x": talk.about.name}))
        if stage.chance(0.6):
            talk.turns.append(("assistant", stage.options("ask bare", {"x": talk.about.name})))
        talk.says(talk.wish.pointing(stage, condition=True))
    else:
        talk.says(talk.wish.whole(stage))


def _condition(stage: Stage, about: Topic) -> str:
    needs = about.needs or NEEDS[:2]
    return condition(stage, stage.random.choice(needs))


def _by_pronoun(talk: Talk) -> None:
    """Ask about another aspect of the same topic, by reference."""
    stage = talk.stage
    aspect = stage.random.choice(talk.about.aspects)
    asked = replace(wish(stage, talk.about, aspect), condition=talk.wish.condition)
    talk.says(talk.linked(asked.pointing(stage, condition=stage.chance(0.15))))
    talk.moves(asked, aspect)


def _in_short(talk: Talk) -> None:
    """Ask about another aspect in one or two words."""
    stage = talk.stage
    rows = [row for row in listed(stage.language, "short") if row.split(" ; ")[0] in talk.about.aspects]
    if not rows:
        return _by_pronoun(talk)
    aspect, words, shape = stage.random.choice(rows).split(" ; ")
    talk.says(talk.linked(stage.made(words)) + ("?" if stage.chance(0.7) else ""))
    return talk.moves(replace(talk.wish, shape=shape), aspect)


def _other_condition(talk: Talk) -> None:
    """Ask the same question under another condition."""
    stage = talk.stage
    stage.slots.anew("site", "country", "nth")
    said = _condition(stage, talk.about)
    how = "no c" if talk.wish.condition and stage.chance(0.2) else "more c"
    talk.says(stage.options(how, stage.condition(said)) + ("?" if how == "more c" and stage.chance(0.8) else ""))
    talk.moves(replace(talk.wish, condition=said))


def _asked_back(talk: Talk) -> None:
    """Let the assistant ask for a condition and the user give it in one or two words."""
    stage = talk.stage
    need = stage.random.choice(talk.about.needs or ABOUT_PERSON[:2])
    said = condition(stage, need)
    if talk.turns[-1][0] == "assistant":
        talk.turns.pop()
    talk.turns.append(("assistant", stage.finished(stage.options(f"ask {need}"))))
    talk.says(stage.options("answer c", stage.condition(said)))
    talk.moves(replace(talk.wish, condition=said))


def _other_topic(talk: Talk) -> None:
    """Ask the same question about another topic."""
    stage = talk.stage
    other = topic(stage, talk.aspect, talk.about.name)
    how = "no x" if stage.chance(0.25) else "more x"
    talk.about = other
    talk.says(stage.options(how, {"x": other.name}) + ("?" if how == "more x" and stage.chance(0.8) else ""))
    talk.moves(replace(talk.wish, thing=other.name, pronouns=other.pronouns))


def _offered(talk: Talk) -> None:
    """Let the assistant offer two topics and the user choose one."""
    stage = talk.stage
    one, two = topic(stage, talk.aspect), topic(stage, talk.aspect, talk.about.name)
    taken, place = (one, "first") if stage.chance(0.5) else (two, "second")
    if talk.turns[-1][0] == "assistant":
        talk.turns.pop()
    talk.turns.append(("assistant", stage.options("offer", {"1": one.name, "2": two.name})))
    talk.about = taken
    talk.says(stage.options(place) if stage.chance(0.5) else stage.options("answer x", {"x": taken.name}))
    talk.moves(replace(talk.wish, thing=taken.name, pronouns=taken.pronouns))


def _anew(talk: Talk) -> None:
    """Change the subject, so that earlier turns become irrelevant."""
    stage = talk.stage
    talk.about = topic(stage, other=talk.about.name)
    aspect = stage.random.choice(talk.about.aspects)
    asked = wish(stage, talk.about, aspect, _condition(stage, talk.about) if stage.chance(0.4) else "")
    talk.says(talk.linked(asked.whole(stage)))
    talk.moves(asked, aspect)


def _two_at_once(talk: Talk) -> None:
    """Ask two questions in one turn, the second with a pronoun."""
    stage = talk.stage
    own = _condition(stage, talk.about) if stage.chance(0.3) else ""
    first = wish(stage, talk.about, condition=own or talk.wish.condition)
    second = replace(wish(stage, talk.about), condition=first.condition)
    before = first.pointing(stage, condition=bool(own)) if stage.chance(0.5) else first.whole(stage)
    talk.says(stage.joined(before.rstrip("?。") + stage.options("joins"), second.pointing(stage)))
    talk.moves(first)


def _told_more(talk: Talk) -> None:
    """Let the user state a fact about themselves, then ask with a pronoun."""
    stage = talk.stage
    talk.says(stage.options("told"))
    if stage.chance(0.5):
        talk.turns.append(("assistant", stage.options("noted")))
    _by_pronoun(talk)


MOVES: tuple[Callable[[Talk], None], ...] = (
    _by_pronoun, _in_short, _other_condition, _asked_back, _other_topic, _offered, _anew, _two_at_once, _told_more,
)  # fmt: skip
WEIGHTS = (26, 10, 18, 10, 12, 6, 9, 7, 5)
