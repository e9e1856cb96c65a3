"""Replies of the app `order`: the lines in a reply, the state delta that it implies, and contradictions in it.

The app replies in fixed sentences, so the effect of a reply can be computed from its text. The faults of a reply are
contradictions (a removed line that does not exist) and statements that the guest's text does not support.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import Final, TypeAlias

from taiwa.kernel.serialization import Json, value
from taiwa.models.builtin.order_app import (
    CANCELLED,
    CONFIRMED,
    COUNTED,
    MEASURES,
    MENU,
    MILKS,
    OPEN,
    SIZES,
    TEMPERATURES,
    Order,
    OrderLine,
)
from taiwa.models.builtin.order_words import KANA, Meaning, drinks, find_counts, find_meanings, sentences, shown

Changes: TypeAlias = Mapping[int, OrderLine | None]

QUANTITY = "[1-9][0-9]?"
MOST_PLACINGS = 32
"""Equally likely assignments of changed lines that are compared."""
MEASURES_JA: Final = {"なし": "no", "少なめ": "light", "多め": "extra", "半分": "half"}
WIDE = re.compile(r"[ぁ-んァ-ヴ\u4e00-\u9fff]")
PRICE = re.compile(r"(?:Yes, )?[A-Za-z ]+: [0-9.]+ dollars\. ?|(?:はい、)?[^。、]+は[0-9.]+ドルです。")
SO_FAR = re.compile(r"So far: (.*?)\. (?=[A-Z])|ここまでのご注文は(.*?)です。")
SORTS = re.compile(r"We have [a-z, ]+ and more\. ?|[^。0-9a-z]+などがございます。")
REMOVED = re.compile(
    r"\b(?:remove|delete|cancel|drop|scratch|skip|lose|strike|kill|forget|leave|take|off|away|rid|scrap|no|not|don'?t|won'?t|never|without|undo|go"
    r"|pass|instead|isn'?t|nix|minus|less)\b|n't|キャンセル|取り消|取消|いらな|いりませ|要らな|要りませ|不要|やめ|止め|なし|無し|結構|消し|抜|外し|削除|減ら|去掉|不用|删|别"
)
FEWER = re.compile(r"\bone\b|\b1\b|一|1|ひとつ")
ONE_MORE = re.compile(r"another|an extra|same|again|おかわり|同じ|もう[一1ひ]")
ONE_OF = re.compile(r"\bone of\b|の一つ|のうち|[一1]つだけ|ひとつだけ|のひとつ")
MISSING = re.compile(r"Sorry, we have no ([^.?!]*)\. ?|申し訳ありませんが、([^。]*)はございません。")
TOTAL = re.compile(r"The total is |合計は")
SUMS: Final = ("The total is ", "合計は", "So far that is ", "ここまでで")
SUMMED = re.compile(rf"({'|'.join(SUMS)})<<calculator: [^<>]*>> [0-9.]+\Z")
ASKED_BACK: Final = (
    ("What would you like?", "何になさいますか?"),
    ("All right. What shall I change?", "かしこまりました。何を変更しますか?"),
)
CALLED_OFF = re.compile(r"The order is cancelled\.|ご注文をキャンセルしました。")
ABSENT = re.compile(r"There is no ([^.]*) on your order\.|ご注文に([^。]*)はありません。")
WHICH = re.compile(r"Which one: ([^?]*)\?|どちらですか、([^?]*)\?")
MORE = re.compile(
    r"\bmore\b|another|additional|again|extra one|same|\ba second\b|もう|あと|追加|おかわり|同じ|さっきと|再来|再加|多来|再要"
)
SAME = re.compile(r"same|another|again|one more|otherwise|同じ|もう[一1]つ|もうひとつ")
ALL = re.compile(r"\ball\b|both|everything|whole|全部|すべて|両方|全て|都")
LATER = re.compile(
    r"actually|wait|sorry|\bno\b|not|instead|rather|mean|scratch|oops|mistake|thought|forget|skip|cancel|never"
    r"|じゃなく|でなく|ではなく|やっぱり|違|いや|いえ|すみません|ごめん|間違|待って|不要|代わり|やめ"
)
"""Words with which guests correct themselves, so that not everything they name is wanted."""
ORDINALS = "first|second|third|fourth|fifth|sixth|seventh|eighth".split("|")
ORDINALS_JA = "一つ目|二つ目|三つ目|四つ目|五つ目|六つ目|七つ目|八つ目".split("|")
ORDINALS_ZH = "第一|第二|第三|第四|第五|第六|第七|第八".split("|")
NUMBERED = re.compile(r"\b(?:number|line|item) ([1-9][0-9]?)\b|([1-9][0-9]?)番")
LAST = re.compile(r"\blast (?:one|thing|item)\b|最後の")
POINTING = re.compile(r"\b(?:it|that|those|them|these|that one)\b|それ|これ|今の|さっきの")


@value
class Reply:
    """The content of a reply: the lines that it removes, changes and adds (number 0), and whether it closes the order."""

    off: tuple[OrderLine, ...] = ()
    now: tuple[OrderLine, ...] = ()
    new: tuple[OrderLine, ...] = ()
    status: str = ""
    rest: str = ""

    @property
    def lines(self) -> tuple[OrderLine, ...]:
        """All lines in the reply."""
        return (*self.off, *self.now, *self.new)


@lru_cache(64)
def read_reply(text: str) -> Reply:
    """Parse a reply, or the beginning of one up to the end of a sentence.

    >>> read_reply("Now: 2 grande lattes (iced). Anything else?").now
    (OrderLine(number=0, name='latte', size='grande', quantity=2, options=('iced',)),)
    """
    for line, body in _patterns():
        if (found := body.match(text)) and found.end():
            off, now, new = (_lines(line, found[part] or "") for part in ("off", "now", "new"))
            rest = text[found.end() :]
            return Reply(off, now, new, CONFIRMED if TOTAL.match(MISSING.sub("", rest, count=1)) else "", rest)
    status = CONFIRMED if TOTAL.match(text) else CANCELLED if CALLED_OFF.match(text) else ""
    return Reply(status=status, rest=text)


@lru_cache(1)
def _patterns() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    """Return for each language the pattern of a line, and that of the sentences with lines."""
    dishes, sizes = shown("dishes"), shown("sizes")
    english = rf"(?P<n>{QUANTITY}) (?:(?P<s>{_any(SIZES)}) )?(?P<d>{_any(MENU)})(?:es|s)?(?: \((?P<o>[^()]*)\))?"
    japanese = rf"(?:(?P<s>{_any(sizes.values())})の)?(?P<d>{_any(dishes.values())})(?P<n>{QUANTITY})[つ杯個](?:\((?P<o>[^()]*)\))?"
    english_list, japanese_list = (re.sub(r"\?P<\w>", "?:", each) for each in (english, japanese))
    english_list = rf"{english_list}(?:(?:, | and ){english_list})*"
    japanese_list = rf"{japanese_list}(?:[、と]{japanese_list})*"
    return (
        (
            re.compile(english),
            re.compile(
                rf"(?:Taken off: (?P<off>{english_list})\.(?: |\Z))?(?:Now: (?P<now>{english_list})\.(?: |\Z))?"
                rf"(?:(?P<new>{english_list})\.(?: |\Z))?"
            ),
        ),
        (
            re.compile(japanese),
            re.compile(
                rf"(?:(?P<off>{japanese_list})を取り消しました。)?(?:(?P<now>{japanese_list})に変更しました。)?"
                rf"(?:(?P<new>{japanese_list})ですね。)?"
            ),
        ),
    )


def _any(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


def _lines(pattern: re.Pattern[str], text: str) -> tuple[OrderLine, ...]:
    names = {said: name for name, said in shown("dishes").items()}
    sizes = {said: name for name, said in shown("sizes").items()}
    return tuple(
        OrderLine(
            0, names.get(found["d"], found["d"]), sizes.get(found["s"] or "", found["s"] or ""), int(found["n"]),
            tuple(_option(each) for each in re.split(", |、", found["o"] or "") if each),
        )
        for found in pattern.finditer(text)
    )  # fmt: skip


def _option(said: str) -> str:
    """Return an option as the state stores it."""
    if said.isascii():
        return said
    names = {word: name for name, word in shown("options").items()}
    if said in names:
        return names[said]
    for ending, measure in MEASURES_JA.items():
        if said.endswith(ending):
            return f"{measure} {names.get(said.removesuffix(ending), said)}"
    word = said.rstrip("0123456789")
    return f"{said[len(word) :]} {names.get(word, word)}".strip()


# --- the effect of a reply --------------------------------------------------------------------------------------------


def find_changes(order: Order, reply: Reply) -> list[Changes]:
    """Return the possible effects of a reply on the lines of an order; empty if it fits none."""
    gone: list[int] = []
    for line in reply.off:
        at = next((each.number for each in order.lines if each.number not in gone and _same(each, line)), None)
        if at is None:
            return []
        gone.append(at)
    start = max((line.number for line in order.lines), default=0) + 1
    found: list[Changes] = []
    for numbers, added in _placings(order, reply.now, gone, start):
        changes: dict[int, OrderLine | None] = dict.fromkeys(gone)
        changes |= {number: replace(line, number=number) for number, line in zip(numbers, reply.now, strict=True)}
        first = start + added
        changes |= {at: replace(line, number=at) for at, line in enumerate(reply.new, first)}
        found.append(dict(sorted(changes.items())))
    if reply.status == CANCELLED:
        return [dict.fromkeys(line.number for line in order.lines)]
    return found


def _same(one: OrderLine, other: OrderLine) -> bool:
    return replace(one, number=0) == replace(other, number=0)


def _placings(
    order: Order, lines: Sequence[OrderLine], gone: Sequence[int], start: int
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the possible numbers of changed lines, with the quantity of new ones among them."""
    if not lines:
        yield (), 0
        return
    if len(lines) == 2 and lines[0].name == lines[1].name:  # one of several becomes a different item
        for line in order.lines:
            is_left = _same(replace(line, quantity=lines[0].quantity), lines[0])
            if line.number not in gone and is_left and line.quantity == lines[0].quantity + lines[1].quantity:
                yield (line.number, start), 1
                return
    free = [line for line in order.lines if line.number not in gone]
    if len(lines) > len(free):
        return
    choices = [_homes(free, line) for line in lines]
    best: dict[int, tuple[int, list[tuple[int, ...]]]] = {0: (0, [()])}
    for line, homes in zip(lines, choices, strict=True):
        best = _placed_next(best, line, homes)
    least = min((distance for distance, _ in best.values()), default=0)
    yield from ((each, 0) for each in sorted(each for far, all_ in best.values() if far == least for each in all_))


def _placed_next(
    best: Mapping[int, tuple[int, list[tuple[int, ...]]]], line: OrderLine, homes: Iterable[OrderLine]
) -> dict[int, tuple[int, list[tuple[int, ...]]]]:
    """Return, by the number of the last line, the smallest distance with one more line, and the numbers that have it."""
    found: dict[int, tuple[int, list[tuple[int, ...]]]] = {}
    for home in homes:
        before = [each for last, each in best.items() if last < home.number]
        if before:
            least = min(distance for distance, _ in before)
            numbers = [(*each, home.number) for distance, all_ in before if distance == least for each in all_]
            found[home.number] = (least + _distance(home, line), numbers[:MOST_PLACINGS])
    return found


def _homes(free: Sequence[OrderLine], line: OrderLine) -> Sequence[OrderLine]:
    """Return the lines that a changed one may have been: those of its dish, or any."""
    return [each for each in free if each.name == line.name] or free


def _distance(old: OrderLine, new: OrderLine) -> int:
    if old.name != new.name:
        return 0
    options = len(set(old.options) ^ set(new.options))
    return 1 + (old.size != new.size) + (old.quantity != new.quantity) + min(options, 3) if not _same(old, new) else 9


def likeliest_changes(order: Order, said: str, text: str) -> Changes | None:
    """Return the effect of a reply on the lines of an order, as the guest's text suggests; None if it fits no line."""
    reply, heard = read_reply(text), Heard.of(order, said)
    possible = find_changes(order, reply)
    return min(possible, key=lambda each: _weight(list(_judged(order, heard, reply, each)))) if possible else None


def ask_back(order: Order, said: str) -> str:
    """Return the question what to change, or what to order if nothing is ordered, in the language of the guest."""
    return ASKED_BACK[bool(order.lines)][bool(KANA.search(said))]


def opens_sum(text: str) -> bool:
    """Return true if a sum of prices follows the beginning of a reply."""
    return text.endswith(SUMS)


def after_sum(order: Order, text: str) -> str | None:
    """Return the rest of a reply that ends in a sum of prices; None for any other text.

    >>> after_sum(Order(), "The total is <<calculator: 2*4.2>> 8.4")
    ' dollars. Thank you!'
    """
    found = SUMMED.search(text)
    if found is None:
        return None
    is_open = order.status != CONFIRMED
    return {
        SUMS[0]: " dollars. Thank you!", SUMS[1]: "ドルです。ありがとうございます!",
        SUMS[2]: " dollars." + is_open * " Anything else?", SUMS[3]: "ドルです。" + is_open * "ほかにはいかがですか?",
    }[found[1]]  # fmt: skip


def write_delta(order: Order, reply: Reply, changes: Changes) -> str:
    """Write the state delta of a reply with these changes."""
    delta: dict[str, Json] = {}
    if changes:
        delta["items"] = {str(number): None if line is None else _entry(line) for number, line in changes.items()}
    status = reply.status or (OPEN if changes and order.status != OPEN else "")
    if status:
        delta["status"] = status
    return json.dumps(delta, ensure_ascii=False, separators=(",", ":"))


def _entry(line: OrderLine) -> dict[str, Json]:
    size: dict[str, Json] = {"size": line.size} if line.size else {}
    return {"name": line.name, **size, "quantity": line.quantity, "options": list(line.options)}


def sum_of(order: Order, changes: Changes) -> str:
    """Return the expression of the prices of an order after some changes."""
    after = {line.number: line for line in order.lines} | dict(changes)
    return "+".join(f"{line.quantity}*{MENU[line.name]}" for _, line in sorted(after.items()) if line is not None)


# --- objections to a reply --------------------------------------------------------------------------------------------

HARD, SOFT, SLIGHT = 4.0, 2.0, 1.0
"""The weights of faults: contradictions to the order, statements that the guest did not make, and doubtful ones."""


def faults(order: Order, said: str, text: str) -> Iterator[tuple[str, float]]:
    """Yield the objections to a reply, given the guest's text, with their weights.

    >>> order = Order((OrderLine(1, "latte", "", 2), OrderLine(2, "bagel", "", 1)))
    >>> [why for why, _ in faults(order, "Two more lattes", "Now: 3 lattes. Anything else?")]
    ['quantity 3']
    """
    reply = read_reply(text)
    heard = Heard.of(order, said)
    yield from _tongue(said, text)
    yield from _stray(order, heard, reply.rest)
    possible = find_changes(order, reply)
    if not possible:
        yield "no such line", HARD
        return
    yield from min((list(_judged(order, heard, reply, each)) for each in possible), key=_weight)
    if opens_sum(text) and not any(sum_of(order, each) for each in possible):
        yield "nothing to sum", HARD
    yield from _left_out(order, heard, reply, text)


def weigh(order: Order, said: str, text: str) -> float:
    """Return the total weight of the objections to a reply."""
    return _weight(list(faults(order, said, text)))


def _weight(found: Sequence[tuple[str, float]]) -> float:
    return sum(weight for _, weight in found)


@value
class Heard:
    """What a guest's text names: dishes, sizes and options, counts, and lines of the order by position."""

    said: str
    meanings: tuple[frozenset[Meaning], ...]
    counts: frozenset[int]
    placed: frozenset[int]

    @classmethod
    def of(cls, order: Order, said: str) -> "Heard":
        """Read a guest's text about an order."""
        return cls(said.lower(), find_meanings(said), find_counts(said), frozenset(_placed(order, said.lower())))

    def names(self, kind: str, name: str) -> bool:
        """Return true if some words may mean this."""
        return any((kind, name) in meanings for meanings in self.meanings)

    def of_kind(self, kind: str) -> frozenset[str]:
        """Return all names of a kind that words may mean."""
        return frozenset(name for meanings in self.meanings for of, name in meanings if of == kind)


def _placed(order: Order, said: str) -> Iterator[int]:
    """Yield the numbers of the lines that are referred to by position."""
    for words in (ORDINALS, ORDINALS_JA, ORDINALS_ZH):
        for line, word in zip(order.lines, words, strict=False):
            if re.search(rf"\b{word} (?:one|item|thing)\b" if word.isascii() else word, said):
                yield line.number
    numbers = {line.number for line in order.lines}
    yield from (number for found in NUMBERED.findall(said) if (number := int("".join(found))) in numbers)
    if order.lines and LAST.search(said):
        yield order.lines[-1].number


def _tongue(said: str, text: str) -> Iterator[tuple[str, float]]:
    if bool(KANA.search(said)) != bool(WIDE.search(text)) and (KANA.search(said) or not WIDE.search(said)):
        yield "another language", HARD


def _stray(order: Order, heard: Heard, rest: str) -> Iterator[tuple[str, float]]:
    """Yield the objections to sentences that change nothing."""
    there = Counter(line.name for line in order.lines)
    if found := SO_FAR.search(rest):
        shown_lines = _listed(found[1] or found[2])
        if len(shown_lines) != len(order.lines) or not all(map(_same, shown_lines, order.lines)):
            yield "another order", HARD
    if not _is_known(rest):
        yield "no sentence of the desk", HARD
    if found := ABSENT.search(rest):
        name = found[1] or _name("dishes", found[2])
        if name in there:
            yield f"{name} is there", HARD
        elif not heard.names("dishes", name):
            yield f"no {name} was named", SOFT
    if WHICH.search(rest):
        kept = _asked(rest)
        if len(kept) < 2 or any(not any(_same(line, each) for line in order.lines) for each in kept):
            yield "no such lines to choose from", HARD
        elif len(set(kept)) < len(kept):
            yield "the same line twice", HARD
    for found in MISSING.finditer(rest):
        names = re.split(" or |や", found[1] or found[2])
        for name in names:
            if name.lower()[:4] not in heard.said:
                yield f"no {name} was asked for", SOFT


def _is_known(rest: str) -> bool:
    """Return true if a text consists only of the app's fixed sentences."""
    for pattern in (MISSING, ABSENT, WHICH, SO_FAR, PRICE, SORTS):
        rest = pattern.sub("", rest)
    for sentence in sentences():
        rest = rest.replace(sentence, "")
    return not rest.strip() or opens_sum(rest)


def _listed(text: str) -> tuple[OrderLine, ...]:
    found = read_reply(f"{text}." if text.isascii() else f"{text}ですね。")
    return found.new


def _name(kind: str, word: str) -> str:
    return next((name for name, each in shown(kind).items() if each == word), word)


def _judged(order: Order, heard: Heard, reply: Reply, changes: Changes) -> Iterator[tuple[str, float]]:
    """Yield the objections to these changes."""
    if reply.status == CANCELLED:
        if not REMOVED.search(heard.said):
            yield "nothing was called off", HARD
        return
    before = {line.number: line for line in order.lines}
    for number, line in changes.items():
        old = before.get(number)
        if line is None or old is not None:
            yield from _pointed(order, heard, number)
        if old is not None and _is_one_of_many(order, heard, old, changes):
            yield f"which {old.name}", SOFT
        if line is None:
            if not REMOVED.search(heard.said):
                yield "nothing was taken back", SOFT
            continue
        if len({divide_option(option)[1] for option in line.options}) < len(line.options):
            yield "an option twice", HARD
        if line.name not in drinks() and "iced" in line.options and (old is None or "iced" not in old.options):
            yield f"an iced {line.name}", HARD
        if old is None:
            yield from _added(order, heard, reply, line)
        elif _same(old, line):
            yield "nothing changes", HARD
        else:
            yield from _changed(heard, old, line, changes)
    for name, alike in _by_name(reply.new).items():
        said = sum(("dishes", name) in meanings for meanings in heard.meanings)
        if len(alike) > max(said, 1) and sum(line.quantity for line in alike) not in heard.counts | {len(alike)}:
            yield f"{name} twice", SLIGHT
    if any(_same(one, other) for one in reply.now for other in reply.new):
        yield "a line twice", SOFT
    if any(_same(one, other) for one, other in combinations(reply.now, 2)):
        yield "one change twice", HARD


def _is_one_of_many(order: Order, heard: Heard, line: OrderLine, changes: Changes) -> bool:
    """Return true if the text names a dish of several lines without distinguishing them, and only some of them change."""
    alike = [each.number for each in order.lines if each.name == line.name]
    if len(alike) < 2 or changes.keys() >= set(alike) or not heard.names("dishes", line.name):
        return False
    return not (heard.placed or _is_marked(heard, line) or POINTING.search(heard.said) or SAME.search(heard.said))


def _by_name(lines: Iterable[OrderLine]) -> Mapping[str, list[OrderLine]]:
    found: dict[str, list[OrderLine]] = {}
    for line in lines:
        found.setdefault(line.name, []).append(line)
    return found


def _pointed(order: Order, heard: Heard, number: int) -> Iterator[tuple[str, float]]:
    """Yield a fault if the guest's text refers to other lines than this one."""
    lines = {line.number: line for line in order.lines}
    dishes = heard.of_kind("dishes")
    named = {each.number for each in order.lines if each.name in dishes} | heard.placed
    if ALL.search(heard.said) or number in named or _is_marked(heard, lines[number]):
        return
    if number == order.lines[-1].number and (not named or POINTING.search(heard.said)):
        return
    yield f"line {number} was not named", SOFT


def _is_marked(heard: Heard, line: OrderLine) -> bool:
    """Return true if the text refers to a line by its size or its options: `the iced one`."""
    options = {divide_option(option)[1] for option in line.options} | set(line.options)
    return bool(options & heard.of_kind("options")) or line.size in heard.of_kind("sizes")


def _added(order: Order, heard: Heard, reply: Reply, line: OrderLine) -> Iterator[tuple[str, float]]:
    like = [each for each in order.lines if each.name == line.name] if SAME.search(heard.said) else []
    split = any(each.name == line.name for each in reply.now)
    if not heard.names("dishes", line.name) and not like and not split:
        yield f"no {line.name} was named", SOFT
    if (
        line.size
        and not heard.names("sizes", line.size)
        and not any(each.size == line.size for each in (*like, *reply.now))
    ):
        yield f"no {line.size} was named", SOFT
    inherited = {option for each in (*like, *(reply.now if split else ())) for option in each.options}
    for option in line.options:
        if option not in inherited:
            yield from _wished(heard, option)
    if split:
        return
    counts = heard.counts | {1}
    differences = {one - other for one in counts for other in counts}
    if line.quantity not in counts | differences:
        yield f"quantity {line.quantity}", SOFT
    elif line.quantity not in counts:
        yield f"quantity {line.quantity}", SLIGHT / 2


def _wished(heard: Heard, option: str) -> Iterator[tuple[str, float]]:
    measure, name = divide_option(option)
    if not (heard.names("options", name) or heard.names("options", option) or heard.names("dishes", name)):
        yield f"no {option} was named", SOFT
    elif measure.isdigit() and int(measure) not in heard.counts | ({2} if "double" in heard.said else set()) | (
        {3} if "triple" in heard.said else set()
    ):
        yield f"no {measure} were named", SLIGHT


def divide_option(option: str) -> tuple[str, str]:
    """Split an option into its amount or number and its name."""
    measure, _, name = option.partition(" ")
    return (measure, name) if name in COUNTED and (measure in MEASURES or measure.isdigit()) else ("", option)


def _changed(heard: Heard, old: OrderLine, line: OrderLine, changes: Changes) -> Iterator[tuple[str, float]]:
    if old.name != line.name:
        if not heard.names("dishes", line.name):
            yield f"no {line.name} was named", SOFT
        if line.size and not heard.names("sizes", line.size):
            yield f"no {line.size} was named", SOFT
        for option in line.options:
            yield from _wished(heard, option)
        if line.quantity not in heard.counts | {1, old.quantity}:
            yield f"quantity {line.quantity}", SOFT
        return
    if old.size != line.size and not heard.names("sizes", line.size):
        yield f"no {line.size or 'size'} was named", SOFT
    for option in line.options:
        if option not in old.options:
            yield from _wished(heard, option)
    for option in old.options:
        if (
            option not in line.options
            and not heard.names("options", divide_option(option)[1])
            and not _displaced(option, line)
        ):
            yield f"{option} was not taken back", SOFT
    if line.quantity == old.quantity > 1 and ONE_OF.search(heard.said):
        yield "all of them", SOFT
    if line.quantity != old.quantity:
        added = (heard.counts or {1}) | ({1} if ONE_MORE.search(heard.said) else set[int]())
        more = {old.quantity + count for count in added} | {2 * old.quantity}
        split = any(
            other is not None and number != line.number and other.name == line.name for number, other in changes.items()
        )
        fewer = {old.quantity - 1} if FEWER.search(heard.said) else set[int]()
        if MORE.search(heard.said) and line.quantity < old.quantity:
            yield f"quantity {line.quantity}", SLIGHT
        said = heard.counts if split or not MORE.search(heard.said) else more
        if line.quantity not in said | fewer:
            yield f"quantity {line.quantity}", SLIGHT if line.quantity in heard.counts else SOFT


def _displaced(option: str, line: OrderLine) -> bool:
    """Return true if another milk, or another temperature, replaces an option."""
    return any(
        option in names and any(each in names for each in line.options)
        for names in (MILKS.split("|"), TEMPERATURES.split("|"))
    )


def _left_out(order: Order, heard: Heard, reply: Reply, text: str) -> Iterator[tuple[str, float]]:
    """Yield what the guest named and the reply omits."""
    weight = SLIGHT / 2 if LATER.search(heard.said) else SLIGHT
    lines = (*reply.lines, *_asked(reply.rest))
    before = {line.name for line in order.lines}
    names = {line.name for line in lines}
    renamed = any(line.name not in before for line in reply.now)
    for meanings in heard.meanings:
        kinds = {kind for kind, _ in meanings}
        if kinds == {"dishes"}:
            here = {name for _, name in meanings}
            if not here & names and not (renamed and here & before) and not any(_shown(name, text) for name in here):
                yield f"nothing of {min(here)}", weight
        elif reply.lines and kinds == {"sizes"}:
            if not {name for _, name in meanings} & {line.size for line in (*lines, *order.lines)}:
                yield f"nothing of {min(meanings)[1]}", weight
        elif reply.lines and not _contains(meanings, (*lines, *order.lines)):
            yield f"nothing of {min(meanings)[1]}", weight
    if reply.off or reply.now:
        touched = {number for changes in find_changes(order, reply) for number in changes}
        yield from ((f"nothing of line {number}", SOFT) for number in heard.placed - touched)
    if reply.lines and not MISSING.search(reply.rest):
        used = set(_numbers(order, reply, lines))
        for count in heard.counts - {1}:
            if not any(
                count in (each, each - each % 10, each % 10) or each in (6 * count, 12 * count) for each in used
            ):
                yield f"nothing of {count}", weight


def _numbers(order: Order, reply: Reply, lines: Sequence[OrderLine]) -> Iterator[int]:
    """Yield the numbers that the lines account for."""
    for line in lines:
        yield line.quantity
        yield from (int(measure) for option in line.options if (measure := divide_option(option)[0]).isdigit())
    if reply.off or reply.now:
        yield from (old.quantity for old in order.lines)
        yield from (abs(line.quantity - old.quantity) for line in lines for old in order.lines if old.name == line.name)
    yield from (sum(line.quantity for line in each) for each in _by_name((*reply.now, *reply.new)).values())


def _asked(rest: str) -> tuple[OrderLine, ...]:
    found = WHICH.search(rest)
    if not found:
        return ()
    asked = re.split(" or ", found[1]) if found[1] else re.split("(?<=[つ杯個)])か", found[2])
    return tuple(line for each in asked for line in _listed(each))


def _shown(name: str, text: str) -> bool:
    return name in text.lower() or shown("dishes")[name] in text


def _contains(meanings: frozenset[Meaning], lines: Sequence[OrderLine]) -> bool:
    """Return true if some line has one of these options, sizes or dishes."""
    for line in lines:
        options = {divide_option(option)[1] for option in line.options} | set(line.options)
        if any(name in options or name in (line.name, line.size) for _, name in meanings):
            return True
    return False
