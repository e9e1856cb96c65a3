"""Orders corrected within one turn: `two lattes, no wait, make that three`."""

from dataclasses import replace
from random import Random

from training.builtin.desk.english_words import STANDS
from training.builtin.desk.japanese_words import SIZE_WORDS
from training.builtin.desk.ordering import taken, tongue
from training.builtin.desk.scene import make_sample, next_number, scene, step
from training.builtin.desk.wishes import Extra, Wish, extra, quantity, size, wish
from training.builtin.desk.wording import fill
from training.builtin.noise import number_ja, number_words
from training.builtin.samples import Sample

__all__ = ["correct", "corrected_part"]

OH = "[actually|actually|no wait|wait|sorry|no|oh|no sorry|hmm actually|on second thought|wait no|or no,|oh wait|scratch that,|my mistake,|hang on,|i mean|oops|no no]"
OH_JA = "[やっぱり|やっぱり|あ、やっぱり|いや、|すみません、|あ、ごめんなさい、|ちょっと待って、|間違えました、|あ、違う、|いえ、]"
WORDS = {
    "en": {
        "size": f"{OH} [make {{r}} a {{x}}|make {{r}} {{x}}|change {{r}} to a {{x}}|{{r}} in {{x}}|{{x}} for {{r}}|let's make {{r}} a {{x}}|{{r}} should be {{x}}|a {{x}} for {{r}}]",
        "quantity": f"{OH} [make {{r}} {{x}}|change {{r}} to {{x}}|{{x}} of {{r}}|let's make {{r}} {{x}}|i need {{x}} of {{r}}]",
        "extra": f"{OH} [make {{r}} {{x}}|{{r}} {{x}}|i want {{r}} {{x}}|could you make {{r}} {{x}}|{{r}} {{x}} please|have {{r}} {{x}}]",
        "rename": f"[{OH}|{OH}|or rather|i mean|i meant|no, make that|sorry make that|or better] {{x}}[| instead]",
        "cancel": f"{OH} [forget|skip|scratch|leave out|cancel|drop|no|not|without|i don't want|never mind] {{r}}[|| after all| please]",
    },
    "ja": {
        "size": f"{OH_JA}{{r}}は{{x}}[でお願いします|で|にしてください|に変えてください|にします]",
        "quantity": f"{OH_JA}{{r}}は{{x}}[でお願いします|で|にしてください|に変更で|ください]",
        "extra": f"{OH_JA}{{r}}は{{x}}[お願いします|ください||]",
        "rename": f"[{OH_JA}|じゃなくて|ではなくて|でなく、]{{x}}[をください|をお願いします|で|にします]",
        "cancel": f"{OH_JA}{{r}}は[やめます|いりません|なしで|やめておきます|キャンセルで|結構です]",
    },
}  # fmt: skip
FIRST = ("first", "second", "third")
FIRST_JA = ("一つ目", "二つ目", "三つ目")


def correct(random: Random, code: str) -> Sample:
    """Order something and correct it in the same turn."""
    place = scene(random, code, most=0 if random.random() < 0.7 else 3)
    wished = [wish(random, 2) for _ in range(random.choice((1, 1, 2, 2, 3)))]
    if len({each.name for each in wished}) < len(wished):
        wished = wished[:1]
    wording, talk = tongue(code)
    spoken = [wording.phrase(random, each) for each in wished]
    meant = [after for _, after in spoken]
    at = random.randrange(len(meant))
    way = random.choice(
        ("size", "size", "quantity", "quantity", "rename", "extra", "extra", "cancel" if len(meant) > 1 else "rename")
    )
    at = len(meant) - 1 if way == "rename" else at
    correction, corrected = corrected_part(random, code, meant, at, way)
    joint = random.choice((" ", ", ", ". ", " ... ", " - ", " ") if code == "en" else ("、", "。", " ", "..."))
    items = [text for text, _ in spoken]
    text = talk.ordering(random, [*items[:-1], items[-1] + joint + correction], "first")
    after = [each for each in (*meant[:at], corrected, *meant[at + 1 :]) if each is not None]
    lines = [each.line(next_number(place.order) + number) for number, each in enumerate(after)]
    return make_sample(random, "correct", place, text, taken(place, lines), step(place, lines))


def corrected_part(random: Random, code: str, meant: list[Wish], at: int, way: str) -> tuple[str, Wish | None]:
    """Return the words that correct one item, and the item then meant; None if it is withdrawn."""
    old = meant[at]
    words = fill(random, WORDS[code][way]).replace("{r}", _named(random, code, meant, at))
    if way == "cancel":
        return words, None
    if way == "rename":
        said, other = tongue(code)[0].phrase(random, wish(random, 1))
        return words.replace("{x}", said), other
    if way == "quantity":
        number = quantity(random) + (1 if old.quantity == 1 else 0)
        number = number + 1 if number == old.quantity else number
        said = number_words(random, number, digits=0.3).replace("a couple of", "two").replace("a single", "one")
        return words.replace("{x}", said if code == "en" else number_ja(random, number)), replace(old, quantity=number)
    more = extra(random, old.name, old.extras) if way == "extra" else None
    if more is not None and more.sort != "bagel":
        return words.replace("{x}", _added(random, code, more)), replace(old, extras=(*old.extras, more))
    chosen = next((each for each in (size(random, old.name) for _ in range(6)) if each != old.size), "large")
    words = fill(random, WORDS[code]["size"]).replace("{r}", _named(random, code, meant, at))
    return words.replace("{x}", chosen if code == "en" else SIZE_WORDS[chosen][0]), replace(old, size=chosen)


def _added(random: Random, code: str, more: Extra) -> str:
    """Return an extra as it is said after the item."""
    if code == "en" and more.name in STANDS:
        return (STANDS[more.name][1] or STANDS[more.name][0])[0]
    part = tongue(code)[0].behind(random, more)
    if isinstance(part, str):
        return part
    said, link = part
    return f"with {said}" if link else str(said)


def _named(random: Random, code: str, meant: list[Wish], at: int) -> str:
    """Return an item as it is called after its first mention."""
    alike = len({each.name for each in meant}) < len(meant)
    only, last, several = len(meant) == 1, at == len(meant) - 1, meant[at].quantity > 1
    if code == "ja":
        return (
            "それ"
            if only and random.random() < 0.4
            else FIRST_JA[at]
            if not only and random.random() < 0.3
            else str(tongue(code)[0].noun(random, meant[at].name))
        )
    if only and random.random() < 0.7:
        return random.choice(("those", "them", "that") if several else ("that", "it", "that", "it"))
    if alike or (not only and random.random() < 0.35):
        return (
            "the last one"
            if last and random.random() < 0.4
            else f"the {FIRST[at]} {random.choice(('one', 'one', 'thing'))}"
        )
    return f"the {tongue(code)[0].noun(random, meant[at].name, several=several)}"
