"""Typing noise: slips, fillers, punctuation, case, and numbers in digits or words.

Tokens that must be read exactly stay intact: digits, formulas, words with a digit or two capitals, and the words in `keep`.
Whitespace stays single, as the runtime normalises it anyway.
"""

import re
from collections.abc import Collection
from random import Random

__all__ = ["kanji", "noisy", "noisy_ja", "number_ja", "number_words"]

NEIGHBOURS = {
    "q": "wa", "w": "qes", "e": "wrd", "r": "etf", "t": "ryg", "y": "tuh", "u": "yij", "i": "uok", "o": "ipl", "p": "ol",
    "a": "qsz", "s": "adwx", "d": "sfec", "f": "dgrv", "g": "fhtb", "h": "gjyn", "j": "hkum", "k": "jlim", "l": "kop",
    "z": "xas", "x": "zcsd", "c": "xvdf", "v": "cbfg", "b": "vngh", "n": "bmhj", "m": "njk",
}  # fmt: skip
LONG_ENOUGH = 4
"""The shortest word to misspell; a slip in a shorter one may produce another word."""
CAPITALISED_SHORT = frozenset(
    "A An As At By Do Go He I If In Is It My No Of On Or So To Up Us We".split()
)  # other short capitalised words may be element symbols
STARTS = frozenset(
    """What What's How Which When Where Who Why Whats Find Calculate Compute Determine Work Give Tell Show State Name Suppose
    Imagine Say Given Take A An The In On At If It My Our Your There You We Can Could Would Will Please Estimate For With
    After Before Each Every One Two Three Some During By From To Is Are Was Were Do Does Did This That These Those
    Let's Let Express Write Convert Someone Somebody Assume Consider Should Make Help Get Add""".split()
)
UNITS = frozenset(
    "km m cm mm kg g mg l L ml mL h s min hr hrs mol kmph mph km/h m/s % cm2 m2 mol/L g/mol kJ J W kW V A N Pa kPa atm".split()
)
HEADS = """please |please, |pls |hey, |hey |hi, |hello, |hello! |um, |uh, |umm |ok |ok, |okay, |ok so |so |so, |well, |hmm, |right, |
can you tell me: |could you tell me: |can you help me? |could you help? |help me with this: |i was wondering, |i was wondering: |
just wondering, |just wondering: |quick question: |quick one: |question: |one more: |another one: |next: |here is one: |
i need this for class: |for my homework: |homework: |no idea how to do this: |stuck on this: |not sure about this one. |
hi there, |good morning, |good evening, |hello there. |yo |dear assistant, |sorry, |sorry to bother you. |
a friend asked me this: |my teacher asks: |try this: |solve: |solve this: |please solve: |puzzle: |q: |Q: |Problem: """
FRONTS = tuple(HEADS.replace("\n", "").split("|"))
BACKS = tuple(
    " please| pls| thanks| thank you| thx|, please|, thanks|. Thanks!|. Thank you.|. Please help.|. Help!| please?| ty|..."
    "| :)|, any idea|. Show how.|. Be quick.| lol|. I need it soon.|. Just the number please.| asap|. Cheers!".split(
        "|"
    )
)
ENDINGS = ("??", "?!", "!", "...", " ?", " .", "??", ".")
ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen""".split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
DOZENS = {6: "half a dozen", 12: "a dozen", 24: "two dozen", 36: "three dozen", 48: "four dozen", 60: "five dozen"}
COUNTS = frozenset(
    [*ONES, *TENS, *"hundred thousand million dozen half twice thrice double triple third quarter".split()]
)
"""Words in which a slip would change the question."""
LARGEST_IN_WORDS = 999_999
DIGITS = 0.55
"""The share of numbers written in digits where words are possible."""
NUMERALS = "〇一二三四五六七八九"
NATIVE = ("", "一つ", "二つ", "三つ", "四つ", "五つ", "六つ", "七つ", "八つ", "九つ", "十")
SPOKEN = ("", "ひとつ", "ふたつ", "みっつ", "よっつ", "いつつ", "むっつ", "ななつ", "やっつ", "ここのつ", "とお")
WIDE = str.maketrans("0123456789", "０１２３４５６７８９")  # fmt: skip
FRONTS_JA = tuple(
    "えっと、|えーと、|えーっと、|あの、|あのー、|すみません、|すいません、|あ、|ええと|では、|じゃあ、|それでは|はい、|うーん、|んー、|ねえ、|お願いします、|こんにちは、|こんにちは。"
    "|どうも、|ちょっと|ごめん、|ごめんなさい、|質問です。|教えてください。|ところで、|そうだ、|うんと、".split("|")
)
BACKS_JA = ("ね", "よ", "!", "。", "...", "、お願いします", "。お願いします", "です", "〜", "ー", "。よろしく", "w", "")
KANA = re.compile(r"[ぁ-んァ-ヴ]")


def noisy(random: Random, text: str, level: float = 0.1, keep: Collection[str] = ()) -> str:
    """Return the text as a hurried user might type it.

    `level` is roughly the share of texts affected by each kind of noise: typing errors, case, fillers, final punctuation, and
    units joined to their numbers. The words in `keep` stay intact.
    """
    if random.random() < 2 * level:
        text = _slips(random, text, keep)
    if random.random() < 1.2 * level:
        text = _unit_touching(random, text)
    if random.random() < 2.5 * level:
        text = _other_end(random, text)
    if random.random() < level:
        text = _front(random, text)
    if random.random() < level / 2:
        text = text.rstrip("?.! ") + random.choice(BACKS)
    if random.random() < 2 * level:
        text = " ".join(_lower(word, keep) for word in text.split(" "))
    elif random.random() < level / 5:
        text = _upper(text, keep)
    if random.random() < level:
        text = _commas(random, text)
    return text


def _plain_word(word: str, keep: Collection[str]) -> bool:
    """Return true for an ordinary word: no digit, no second capital, not an element symbol and not in `keep`."""
    core = word.strip(",.;:?!\"'()")
    if core in keep or not core.isascii() or not core.replace("'", "").isalpha():
        return False
    return core[1:].islower() or (len(core) == 1 and core in "aAiI") or core in CAPITALISED_SHORT


def _slips(random: Random, text: str, keep: Collection[str]) -> str:
    words = text.split(" ")
    for _ in range(random.choice((1, 1, 1, 2, 2, 3))):
        at = random.randrange(len(words))
        word = words[at]
        if len(word) >= LONG_ENOUGH and word.isalpha() and word.lower() not in COUNTS and _plain_word(word, keep):
            words[at] = _slip(random, word)
    return " ".join(words)


def _slip(random: Random, word: str) -> str:
    at = random.randrange(1, len(word) - 1)
    kind = random.randrange(5)
    letter = word[at]
    if kind == 0:
        return word[:at] + word[at + 1] + letter + word[at + 2 :]
    if kind == 1:
        return word[:at] + word[at + 1 :]
    if kind == 2:
        return word[:at] + letter + word[at:]
    if kind == 3 or letter not in "aeiou":
        return word[:at] + random.choice(NEIGHBOURS.get(letter, letter)) + word[at + 1 :]
    return word[:at] + random.choice("aeiou") + word[at + 1 :]


def _unit_touching(random: Random, text: str) -> str:
    """Join one number, or all of them, to the unit after it."""
    words = text.split(" ")
    joined: list[str] = []
    everywhere = random.random() < 0.7
    for word in words:
        before = joined[-1] if joined else ""
        if before[-1:].isdigit() and before[:1].isdigit() and word.rstrip(",.?;!") in UNITS and everywhere:
            joined[-1] = before + word
            continue
        everywhere = everywhere or random.random() < 0.1
        joined.append(word)
    return " ".join(joined)


def _other_end(random: Random, text: str) -> str:
    bare = text.rstrip("?.! ")
    return bare if random.random() < 0.7 else bare + random.choice(ENDINGS)


def _front(random: Random, text: str) -> str:
    first, blank, rest = text.partition(" ")
    front = random.choice(FRONTS)
    if first in STARTS and front[-2:-1] not in ".?!":
        first = first if first == "I" else first[0].lower() + first[1:]
    if random.random() < 0.3:
        front = front[0].upper() + front[1:]
    return f"{front}{first}{blank}{rest}"


def _lower(word: str, keep: Collection[str]) -> str:
    if not _plain_word(word, keep):
        return word
    core = word.strip(",.;:?!\"'()")
    return word.lower() if len(core) > 2 or core in CAPITALISED_SHORT else word


def _upper(text: str, keep: Collection[str]) -> str:
    """Capitalise the text, except short words after a number, which may be case-sensitive units."""
    words = text.split(" ")
    return " ".join(
        word.upper() if _plain_word(word, keep) and (len(word) > 2 or not before[-1:].isdigit()) else word
        for before, word in zip(["", *words], words, strict=False)
    )


def _commas(random: Random, text: str) -> str:
    kind = random.randrange(3)
    if kind == 0:
        return re.sub(r",(?= )", "", text)
    if kind == 1:
        return re.sub(r"(?<=[a-z]), ", " , ", text, count=1)
    return re.sub(r"(?<=[a-z])([,.]) (?=[A-Za-z])", r"\1", text, count=1)


def number_words(random: Random, number: int, digits: float = DIGITS) -> str:
    """Write a whole number as people do: 25, twenty five, twenty-five, a dozen, a couple of, 12,000.

    The result must be followed by a noun. Negative numbers, and those from a million on, are in digits.

    >>> number_words(Random(1), 7, digits=0)
    'seven'
    """
    if random.random() < digits or not 0 < number <= LARGEST_IN_WORDS:
        return f"{number:,}" if number >= 1_000 and random.random() < 0.4 else str(number)
    if number in DOZENS and random.random() < 0.4:
        return DOZENS[number]
    if number == 2 and random.random() < 0.25:
        return "a couple of"
    if number == 1 and random.random() < 0.2:
        return "a single"
    if number == 100 and random.random() < 0.4:
        return "a hundred"
    if number == 1_000 and random.random() < 0.4:
        return "a thousand"
    return _spelt(number, random.choice(("-", "-", " ")), random.choice((" and ", " ")))


def _spelt(number: int, hyphen: str, joint: str) -> str:
    """Spell a number from one to below a million."""
    if number >= 1_000:
        thousands, rest = divmod(number, 1_000)
        head = _spelt(thousands, hyphen, joint) + " thousand"
        return head + ((joint if rest < 100 else " ") + _spelt(rest, hyphen, joint) if rest else "")
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        return ONES[hundreds] + " hundred" + (joint + _spelt(rest, hyphen, joint) if rest else "")
    if number < 20:
        return ONES[number]
    tens, ones = divmod(number, 10)
    return TENS[tens] + (hyphen + ONES[ones] if ones else "")


def noisy_ja(random: Random, text: str, level: float = 0.1, keep: Collection[str] = ()) -> str:
    """Return a Japanese text as a hurried user might type it: slips in kana, fillers, punctuation; `keep` stays intact."""
    if random.random() < level:
        text = _slip_ja(random, text, keep)
    if random.random() < 2 * level:
        text = text.rstrip("。?!、")
    elif random.random() < level / 2:
        text = text.rstrip("。?!、") + random.choice(BACKS_JA)
    if random.random() < 1.5 * level:
        text = random.choice(FRONTS_JA) + text
    if random.random() < level:
        text = text.replace("、", random.choice(("", " ", ",")))
    if random.random() < level:
        text = text.replace("を", "", 1) if random.random() < 0.5 else text.replace("。", " ").rstrip()
    return text


def _slip_ja(random: Random, text: str, keep: Collection[str]) -> str:
    """Omit, double or swap one kana, never in a word of `keep`."""
    at = random.randrange(max(len(text) - 1, 1))
    if not KANA.match(text, at):
        return text
    for word in keep:
        if word in text[max(0, at - len(word)) : at + len(word) + 1]:
            return text
    kind = random.randrange(3)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[at] + text[at:]
    return text[:at] + text[at + 1 : at + 2] + text[at] + text[at + 2 :]


def number_ja(random: Random, number: int, counter: str = "つ", *, wide: bool = False) -> str:
    """Write a number with its counter word: 一つ, ふたつ, 2つ, 二十五個, 12杯; with `wide` also ２杯.

    >>> number_ja(Random(2), 25, "個")
    '25個'
    """
    if counter == "つ":
        if not 1 <= number <= 10:
            counter = "個"
        elif random.random() < 0.6:
            return random.choice((NATIVE, NATIVE, SPOKEN))[number]
        elif number == 10:
            counter = "個"
    if random.random() < 0.45 and 0 < number < 10_000:
        return kanji(number) + counter
    written = str(number)
    return (written.translate(WIDE) if wide and random.random() < 0.5 else written) + counter


def kanji(number: int) -> str:
    """Write a number below ten thousand in kanji.

    >>> kanji(25), kanji(1300)
    ('二十五', '千三百')
    """
    text = ""
    for size, sign in ((1_000, "千"), (100, "百"), (10, "十")):
        count, number = divmod(number, size)
        text += ("" if count == 1 else NUMERALS[count]) + sign if count else ""
    return text + (NUMERALS[number] if number else "")
