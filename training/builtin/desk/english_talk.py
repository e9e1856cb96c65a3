"""Complete English orders: the words around the items."""

from collections.abc import Sequence
from random import Random

from training.builtin.desk.english import together
from training.builtin.desk.wording import fill, sentence
from training.builtin.noise import noisy

__all__ = ["TAIL", "WANT", "divided", "ordering", "shared", "written"]

HELLO = """[||||||hi|hello|hey|good morning|morning|good afternoon|hi there|hey there|hello there|ok|okay|so|um|uh|well|right|alright|
excuse me|yeah|yes|yes please|good day|oh hi|umm|ah|sure|evening|let's see|let me see|hmm|great|yo|ok so|yes hi|sorry|hello hello]"""
WANT = """[i want|i want|i'd like|i'd like|i would like|we'd like|we would like|we want|we need|i need|can i get|can i get|can i have|can i have|
could i get|could i have|could i please have|can i please have|can i please get|could i please get|may i have|could we get|can we have|can we get|
could we have|may we have|please may i have|might i have|give me|gimme|get me|get us|give us|let me have|let me get|let us have|
i'll have|i'll take|we'll have|we'll take|i'll get|i'm going to have|i'm gonna have|i'm going to get|i'm gonna get|we're going to have|
i would love|i'd love|we'd love|i'd go for|i'll go for|i'll go with|i think i'll have|i think i'll take|i guess i'll have|i feel like|i fancy|
i'm after|i was hoping for|i was hoping to get|i'd like to order|i want to order|i would like to order|we'd like to order|i'd like to get|i need to get|i'd like to have|
please give me|please get me|please make me|make me|could you make me|could you get me|can you get me|can you make|could you do|can you do|
could you bring us|bring me|bring us|please bring|fix me|pour me|hook me up with|set me up with|put me down for|sign me up for|
my order is|the order is|our order is|i'm ordering|this is an order for|order|ordering|for me|for us|just|just get me|only|
we are going for|how about|what about|let's do|let's have|let's go with|let's get|let's start with|we'll start with|i'll start with|start with|
do you think i could have|would it be possible to get|any chance of|is it possible to have|could you sort me|i could do with|
i could use|time for|i'm craving|we could use|may i please have|may i order|can i order|could i order|i wanna get|i wanna have|i wanna order|
wanna get|lemme get|lemme have|can you ring up|ring up|could you put in|please put in|put in|i wish to have|i'd take|i might have|shall we say]"""
MORE = """[also|and|and also|oh and|plus|and then|i also want|i'd also like|can i also get|could i also have|can you add|could you add|please add|add|
add on|throw in|and could we have|one more thing,|on top of that,|and let me have|we also need|as well as that,|and for my friend|
and for my wife|and for him|and for her|and for the kids|for my colleague|and give me|and get me|let me add|put in|i'd like to add|
oh, and also|actually, also|additionally|and we'll take|and i'll also have|then|next,|and one last thing,|could you throw in|and to eat,|to drink,]"""
TAIL = """[||||||||please|please|thanks|thank you|thank you very much|for me|for now|cheers|if you don't mind|if possible|to start|thx|pls|
if you could|for starters|when you can|if that's ok|for my friend|for the office|as well|too|asap|for breakfast|my friend]"""
DONE = """[that's all|that's all|that's it|that's it|that is all|that will be all|that'll be all|that'll be it|that's everything|that is it|
and that's all|and that's it|and that is everything|nothing else|and nothing else|that's the lot|that'd be all|that's all for now|that would be it|
that's all i need|that's all we need|that's my order|that's our order|that should do it|that does it|that's all thanks|that's it thanks|
that's it for me|that's all for today|and we're done|that'll do|then we're good|that completes it|no more|that's about it|
that's all for us thank you|that'll do for now|i'm done|and that's the order|that will do it|i think that's all]"""
BETWEEN = (
    ", ",
    ", ",
    " and ",
    " and ",
    " ",
    ", and ",
    " plus ",
    " and also ",
    ". ",
    ", also ",
    " as well as ",
    " then ",
    ", then ",
    " & ",
    "; ",
    " along with ",
)
LAST = (
    " and ",
    " and ",
    " and ",
    ", and ",
    ", ",
    " plus ",
    " ",
    " and also ",
    ". also ",
    " as well as ",
    ", plus ",
    " and then ",
    ". and ",
    " with ",
    " & ",
)
ALL = "[all|everything|both|all of it|all of them|all of that|each|each of them]"
ORDINALS = ("first", "second", "third", "fourth", "fifth")
WORDS = "zero one two three four five six seven eight nine ten".split()
YES_FIRST = "[yes|yeah|yes please|sure|yep|yes actually|oh yes|actually yes|yup|right]"


def phrases_joined(random: Random, said: Sequence[str]) -> str:
    """Return several items in one sentence."""
    if len(said) == 1:
        return said[0]
    between = random.choice(BETWEEN)
    last = random.choice(LAST) if random.random() < 0.8 else between
    if last == " with ":
        last = " and "
    inner = ((between if random.random() < 0.85 else random.choice(BETWEEN)) + text for text in said[1:-1])
    return said[0] + "".join(inner) + last + said[-1]


def ordering(random: Random, said: Sequence[str], mood: str) -> str:
    """Return an order in words. `mood` is `first`, `more` or `yes` (an answer to "anything else?"); `done` ends the order."""
    items = phrases_joined(random, said)
    chance = random.random()
    if "more" in mood and chance < 0.7:
        lead = MORE
    elif chance < 0.2:
        lead = ""
    else:
        lead = f"{YES_FIRST}, {WANT}" if "yes" in mood and chance < 0.6 else f"{HELLO} {WANT}"
    start = fill(random, lead)
    text = f"{start} {items}".strip()
    if random.random() < 0.03:
        text = fill(
            random,
            f"{items} [is what i want|is what we need|is what i'd like|would be great|would be lovely|will do|is my order|for me]",
        )
    tail = fill(random, TAIL)
    comma = random.choice((", ", " ", " "))
    text = f"{text}{comma}{tail}" if tail else text
    if "done" in mood:
        text += random.choice((" ", ", ", ". ", " ", " - ", "; ")) + fill(random, DONE)
    asks = start.split(" ")[0] in ("can", "could", "may", "might", "would", "any", "is", "do") and "done" not in mood
    return written(random, text, "?" if asks else ".")


def written(random: Random, text: str, mark: str = ".", level: float = 0.06) -> str:
    """Return the text as a guest types it, or as speech recognition transcribes it."""
    chance = random.random()
    if random.random() < 0.05:
        text = stuttered(random, text)
    if random.random() < 0.05:
        text = hesitating(random, text)
    if chance < 0.38:
        text = " ".join(text.replace(",", "").replace(";", "").replace(". ", " ").lower().split())
    elif chance < 0.75:
        text = sentence(text, mark)
    elif chance < 0.88:
        text = sentence(text, mark).rstrip(".?")
    return noisy(random, text, level) if random.random() < 0.5 else text


def stuttered(random: Random, text: str) -> str:
    """Repeat a few words, as speech recognition does."""
    words = text.split(" ")
    if len(words) < 4:
        return text
    length = random.choice((1, 1, 1, 2, 3))
    at = random.randrange(1, max(2, len(words) - length))
    run = words[at : at + length]
    if any(word.strip(",.").isdigit() for word in run) or any(word in COUNT_WORDS for word in run):
        return text
    return " ".join((*words[: at + length], *run, *words[at + length :]))


def hesitating(random: Random, text: str) -> str:
    """Insert a filler word."""
    words = text.split(" ")
    filler = random.choice(HESITATIONS)
    words.insert(random.randint(1, len(words)), filler + random.choice(("", "", ",", "...")))
    return " ".join(words)


HESITATIONS = (
    "um", "uh", "uhm", "er", "like", "you know", "hmm", "let's see", "let me think", "uh uh", "erm", "what was it",
)  # fmt: skip
COUNT_WORDS = frozenset("and two three four five six seven eight nine ten x dozen".split())


def shared(random: Random, parts: list[tuple[str, str]]) -> str:
    """Return an instruction that applies to all items."""
    return f"{random.choice((' ', ', '))}{fill(random, ALL)}{together(random, parts)}"


def divided(random: Random, base: str, parts: Sequence[tuple[int, str]]) -> str:
    """Return several of one item that differ: `two lattes, one iced and one with oat milk`."""
    if all(count == 1 for count, _ in parts) and random.random() < 0.28:
        said = [_in_its_place(random, at, len(parts), text) for at, (_, text) in enumerate(parts)]
        return base + random.choice((". ", ", ", " ")) + random.choice((". ", " and ", ", ", " ")).join(said)
    said = [_of_a_number(random, at == 0, at == len(parts) - 1, part) for at, part in enumerate(parts)]
    return base + random.choice((", ", " ", ": ", " - ", ". ")) + random.choice((" and ", ", ", " and ")).join(said)


def _in_its_place(random: Random, at: int, count: int, text: str) -> str:
    place = "other" if at and count == 2 and random.random() < 0.3 else ORDINALS[at]
    return fill(random, f"the {place} [one|one|] ") + " " + _differing(text or fill(random, "[normal|plain|as it is]"))


def _of_a_number(random: Random, first: bool, last: bool, part: tuple[int, str]) -> str:
    number, text = part
    count = "the other" if last and number == 1 and random.random() < 0.4 else WORDS[number]
    of = fill(random, "[|of them|of those]") if first and random.random() < 0.5 else ""
    plain = fill(random, "[plain|normal|regular style|as is|without anything]")
    return " ".join(filter(None, (count, of, _differing(text or plain))))


def _differing(text: str) -> str:
    """Return what distinguishes one of several, as it stands after a number."""
    return text.strip(" ,").replace("and add ", "with ", 1).removeprefix("and ").removeprefix("plus ")
