"""Replies derived from the guest's text, in the fixed sentences of the app, and the choice among them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from taiwa.models.builtin.network import Network
from taiwa.models.builtin.order_app import MAX_LINES, MAX_NEW_LINES, MAX_OPTIONS, MENU, Order, OrderLine
from taiwa.models.builtin.order_grammar import EXCLUSIVE, Draft, read_meanings
from taiwa.models.builtin.order_reply import MEASURES_JA, SO_FAR, Changes, ask_back, divide_option, read_reply
from taiwa.models.builtin.order_words import KANA, asks_to_undo, drinks, find_counts, find_meanings, shown
from taiwa.models.builtin.tokenizer import Tokens

SENTENCES: Final = {
    "en": {
        "off": "Taken off: {x}.", "now": "Now: {x}.", "new": "{x}.", "lacking": "Sorry, we have no {x}.", "total": "The total is ",
        "cancelled": "The order is cancelled.", "which": "Which one: {x}?", "absent": "There is no {x} on your order.",
        "more": "Anything else?", "gone": "Nothing is ordered now. What would you like?", "none": "What would you like?",
    },
    "ja": {
        "off": "{x}を取り消しました。", "now": "{x}に変更しました。", "new": "{x}ですね。", "lacking": "申し訳ありませんが、{x}はございません。", "total": "合計は",
        "cancelled": "ご注文をキャンセルしました。", "which": "どちらですか、{x}?", "absent": "ご注文に{x}はありません。",
        "more": "ほかにはいかがですか?", "gone": "ご注文はなくなりました。何になさいますか?", "none": "何になさいますか?",
    },
}  # fmt: skip
PRICED = re.compile(
    r"(?P<yes>Yes, )?[A-Za-z ]+: [0-9.]+ dollars\.|(?P<yes_ja>はい、)?[^。、]+は[0-9.]+ドルです。(?!ありがとう)"
)
KEPT = re.compile(
    r"\b(?:don['’]?t|do not|never) (?:remove|cancel|delete|drop|take (?:[a-z]+ ){0,4}(?:off|away|out))\b|"
    r"\b(?:put|add|bring|want|have|get)\b(?! rid\b)(?:(?!\b(?:take|send)\b)[^.!?])*\bback\b|(?:取り消さ|キャンセルし|消さ|外さ)ないで|(?:不要|别|不用)(?:取消|删|去掉)"
)
"""Words that do not remove anything although they mention a removal, or that restore something: the reply asks what they mean."""
OPENING = (
    r"(?:(?:great|ok(?:ay)?|perfect|lovely|super|nice|cool|al(?:l ?)?right|oh|well|many|thanks?(?: you)?)[,.! ]+)*"
)
COURTESIES = (
    (
        re.compile(
            rf"{OPENING}(?:thanks?(?: you)?(?: (?:so|very) much| a lot| again)?|thx|cheers)[.! ]*"
            r"|(?:どうも)?(?:ありがとう(?:ございま(?:す|した))?|サンキュー)ね?[。!! ]*",
            re.IGNORECASE,
        ),
        ("You are welcome!", "どういたしまして!"),
    ),
    (
        re.compile(
            rf"{OPENING}(?:good ?bye|bye(?:[ -]?bye)?|see you(?: later| soon| tomorrow)?)[.! ]*"
            r"|(?:さようなら|さよなら|バイバイ|じゃあ?またね?)[。!! ]*",
            re.IGNORECASE,
        ),
        ("Goodbye!", "またお越しください!"),
    ),
    (
        re.compile(
            r".*\b(?:quoi|qu['’]est-ce|quel(?:le)?s?|combien|welche[rnms]?|wie ?viel|was (?:habt|haben|kostet)|qué|cuánto|quanto|avete)\b.*",
            re.IGNORECASE,
        ),
        ("I speak English and Japanese. What would you like?", "英語と日本語で承ります。何になさいますか?"),
    ),
)
"""Texts that order nothing, with their replies in English and Japanese: thanks, a goodbye, a question in a language it cannot answer."""
NO_PLURAL, LONG_PLURAL = "cakes", ("ch", "sh", "s")
HESITANT = r"(?:(?:no|oh|oops|wait|sorry|hmm+|um+|uh|hey|ok(?:ay)?|please|actually|but|and|you know what|やっぱり|やっぱ|すみません|ごめんなさい|あの|いや|いえ|えっと|あ)[,.!、。 ]+|やっぱり?)*"
END = r"(?:[, ]*(?:instead|then|now|please|thanks|thank you|if (?:possible|you can)))*[.! ]*"
END_JA = r"(?:で)?(?:いい|お願い|おねがい|ください|下さい|いただけますか|もらえますか|ほしい|大丈夫|結構|けっこう)?(?:です|します|致します)?[ねよ。! ]*"
SHORT_OF = {
    "afresh": rf"{HESITANT}(?:(?:let's|let us|let me|can (?:we|i)|could (?:we|i)|i(?:'d like| want) to|i'll) )?(?:start|begin) (?:over|again|afresh|from scratch|all over(?: again)?){END}\??"
    rf"|{HESITANT}(?:最初|さいしょ|はじめ|始め|一|いち)から(?:やり直|やりなお)(?:し|す|させ).*",
    "count": rf"{HESITANT}(?:(?:i|we) )?(?:(?:only|just) (?:want |need )?|(?:want|need) (?:only|just) |meant? )(?P<n>[a-z]+|[0-9]+)(?: of (?:them|those|these|it|that))?{END}"
    rf"|{HESITANT}(?P<n_ja>[0-9一二三四五六七八九十]+|ひと|ふた|み|みっ|よっ)(?:つ|個|こ|杯)だけ{END_JA}",
    "fewer": rf"{HESITANT}(?:(?:can|could) you )?(?:remove|cancel|drop|delete|scratch|lose|take (?:off|away|out|back)) (?P<n>[a-z]+|[0-9]+)(?: of)?(?: (?:the|my|our|those))? (?P<what>[a-z' -]+?){END}"
    rf"|{HESITANT}(?:(?:can|could) you )?take (?P<n_off>[a-z]+|[0-9]+)(?: of)?(?: (?:the|my|our|those))? (?P<what_off>[a-z' -]+?) (?:off|away|out|back){END}"
    rf"|{HESITANT}(?P<n_less>[a-z]+|[0-9]+) (?P<what_less>[a-z' -]+?) (?:less|fewer){END}|{HESITANT}(?P<n_fewer>[a-z]+|[0-9]+) (?:less|fewer) (?P<what_fewer>[a-z' -]+?){END}",
    "meant": rf"{HESITANT}(?:i (?:meant|mean|wanted)(?: to (?:say|order))?|make (?:that|it)|i should have said) (?P<what>[^,;.]+?)(?:,? not .+)?{END}",
    "milk": rf"{HESITANT}(?:(?:can|could) you )?(?:change|switch|swap|exchange|replace|trade) (?:the |that |its |my |their )?(?P<old>[a-z0-9%' -]*?milk|milk) (?:to|for|with|into) (?P<what>[a-z0-9%' -]+?){END}\??"
    rf"|{HESITANT}(?:(?:can|could) you )?(?:with|use|using|make (?:that|it)(?: with)?|i'd like|i want) (?P<what_use>[a-z0-9%' -]+?)(?: milk)? instead{END}\??"
    rf"|{HESITANT}(?:(?P<old_ja>[^をに、。]+)(?:を|じゃなくて?|ではなくて?|の代わりに))?(?P<what_ja>[^をに、。]+?)に(?:変えて|かえて|変更して|変更|代えて|替えて|して){END_JA}",
}
SHORT: Final = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in SHORT_OF.items()}
"""Texts that are one correction and nothing else: of the whole order, of the last or only line, or of a kind of milk."""


def meant_replies(order: Order, said: str, before: Order | None = None) -> Mapping[str, tuple[float, Changes]]:
    """Return the possible replies to a guest's text, with the cost of each reading and the resulting changes.

    `before` is the order before its last change; if it is unknown, a request to undo that change becomes a clarifying question.
    """
    if KEPT.search(said.lower()):
        return {ask_back(order, said): (0.0, {})}
    if (reply := _courtesy(said)) is not None:
        return {reply: (0.0, {})}
    if asks_to_undo(said):
        return dict([_undone(order, said, order if before is None else before)])
    if order.lines and (draft := _corrected(order, said)) is not None:
        return {draft_reply(order, said, draft): (0.0, _changes(order, draft))}
    found: dict[str, tuple[float, Changes]] = {}
    for cost, draft in read_meanings(order, said):
        if _is_small(order, draft):
            found.setdefault(draft_reply(order, said, draft), (cost, _changes(order, draft)))
    return found


def _courtesy(said: str) -> str | None:
    """Return the reply to a text that orders nothing, in the language of the guest.

    >>> _courtesy("Great, thanks!"), _courtesy("2 teas, thanks")
    ('You are welcome!', None)
    """
    found = next((replies for pattern, replies in COURTESIES if pattern.fullmatch(said.strip())), None)
    return found and found[bool(KANA.search(said))]


def _undone(order: Order, said: str, before: Order) -> tuple[str, tuple[float, Changes]]:
    """Return the reply that restores the previous order, and the changes."""
    now, then = ({line.number: line for line in each.lines} for each in (order, before))
    changes = {number: then.get(number) for number in sorted(now | then) if then.get(number) != now.get(number)}
    if not changes:
        return ask_back(order, said), (0.0, {})
    old = tuple(then.get(line.number) for line in order.lines)
    new = tuple(line for line in before.lines if line.number not in now)
    return draft_reply(order, said, Draft("", old=old, new=new)), (0.0, changes)


def _corrected(order: Order, said: str) -> Draft | None:
    """Return the changes of a text that is one short correction; None if it is not, or may mean several lines.

    >>> order = Order((OrderLine(1, "latte", "", 2, ("oat milk",)),))
    >>> _corrected(order, "Change the milk to soy, please").old[0].options, _corrected(order, "actually only one").old[0].quantity
    (('soy milk',), 1)
    """
    said = " ".join(said.replace("’", "'").split())
    found = {name: match for name, pattern in SHORT.items() if (match := pattern.fullmatch(said))}
    if "afresh" in found:
        return Draft("", cancelled=True)
    for name, match in found.items():
        heard = {part.partition("_")[0]: text for part, text in match.groupdict().items() if text}
        at, line = _CORRECTIONS[name](order, heard)
        if at >= 0 and line != order.lines[at]:
            return Draft("", old=(*order.lines[:at], line, *order.lines[at + 1 :]))
    return None


Corrected: TypeAlias = tuple[int, OrderLine | None]
"""The place of a line, and the line as corrected; -1 if no line is meant."""
NONE: Final[Corrected] = (-1, None)


def _count(heard: Mapping[str, str]) -> int:
    counts = find_counts(heard["n"] + "つ" * (not heard["n"].isascii() and not heard["n"].endswith("つ")))
    return next(iter(counts)) if len(counts) == 1 else 0


def _to_count(order: Order, heard: Mapping[str, str]) -> Corrected:
    count = _count(heard)
    return (len(order.lines) - 1, replace(order.lines[-1], quantity=count)) if count and len(order.lines) == 1 else NONE


def _by_count(order: Order, heard: Mapping[str, str]) -> Corrected:
    count, meanings = _count(heard), find_meanings(heard["what"])
    places = [at for at, line in enumerate(order.lines) if any(("dishes", line.name) in each for each in meanings)]
    if not count or len(meanings) != 1 or len(places) != 1 or order.lines[places[0]].quantity < count:
        return NONE
    line = order.lines[places[0]]
    return places[0], replace(line, quantity=line.quantity - count) if line.quantity > count else None


def _to_dish(order: Order, heard: Mapping[str, str]) -> Corrected:
    readings = read_meanings(Order(), heard["what"])
    if not readings or readings[0][0] > 2 * CERTAIN or len(readings[0][1].new) != 1 or "the " in f"{heard['what']} ":
        return NONE
    line, last = readings[0][1].new[0], order.lines[-1]
    if any(line.name == each.name for each in order.lines):
        return NONE
    quantity = line.quantity if find_counts(heard["what"]) else last.quantity
    return len(order.lines) - 1, replace(line, number=last.number, quantity=quantity)


def _to_milk(order: Order, heard: Mapping[str, str]) -> Corrected:
    milk = _milk(heard["what"])
    old = _milk(heard["old"]) if "old" in heard else ""
    milks = frozenset((old,)) if old else EXCLUSIVE[0]
    with_milk = [(at, option) for at, line in enumerate(order.lines) for option in line.options if option in milks]
    if not milk or len(with_milk) != 1:
        return NONE
    at, gone = with_milk[0]
    line = order.lines[at]
    return at, replace(line, options=tuple(milk if option == gone else option for option in line.options))


def _milk(words: str) -> str:
    """Return the kind of milk that words name; "" if they name none, or something else too."""
    meanings = find_meanings(words)
    named = (
        {name for kind, name in meanings[0] if kind == "options" and name in EXCLUSIVE[0]} if len(meanings) == 1 else ()
    )
    return next(iter(named)) if len(named) == 1 else ""


_CORRECTIONS: Final[Mapping[str, Callable[[Order, Mapping[str, str]], Corrected]]] = {
    "count": _to_count, "fewer": _by_count, "meant": _to_dish, "milk": _to_milk,
}  # fmt: skip


def _is_small(order: Order, draft: Draft) -> bool:
    """Return true if the state has room for a draft."""
    added = len(draft.new) + len(draft.split)
    last = max((line.number for line in order.lines), default=0) + added
    lines = (*filter(None, draft.old), *draft.split, *draft.new)
    return added <= MAX_NEW_LINES and last <= MAX_LINES and all(len(line.options) <= MAX_OPTIONS for line in lines)


def _changes(order: Order, draft: Draft) -> Changes:
    if draft.which or draft.absent or draft.odd:
        return {}
    if draft.cancelled:
        return dict.fromkeys(line.number for line in order.lines)
    changes: dict[int, OrderLine | None] = {
        line.number: after
        for at, (line, after) in enumerate(zip(order.lines, draft.old, strict=True))
        if after != line or at in draft.kept
    }
    start = max((line.number for line in order.lines), default=0) + 1
    return {
        number: line and replace(line, number=number)
        for number, line in (*changes.items(), *enumerate((*draft.split, *draft.new), start))
    }


def draft_reply(order: Order, said: str, draft: Draft) -> str:
    """Write the reply that describes the changes of an order, up to the call of a sum."""
    code = "ja" if KANA.search(said) else "en"
    if draft.odd:
        return ask_back(order, said)
    if draft.cancelled:
        return SENTENCES[code]["cancelled"]
    if draft.which:
        return _fill(code, "which", _listed(code, draft.which, choice=True))
    if draft.absent:
        name = draft.absent if code == "en" else shown("dishes")[draft.absent]
        return (
            _fill(code, "absent", name)
            + (" " if code == "en" else "")
            + SENTENCES[code]["more" if order.lines else "none"]
        )
    off = [line for line, after in zip(order.lines, draft.old, strict=True) if after is None]
    now = [
        after
        for at, (line, after) in enumerate(zip(order.lines, draft.old, strict=True))
        if after is not None and (after != line or at in draft.kept)
    ]
    said_lines = {"off": off, "now": [*now, *draft.split], "new": draft.new}
    parts = [_fill(code, name, _listed(code, lines)) for name, lines in said_lines.items() if lines]
    if draft.lacking:
        parts.append(_fill(code, "lacking", (" or " if code == "en" else "や").join(draft.lacking)))
    left = any(draft.old) or draft.new or draft.split
    ending = "total" if draft.done and left else "more" if left else "gone" if off else "none"
    return (" " if code == "en" else "").join((*parts, SENTENCES[code][ending]))


def settle(order: Order, said: str, text: str) -> str:
    """Return a reply of the network, completed with known facts: the lines of the order, and the price of the named dish.

    >>> settle(Order((OrderLine(1, "latte", "", 2),)), "what did i order", "So far: 3 lattes. Anything else?")
    'So far: 2 lattes. Anything else?'
    """
    if order.lines and (found := SO_FAR.search(text)):
        start, end = found.span(1 if found[1] else 2)
        return text[:start] + _listed("en" if found[1] else "ja", order.lines) + text[end:]
    dishes = {name for meanings in find_meanings(said) for kind, name in meanings if kind == "dishes"}
    found = PRICED.match(text)
    if found is None or len(dishes) != 1:
        return text
    (name,) = dishes
    if not text.isascii():
        return f"{found['yes_ja'] or ''}{shown('dishes')[name]}は{MENU[name]}ドルです。{text[found.end() :]}"
    yes = found["yes"] or ""
    return f"{yes}{name if yes else name.capitalize()}: {MENU[name]} dollars.{text[found.end() :]}"


def _fill(code: str, name: str, words: str) -> str:
    return SENTENCES[code][name].replace("{x}", words)


def _listed(code: str, lines: Sequence[OrderLine], *, choice: bool = False) -> str:
    joint, last = (", ", " or " if choice else " and ") if code == "en" else ("、", "か" if choice else "と")
    *others, final = map(_english if code == "en" else _japanese, lines)
    return joint.join(others) + (last if others else "") + final


def _english(line: OrderLine) -> str:
    several = line.quantity > 1 and not line.name.endswith(NO_PLURAL)
    ending = "es" if line.name.endswith(LONG_PLURAL) else "s"
    options = f" ({', '.join(line.options)})" if line.options else ""
    return f"{line.quantity} {line.size + ' ' if line.size else ''}{line.name}{ending if several else ''}{options}"


def _japanese(line: OrderLine) -> str:
    size = f"{shown('sizes')[line.size]}の" if line.size else ""
    unit = "つ" if line.quantity < 10 else "杯" if line.name in drinks() else "個"
    said = {english: japanese for japanese, english in MEASURES_JA.items()}
    options = [
        (shown("options")[name], said.get(measure, measure)) for measure, name in map(divide_option, line.options)
    ]
    behind = f"({'、'.join(map(''.join, options))})" if options else ""
    return f"{size}{shown('dishes')[line.name]}{line.quantity}{unit}{behind}"


MARGIN, MOST = 1.0, 6
"""How much more expensive than the cheapest reading an alternative may be, and how many are compared."""
CERTAIN: Final = 0.35
"""A reading of at most this cost is unambiguous if every other one costs half of `MARGIN` more."""
PRICE, FAULTY = 10.0, 3.0
"""The weights of the cost of a reading, and of a fault of weight 1, relative to a log probability."""
UNMEANT, UNMEANT_TALK = 14.0, 4.0
"""The penalty of a reply that no reading of the text yields: for replies with order lines, and for others."""


def choose_reply(
    network: Network, tokens: Tokens, prompt: Sequence[int], first: str, faults: float, meant: Mapping[str, float]
) -> str:
    """Return the reply that a guest's text calls for: the most likely of several, or `first`, which the network wrote.

    `meant` has the replies that the text may call for with the costs of their readings, and `faults` is the weight of the
    objections to `first`. The network is consulted only if the text leaves a choice.
    """
    if not meant:
        return first
    least = min(meant.values())
    near = {text: cost for text, cost in meant.items() if cost <= least + MARGIN}
    if near.keys() == {first}:
        return first
    if least <= CERTAIN and sum(cost <= least + MARGIN / 2 for cost in near.values()) == 1:
        return min(near, key=lambda text: near[text])
    costs = {text: PRICE * near[text] for text in sorted(near, key=lambda text: near[text])[:MOST]}
    unmeant = UNMEANT if read_reply(first).lines else UNMEANT_TALK
    costs.setdefault(first, PRICE * least + unmeant + FAULTY * faults)
    found = {text: _log_probability(network, tokens, prompt, text) - cost for text, cost in costs.items()}
    return max(found, key=lambda text: found[text])


def _log_probability(network: Network, tokens: Tokens, prompt: Sequence[int], text: str) -> float:
    written = tokens.encode(text.rstrip())
    if not written or len(prompt) + len(written) > network.context:
        return float("-inf")
    return float(network.log_probabilities(prompt, written).sum())
