"""The guests' words for dishes, sizes and options, which of them a text contains, and the meanings of each run of words for the
order grammar.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, TypeAlias

from taiwa.models.builtin.copy_constraint import find_numbers
from taiwa.models.builtin.tokenizer import builtin_tokens

Meaning: TypeAlias = tuple[str, str]
"""A kind (`dishes`, `sizes`, `options`) and a name."""

LATIN = re.compile(r"[a-z0-9\u00df-\u00ff%'&]+")
FOREIGN = re.compile(r"[^\x00-\u024f]")
LONG_ENOUGH = 4
"""The shortest word to correct: a slip in a shorter one may make another word."""
MOST_WORDS = 6
SPOKEN: Final = {
    word: number
    for number, word in enumerate("ひとつ|ふたつ|みっつ|よっつ|いつつ|むっつ|ななつ|やっつ|ここのつ".split("|"), 1)
}
NO_COUNT = re.compile(
    r"\bhalf\b(?! (?:a )?dozen)|[a-z0-9]+ ?(?:%|per ?cent)|\b(?:number|line|item) [0-9]+|[0-9]番|[0-9一二三四五六七八]つ目|第[一-九]"
    r"|\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|quarter|single|double|triple)\b|半分|分の"
)
"""Numbers that are not quantities."""


def shown(kind: str) -> Mapping[str, str]:
    """Return the Japanese display name of each name of a kind."""
    return MappingProxyType({name: entry[0] for name, entry in _wordings()[kind].items()})


@lru_cache(1)
def sentences() -> tuple[str, ...]:
    """Return the fixed sentences that name nothing, longest first."""
    return tuple(sorted((each for entry in _wordings()["answers"].values() for each in entry), key=len, reverse=True))


@lru_cache(1)
def drinks() -> frozenset[str]:
    """Return the dishes that come in cups and glasses."""
    return frozenset(_wordings()["drinks"]["all"])


REQUESTS_JA = frozenset(
    "お願いできます|お願いできません|できますか|頂けますか|いただけます|もらえます|もらえません|お願いしたいです".split(
        "|"
    )
)
"""Ends of polite requests, beside those that the training draws."""


@lru_cache(1)
def fillers() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words that occur around orders and changes: English words, runs of Japanese."""
    return frozenset(_wordings()["fillers"]["en"]), REQUESTS_JA.union(_wordings()["fillers"]["ja"])


@lru_cache(1)
def foreign_numbers() -> Mapping[str, int]:
    """Return the numbers that some languages write in words."""
    return {form: int(number) for number, (_, *said) in _wordings()["numbers"].items() for form in said}


@lru_cache(1)
def dones() -> tuple[str, ...]:
    """Return the wordings that end an order."""
    return tuple(each for code in ("en", "ja") for each in _wordings()["done"][code])


@lru_cache(64)
def find_meanings(text: str) -> tuple[frozenset[Meaning], ...]:
    """Return the possible meanings of each wording in a text; if two overlap, those of the longer one.

    >>> [sorted(each) for each in find_meanings("two lattes with almnod milk")]
    [[('dishes', 'latte')], [('options', 'almond milk')]]
    """
    return tuple(_latin_meanings(text.lower())) + tuple(_foreign_meanings(text.lower()))


@lru_cache(64)
def find_counts(text: str) -> frozenset[int]:
    """Return the whole numbers of a text that may be quantities.

    >>> sorted(find_counts("a dozen lattes and ふたつ"))
    [1, 2, 12]
    """
    text = NO_COUNT.sub(" ", text.lower())
    numbers = {int(each) for each in find_numbers(text) if each.isdigit() and len(each) < 3}
    numbers |= {number for word, number in SPOKEN.items() if word in text}
    words = set(LATIN.findall(text))
    return frozenset(
        numbers | {int(each) for each, (_, *said) in _wordings()["numbers"].items() if words & set(said)}
    ) - {0}


@lru_cache(1)
def _wordings() -> Mapping[str, Mapping[str, list[str]]]:
    content = (files("taiwa.models.builtin") / "data" / "wordings.json").read_text("utf-8")
    found: Mapping[str, Mapping[str, list[str]]] = json.loads(content)
    return found


@lru_cache(1)
def forms() -> tuple[Mapping[tuple[str, ...], frozenset[Meaning]], Mapping[str, frozenset[Meaning]]]:
    """Return the wordings in Latin letters by their words, and the others."""
    latin: dict[tuple[str, ...], frozenset[Meaning]] = {}
    foreign: dict[str, frozenset[Meaning]] = {}
    for kind in ("dishes", "sizes", "options"):
        for name, (_, *said) in _wordings()[kind].items():
            for form in map(str.lower, said):
                meaning = frozenset(((kind, name),))
                if FOREIGN.search(form):
                    for each in {form, form.removesuffix("咖啡") or form}:  # `美式` is an americano
                        foreign[each] = foreign.get(each, frozenset()) | meaning
                else:
                    words = tuple(LATIN.findall(form))
                    latin[words] = latin.get(words, frozenset()) | meaning
    return latin, foreign


@lru_cache(1)
def _known_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of wordings, and the vocabulary pieces that are not misspellings of one."""
    words = frozenset(word for form in forms()[0] for word in form) | fillers()[0]
    pieces = (piece.decode("utf-8", "replace").strip().lower() for piece in builtin_tokens().vocabulary.tokens)
    return words, words.union(pieces, _wordings()["words"]["en"])


def _latin_meanings(text: str) -> Iterator[frozenset[Meaning]]:
    latin = forms()[0]
    words = [corrected(word) for word in LATIN.findall(text)]
    at = 0
    while at < len(words):
        for end in range(min(at + MOST_WORDS, len(words)), at, -1):
            if found := latin.get(tuple(words[at:end])):
                yield found
                at = end
                break
        else:
            at += 1


def _foreign_meanings(text: str) -> Iterator[frozenset[Meaning]]:
    foreign = forms()[1]
    longest = max(map(len, foreign))
    at = 0
    while at < len(text):
        for end in range(min(at + longest, len(text)), at, -1):
            if found := foreign.get(text[at:end]):
                yield found
                at = end
                break
        else:
            at += 1


@lru_cache(4_096)
def corrected(word: str) -> str:
    """Return the word of a wording that a word misspells, if there is one."""
    words, known = _known_words()
    if word in known or len(word) < LONG_ENOUGH:
        return word
    if word[-1] == "s" and word[:-1] in known:
        return word[:-1] if word[:-1] in words else word
    near = [each for each in words if len(each) >= LONG_ENOUGH and _differ_by_a_slip(word, each)]
    return min(near, key=lambda each: (each[0] != word[0], each), default=word)


def _differ_by_a_slip(one: str, other: str) -> bool:
    """Return true if two words differ by one inserted, missing, changed or swapped letter."""
    if len(one) > len(other):
        one, other = other, one
    start = 0
    while start < len(one) and one[start] == other[start]:
        start += 1
    if len(other) - len(one) == 1:
        return one[start:] == other[start + 1 :]
    if len(one) != len(other):
        return False
    rest, wanted = one[start:], other[start:]
    return rest[1:] == wanted[1:] or (rest[1::-1] + rest[2:] == wanted and len(rest) > 1)


UNDO: Final = (
    re.compile(
        r"(?:(?:please|can you|could you|would you|i'd like to|i want to|let's|just|hey|um|hmm|ok|okay|oh|oops|no|wait|sorry|actually|and|i changed my mind|on second thought)[,.! ]+)*"
        r"(?:(?:undo|revert)(?: it| that| this| (?:the|my|your|that) (?:last |latest |previous )?(?:change|step|edit|action|correction))?|go back (?:one|a) step)"
        r"(?:[,. ]+(?:please|thanks|thank you|again|if possible|for me|actually|instead))*[.!? ]*"
    ),
    re.compile(
        r"(?:(?:すみません|すいません|ごめんなさい|ごめん|やっぱり|やっぱ|えっと|あの|あ|いや|いえ|ちょっと待って|間違えました)[、。, ]*)*"
        r"(?:(?:(?:今の|さっきの|直前の|最後の|前の)?(?:変更|操作|修正)を?、?)?(?:取り消し|取消し?|(?:元|もと)に戻し)|(?:一つ|ひとつ|1つ)前に戻し)(?:て|で)?"
        r"(?:ください|下さい|お願いします|もらえますか|いただけますか|ほしいです|です)?[ねよ]?[。!? ]*"
    ),
    re.compile(
        r"(?:(?:请|麻烦|不好意思|对不起|那个|等等|我想|帮我)[,\uff0c ]*)*(?:把?(?:刚才|上次|上一次|最后)的?(?:更改|修改|操作|改动)?)?(?:撤销|撤回|还原)"
        r"(?:上一步|(?:刚才|上次|上一次|最后)的?(?:更改|修改|操作|改动)?)?(?:一下|吧|了|[,\uff0c]?谢谢|可以吗)*[。!? ]*"
    ),
)  # fmt: skip
"""Words that undo the last change, whatever it was, and refer to no line."""


def asks_to_undo(said: str) -> bool:
    """Return true if a guest's text undoes the last change.

    >>> asks_to_undo("Sorry, can you undo that please?"), asks_to_undo("取り消してください"), asks_to_undo("undo the latte")
    (True, True, False)
    """
    said = said.lower().strip()
    return any(pattern.fullmatch(said) for pattern in UNDO)


MOST_RUN, MOST_CHARS = 8, 20
ROLES_EN: Final = {
    "the": "the|my|our|those|that|these|this|your",
    "it": "it|that|those|them|these|this|that one|this one|those ones",
    "last": "the last one|the last thing|the last item|last one|last item",
    "other": "the other|the other one|other one|other",
    "one": "one|ones|item",
    "a": "a|an",
    "with": "with|w|plus|and add|plus add|made with|using|have|and with|topped with|dusted with|served",
    "on": "for|in|on|to|into|from|out of|of",
    "of": "of",
    "some": "some|added",
    "of them": "of them|of those|of these",
    "unit": "pump|pumps|squirt|squirts|shot|shots|splash|splashes|dash|dashes|packet|packets|sachet|sachets|spoon|spoons|spoonful|spoonfuls|teaspoon|teaspoons|pack|packs|lump|lumps|portion|portions|helping|helpings|serving|servings|drop|drops|sprinkle",
    "no": "no|without|without any|hold the|skip the|minus the|leave out the|leave out|minus|hold|skip",
    "fewer": "one less of|one fewer of|one less|one fewer",
    "light": "light|easy|less|a little|a bit of|just a bit of|not too much|just a touch of|only a little|easy on the|go easy on the|light on the|little|a touch of",
    "extra": "extra|lots of|plenty of|loads of|a lot of|more|heavy on the|generous on the|extra on the",
    "half": "half|half the",
    "remove": "remove|delete|cancel|clear|clear out|wipe|drop|scratch|skip|lose|strike|kill|forget|forget about|leave|leave out|take off|take away|take back|take out|off|away|out"
    "|get rid of|scrap|i don't want|don't want|i don't need|we don't need|don't need|no longer want|won't need|no need for|never mind|without|no|i'll skip|we'll skip"
    "|pass on|i'll pass on|changed my mind about|undo|can go|is not needed|isn't needed|must go|has to go|leave it|cancel it|minus|no more|never",
    "not": "not|and not|instead of|instead of the|than|rather than",
    "instead": "instead of|than|rather than|not",
    "into": "change|turn|switch|swap|exchange|trade|replace",
    "change": "make|upgrade|bump|set|should be|needs to be|was meant to be|was supposed to be|must be|has to be|can|could|be|gets|in|as a|times|only|just|there should be|i meant|to|into"
    "|use|give|throw|do|it should be|do",
    "same": "same again|the same again|the same|same|the same thing|the same thing again|and the same|another round",
    "more": "more|another|an extra|another one|one more|an additional|additional|a second|an extra one|additional ones|more of",
    "each": "one of|one from",
    "all": "all|both|everything|all of it|all of them|all of that|each|each of them|all the|both the|everything i ordered|the whole order|the whole thing|it all|all the items",
    "plain": "plain|normal|regular style|as is|as it is|without anything|regular",
    "oh": "actually|sorry|no|oh",
    "rather": "wait|no wait|no sorry|hmm actually|on second thought|wait no|or no|oh wait|scratch that|my mistake|hang on|i mean|oops|no no|or rather|i meant|make that|sorry make that|no make that|or better|instead",
    "fill": "after all|any more|anymore|start with|go with|one more thing|one last thing",
    "order": "the order|my order|our order|that order|this order|the entire order",
    "done": "check out|checkout|place the order|place my order|confirm the order|confirm my order|send the order|finish the order"
    "|that completes my order|that would be everything|that will be everything|that's all i want|i think that's it|nothing more",
    "joint": "et|und|y|e|and|also|and also|then|plus|as well as|along with|and then|&|but|oh and",
}
ROLES_JA: Final = {
    "it": "それ|これ|今の|さっきの",
    "last": "最後の",
    "no": "なし|抜き|ぬき|なしで|抜きで|ぬきで",
    "light": "少なめ|控えめ|ちょっと",
    "extra": "多め|増し|たっぷり",
    "half": "半分|半量",
    "remove": "キャンセル|取り消して|取り消し|いりません|やめます|やめて|なしで|結構です|やめておきます|要らないです|不要です|なしにしてください|消して|抜いて|外して|削除して|減らして|いらない|なくして|なしに戻して|少なくて|なしで",
    "not": "じゃなくて|ではなく|ではなくて|でなく|の代わりに",
    "change": "に変更|に変えて|にして|にお願いします|サイズに|ミルクは|でした",
    "only": "だけ|の方は|の方|のサイズを|の数を|のミルクを|サイズを|の数",
    "same": "同じの|同じもの|同じもので|同じ|さっきと同じの",
    "fill": "ちょっと|こっちは|でも|ただし|もう一度|もう一回|おかわり",
    "more": "もう|あと|追加|おかわり|追加で|追加して",
    "each": "の一つ|のうち1つ|一つだけ|のひとつ|の1つ|ひとつだけ|1つだけ",
    "all": "全部|すべて|両方|どれも|全て|両方とも|全部の商品|注文を全部",
    "plain": "普通|普通の|そのまま|何もなし",
    "oh": "やっぱり|すみません|あ|ごめんなさい",
    "rather": "いや|ちょっと待って|間違えました|違う|いえ|あ、違う|あ、やっぱり",
    "pre": "の|入りの|付きの|を入れた|をつけた",
    "post": "で|付きで|入りで|追加で|を入れて|を足して|をつけて|も|を追加して|ありで|に変えて|に変更で|にして|を使って|使って|使っても|入れて|足して|にして|でください",
    "joint": "と|に|それと|あと|それから|あとは|ついでに|そして|それに|さらに|加えて|他に|も|もう一つ",
    "wo": "を|が|は|サイズは|ミルクは|サイズ",
    "suffix": "シロップ",
    "done": "注文を確定して|注文を完了して|これで確定して|確定で",
}
ROLES_ZH: Final = {
    "it": "那个|这个|它|刚才那个",
    "last": "最后一个|最后一杯",
    "remove": "不要|去掉|取消|不用了|删掉|不要了",
    "into": "换成|改成|改为|换|改",
    "more": "再来|再加|多来|再要",
    "fill": "请|麻烦|不好意思|那个|对不起|把|吧|谢谢|可以吗|了|要|总共|我要|来|请给我|我想要|你好|做成|给我|杯|的|个",
    "joint": "和|,",
}
NUMBERS: Final = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split(), 1
    )
}  # fmt: skip
TENS: Final = {
    word: number
    for number, word in zip(
        range(20, 100, 10), "twenty thirty forty fifty sixty seventy eighty ninety".split(), strict=True
    )
}
SETS: Final[Mapping[tuple[str, ...], int]] = {
    ("a", "dozen"): 12,
    ("half", "a", "dozen"): 6,
    ("two", "dozen"): 24,
    ("three", "dozen"): 36,
    ("a", "couple", "of"): 2,
    ("a", "couple"): 2,
    ("couple", "of"): 2,
    ("just", "one"): 1,
    ("dozen",): 12,
    ("only", "one"): 1,
}
ORDINALS: Final = "first second third fourth fifth sixth seventh eighth".split()
ODD = re.compile(r"-[0-9]+|0|[0-9]+[./][0-9]+|[0-9]{3,}|zero")
WORD = re.compile(r"(?<![a-z0-9])-[0-9]+|[0-9]+[./][0-9]+(?! caf)|[a-z0-9\u00df-\u00ff%'&]+|[,.;:!?…]+| - ")
KANJI: Final = {sign: number for number, sign in enumerate("一二三四五六七八九", 1)} | {"两": 2}
COUNT_WORDS: Final = {
    word: number
    for number, word in enumerate("ひとつ ふたつ みっつ よっつ いつつ むっつ ななつ やっつ ここのつ とお".split(), 1)
}
COUNT_JA = re.compile(
    r"([0-9]{1,2}|[二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九两])(つ目|つ|個|个|份|块|片|只|张|瓶|罐|こ|杯分|杯|番|本|袋|枚|ポンプ|プッシュ|回分|x)?"
)
FIRST_JA = re.compile(r"(?:最初|はじめ|初め)の(?:もの|やつ|ほう|方)?")
KANA = re.compile(r"[ぁ-んァ-ヴ]")
CJK = re.compile(r"[ぁ-んァ-ヴ\u4e00-\u9fff]")
HESITATION = re.compile(r"\b(?:um+|uhm?|erm?|hmm+|you know|let's see|let me (?:think|see)|what was it)\b[.,]*")

Edge: TypeAlias = tuple[int, str, str, float]
"""The end of a word, its kind, its value, and the cost of the reading."""


CONTENT: Final = frozenset(
    {"dish", "dishes", "place", "last", "count", "times", "of them", "option", "attribute", "adverb", "size", "done"}
)
HEAVY: Final = frozenset({"a", "same", "remove", "not", "extra", "light", "each", "all", "more", "rather"})
WEIGHTY: Final = frozenset(
    {"remove", "a", "all", "other", "no", "not", "more", "each", "count", "place", "it", "extra", "light"}
)
SHORT: Final = {"dishes": "dish", "sizes": "size", "options": "option"}


def read_tokens(text: str) -> list[list[Edge]]:
    """Return for each position of a lower-cased text what may begin there: by words in Latin letters, by characters otherwise."""
    return _edges_ja(text) if CJK.search(text) else _edges_en(text)


@lru_cache(1)
def _roles_en() -> Mapping[tuple[str, ...], tuple[tuple[str, str], ...]]:
    found: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}

    def add(form: str, *meant: tuple[str, str]) -> None:
        words = tuple(WORD.findall(form))
        found[words] = (*found.get(words, ()), *meant)

    for role, text in ROLES_EN.items():
        for form in text.split("|"):
            add(form, (role, ""))
    for at, word in enumerate(ORDINALS, 1):
        for ending in (" one", " item", " thing", ""):
            add(f"the {word}{ending}", ("place", str(at)))
            add(f"{word}{ending}" if ending else word, ("place", str(at)))
    for words, meant in forms()[0].items():
        several = {"double": "2 ", "triple": "3 "}.get(words[0], "")
        add(
            " ".join(words),
            *sorted((SHORT[kind], several * (name == "espresso shot") + name) for kind, name in meant),
        )
    for form in (each for each in dones() if each.isascii()):
        add(form, ("done", ""))
    return found


def _edges_en(text: str) -> list[list[Edge]]:
    roles, known = _roles_en(), fillers()[0]
    foreign = {tuple(WORD.findall(form)): number for form, number in foreign_numbers().items()}
    own = (
        {"number", "line", "item"}
        | {word for form in (*roles, *SETS) for word in form}
        | known
        | NUMBERS.keys()
        | TENS.keys()
    )
    typed = _once(WORD.findall(HESITATION.sub(" ", text)))
    words = [word if word in own else corrected(word) for word in typed]
    edges: list[list[Edge]] = []
    for at, word in enumerate(words):
        here: list[Edge] = []
        for end in range(at + 1, min(at + MOST_RUN, len(words)) + 1):
            some = tuple(words[at:end])
            for role, name in roles.get(some, ()):
                many = role == "dish" and some[-1].endswith("s") and not name.endswith("s")
                price = 0.02 + 0.1 * (words[at:end] != typed[at:end])
                here.append((end, "dishes" if many else role, name or " ".join(some), price))
            if some in foreign:
                here.append((end, "count", str(foreign[some]), 0.0))
            if some in SETS:
                here.append((end, "count", str(SETS[some]), 0.0))
            if some == ("a", "single"):  # the size of a short drink, or an adjective
                here.append((end, "count", "1", 0.5))
        here += [(end, kind, str(number), 0.0) for end, kind, number in _numbers_en(words, at)]
        if ODD.fullmatch(word):
            here = [(at + 1, "count", "-1", 0.0)]
        if word in ("number", "line", "item") and at + 1 < len(words) and words[at + 1].isdigit():
            here.append((at + 2, "line", words[at + 1], 0.0))
        if re.fullmatch(r"[,.;:!?…]+| - ", word):
            here.append((at + 1, "stop", word.strip(), 0.0))
        elif word in known:
            kinds = {kind for _, kind, _, _ in here}
            if not here and len(word) > 3:
                here.append((at + 1, "unknown", word, 0.6))
            is_weighty = kinds & WEIGHTY or word in ("with", "w")
            price = 1.0 if kinds & (CONTENT | HEAVY) or word == "only" else 0.5 if is_weighty else 0.05 if here else 0.0
            here.append((at + 1, "fill", "", price + 0.35 * (word != typed[at])))
        elif not here:
            here.append((at + 1, "unknown", typed[at], 0.0))
        if word != typed[at] and here[-1][1] != "unknown":
            here.append((at + 1, "unknown", typed[at], 0.0))
        edges.append(_favour_long(at, here))
    return edges


def _once(words: Sequence[str]) -> list[str]:
    """Remove immediate repetitions of up to three words."""
    found: list[str] = []
    for word in words:
        found.append(word)
        for length in (1, 2, 3):
            numbers = NUMBERS.keys() - {"one"} if length > 1 else NUMBERS.keys()
            if found[-length:] == found[-2 * length : -length] and not {*found[-length:]} & {"no", "half", *numbers}:
                del found[-length:]
                break
    return found


def _favour_long(at: int, edges: Sequence[Edge], more: float = 0.4) -> list[Edge]:
    """Raise the cost of words within a longer name."""
    longest = max((end for end, kind, _, _ in edges if kind in CONTENT | HEAVY | {"change"}), default=at)
    return [(end, kind, name, price + (more if end < longest else 0.0)) for end, kind, name, price in edges]


def _numbers_en(words: Sequence[str], at: int) -> Iterator[tuple[int, str, int]]:
    """Yield the numbers that begin with a word: their ends, and whether they count what follows or what precedes (`x2`)."""
    word, following = words[at], words[at + 1] if at + 1 < len(words) else ""
    if found := re.fullmatch(r"([1-9][0-9]?)x?", word):
        yield at + 1 + (following == "x"), "count", int(found[1])
    if found := re.fullmatch(r"x([1-9][0-9]?)", word):
        yield at + 1, "times", int(found[1])
    if word == "x" and following.isdigit() and 0 < int(following) < 100:
        yield at + 2, "times", int(following)
    if word in TENS:
        yield at + 1, "count", TENS[word]
        if following in NUMBERS and NUMBERS[following] < 10:
            yield at + 2, "count", TENS[word] + NUMBERS[following]
    elif word in NUMBERS:
        yield at + 1, "count", NUMBERS[word]


@lru_cache(2)
def _roles_ja(code: str) -> Mapping[str, tuple[tuple[str, str], ...]]:
    found: dict[str, tuple[tuple[str, str], ...]] = {}

    def add(form: str, *meant: tuple[str, str]) -> None:
        found[form] = (*found.get(form, ()), *meant)

    for role, text in (ROLES_JA if code == "ja" else ROLES_ZH).items():
        for form in text.split("|"):
            add(form, (role, ""))
    for form, meant in forms()[1].items():
        add(form, *sorted((kind[:-1] if kind != "dishes" else "dish", name) for kind, name in meant))
    for words, meant in forms()[0].items():
        if len(words) == 1 and words[0] in ("s", "m", "l", "ll", "xl"):
            add(words[0], *sorted((kind[:-1], name) for kind, name in meant))
    for form in dones():
        if not form.isascii():
            add(form, ("done", ""))
    for form in fillers()[1] if code == "ja" else ():
        if form not in found and not form.startswith("追加"):
            add(form, ("fill", ""))
    return found


LOOSE: Final = {"に": 0.5, "もう一つ": 0.4}
"""The cost of joining two items by words that usually mean something else."""
SLIP = 0.6
"""The cost of a misspelt kana word."""


@lru_cache(2)
def _slips(code: str) -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Return the wordings with one kana missing, doubled or swapped with the next, unless that is another word."""
    known = _roles_ja(code)
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for form, meant in known.items() if code == "ja" else ():
        roles = tuple(each for each in meant if each[0] in ("dish", "option", "size"))
        if len(form) <= LONG_ENOUGH or not roles:
            continue
        for at in range(len(form)):
            if KANA.match(form, at) or form[at] == "ー":
                rest = form[at + 1 :]
                for slip in (form[:at] + rest, form[: at + 1] + form[at:], form[:at] + rest[:1] + form[at] + rest[1:]):
                    if slip not in known:
                        found[slip] = tuple(dict.fromkeys((*found.get(slip, ()), *roles)))
    return found


def _edges_ja(text: str) -> list[list[Edge]]:
    code = "ja" if KANA.search(text) else "zh"
    roles, slips = _roles_ja(code), _slips(code)
    edges: list[list[Edge]] = []
    for at, sign in enumerate(text):
        here: list[Edge] = []
        for end in range(at + 1, min(at + MOST_CHARS, len(text)) + 1):
            part = text[at:end]
            for role, name in roles.get(part, ()):
                here.append((end, role, name or part, LOOSE.get(part, 0.02) if role == "joint" else 0.02))
                if role == "option" and part[-1] in "のたい":
                    here.append((end, "attribute", name, 0.0))
                    here.pop(-2)
                elif role == "option" and part[-1] in "でてすん" and len(part) > 2:
                    here.append((end, "adverb", name, 0.0))
                    here.pop(-2)
            here += [(end, role, name, SLIP) for role, name in slips.get(part, ())]
            if part == "もう一つ":
                here = [edge for edge in here if edge[1] != "fill"]
            if part in COUNT_WORDS:
                here.append((end, "count", str(COUNT_WORDS[part]), 0.0))
        if sign == "第" and (found := COUNT_JA.match(text, at + 1)) and found[2]:
            here.append((found.end(), "place", str(int(found[1]) if found[1].isdigit() else _kanji(found[1])), 0.0))
        if found := FIRST_JA.match(text, at):
            here.append((found.end(), "place", "1", 0.0))
        if (found := ODD.match(text, at)) and not here:
            here.append((found.end() + (text[found.end() : found.end() + 1] in {*"つ個杯"}), "count", "-1", 0.0))
        elif found := COUNT_JA.match(text, at):
            number = int(found[1]) if found[1].isdigit() else _kanji(found[1])
            unit = found[2] or ""
            kind = {"つ目": "place", "番": "line", "": "bare"}.get(
                unit, "number" if unit in ("ポンプ", "プッシュ", "回分", "本", "袋", "枚", "杯分") else "count"
            )
            if kind != "bare" or found[1].isdigit():
                here.append(
                    (found.end(), "count" if kind == "bare" else kind, str(number), 1.0 if kind == "bare" else 0.0)
                )
        counted = any(kind in ("count", "number", "place") for _, kind, _, _ in here)
        if sign in "、。.!?, ・…~〜ー":
            here = [edge for edge in here if edge[0] > at + 1]
            here.append((at + 1, "stop", sign, 0.1 * (sign == "ー")))
        if sign == "ー" and at:
            here.append((at + 1, "unknown", sign, 0.0))
        elif re.match(r"[ぁ-ん]", sign):
            here.append((at + 1, "unknown", sign, 0.4))
            here.append((at + 1, "fill", "", 0.8))
        elif sign not in "、。.!?, ・…~〜ー" and not counted:
            kinds = {kind for _, kind, _, _ in here}
            here.append((at + 1, "unknown", sign, 0.9 if kinds & CONTENT else 0.4 if "fill" in kinds else 0.0))
        edges.append(_favour_long(at, here, 0.8))
    return edges


def _kanji(text: str) -> int:
    head, ten, tail = text.partition("十")
    return (KANJI.get(head, 1) * 10 + KANJI.get(tail, 0)) if ten else KANJI[text]
