"""Check citations: whether the words that a model quotes are in the passage and support its claim; make model text safe to
show.

`answer.check_answer` applies these checks to an answer.

`find_quotation` ignores what copying changes (widths, case, white space, quotation marks, dashes, emphasis), and nothing else: a
quotation that is not found supports no claim. `supports` compares a claim with a quotation that was found.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple
from unicodedata import normalize

from taiwa.kernel.text import CONTROL

CLUSTER = re.compile("[\\S\\s][\u0300-\u036f\u3099\u309a\uff9e\uff9f]*")
"""A character with its combining marks."""

SAME = str.maketrans({
    **dict.fromkeys("‘’‚‛′`´", "'"), **dict.fromkeys("“”„‟″«»", '"'), **dict.fromkeys("‐‑‒–—―−", "-"), "…": "...",
})  # fmt: skip

DROPPED = frozenset("*`\u00ad")
"""Marks of emphasis and code, and soft hyphens: quotations omit them."""

TABLE_BORDER = "|"
"""The border of a table cell counts as white space."""

WIDE = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff]")

WORDLIKE = re.compile(r"\w")

NUMERALS = "〇一二三四五六七八九十百千万億萬亿"

LETTER = "(?:(?![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff])\\w)"

INSIDE = re.compile(f".*(?:{LETTER}\0{LETTER}|[{NUMERALS}]\0[{NUMERALS}]|\\d[.,]\0\\d|\\d\0[.,]\\d).*", re.DOTALL)
"""A position (the zero character) within a word of a script with spaces, or within a number."""

TARGET = r"\((?P<to>(?:[^()\s]|\([^()]*\))*)(?:[^()]|\([^()]*\))*\)"

IMAGE = re.compile(rf"!\[(?P<words>[^\]\[]*)\](?:{TARGET}|\[[^\]]*\])")

LINK = re.compile(rf"(?<!!)\[(?P<words>[^\]\[]*)\]{TARGET}")

URL = re.compile(
    r"\b(?:[a-z][a-z0-9+.-]{1,20}://|www\.|data:|javascript:|mailto:)[^\s<>\"'）」』】\])]*", re.IGNORECASE
)

CITATION_NUMBER = re.compile(r"[\[【［]\s*(?:\d{1,3}(?:\s*[,、，-]\s*\d{1,3})*)\s*[\]】］]")

TAG = re.compile(r"<(?=[a-zA-Z/!|])")

REMOVED = "[…]"

PUNCTUATION = ".,;:!?。、，；：！？"

QUOTATION_ENDS = f" {PUNCTUATION}'\"「」『』"


def find_quotation(words: str, text: str) -> tuple[int, int] | None:
    """Return the offsets (start, end) of quoted words in a text; None if the text does not contain them.

    Characters are compared in their compatibility form (NFKC) without case. White space counts as one space, and between
    Japanese or Chinese characters as none; quotation marks are straight, all dashes alike, marks of emphasis and the punctuation
    at both ends of the words are ignored. A part of a word, of a number or of a combining sequence is not a quotation: `5 days`
    is not in `25 days`.

    >>> find_quotation("twenty  “days”", 'up to **twenty**\\n"days" a year')
    (8, 22)
    """
    wanted = "".join(character for character, _ in _normalized(words)).strip(QUOTATION_ENDS)
    if not WORDLIKE.search(wanted):
        return None
    characters = list(_normalized(text))
    whole = "".join(character for character, _ in characters)
    spans = [span for _, span in characters]
    start = whole.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        if not any(_is_inside(whole, spans, at) for at in (start, end)):
            return spans[start][0], spans[end - 1][1]
        start = whole.find(wanted, start + 1)
    return None


def _is_inside(text: str, spans: list[tuple[int, int]], at: int) -> bool:
    """Whether a position is within a combining sequence, a word or a number."""
    if 0 < at < len(spans) and spans[at - 1] == spans[at]:
        return True
    return INSIDE.fullmatch(text[max(at - 2, 0) : at] + "\0" + text[at : at + 2]) is not None


def _normalized(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each character of the normalized text with the span of its cluster in the text as written."""
    last, space = "", None
    for cluster in CLUSTER.finditer(text):
        if cluster[0] in DROPPED or CONTROL.match(cluster[0]):
            continue
        for character in normalize("NFKC", cluster[0]).translate(SAME).casefold():
            if character.isspace() or character == TABLE_BORDER:
                space = space or cluster.span()
                continue
            if space and not (WIDE.match(last) or WIDE.match(character)):
                yield " ", space
            last, space = character, None
            yield character, cluster.span()


def clean_untrusted(text: str, sources: str = "") -> str:
    """Make a model's text about documents safe to show on one line.

    Images, tags, invisible characters, numbers that look like citations, and URLs that the sources do not contain are removed.

    >>> clean_untrusted("See ![x](https://a.example/?q=1) [here](https://b.example) [2] now", "go to https://b.example")
    'See x here (https://b.example) now'
    """
    line = " ".join(CONTROL.sub("", text).split())
    line = IMAGE.sub(lambda image: image["words"], line)
    line = LINK.sub(lambda link: f"{link['words']} ({link['to']})" if link["to"] else link["words"], line)
    line = URL.sub(lambda url: url[0] if url[0].rstrip(PUNCTUATION) in sources else REMOVED, line)
    return " ".join(TAG.sub("‹", CITATION_NUMBER.sub("", line)).split())


MIN_CONTENT = 2.0
"""Content of the shortest quotation that can support a claim, unless the claim says nothing else: words and numbers count 1, Japanese and Chinese characters a half."""

STOP_WORDS = frozenset(
    """a an the and or but if as at by for from in into of on onto out over per so than that then there these this those to until up
    upto with within you your yours we us our ours they them their it its he she his her i me my is are was were be been being am do
    does did done have has had having will would shall should can could may might must who whom whose which what when where why how
    all any each every some such both more most other own same too very just also only about after before again once here""".split()
)

DATE = re.compile(
    r"\b(?:january|february|march|april|may(?= \d)|(?<=\d )may|june|july|august|september|october|november|december"
    r"|mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?|a\.?m\.?|p\.?m\.?)\b"
    r"|[月火水木金土日]曜|(?:星期|周|週|礼拜)[一二三四五六日天]|午前|午後|上午|下午|毎[日週月年]|每[天日周月年]"
)

NAME = re.compile(
    r"(?<![.!?:] )(?<!^)(?<![A-Za-z])[A-Z][a-z]+(?![A-Za-z])|\b(?:[A-Z][A-Za-z]*-?\d[\w-]*|[A-Z]{2,}[\w-]*|[a-z]+[A-Z]\w*)\b"
    r"|[\w.+-]+@[\w.-]+|[\u30a1-\u30fa\u30fc]{3,}|[\u3400-\u9fff]{1,4}(?=さん|氏|君|先生|女士|小姐|老师)|[「『“\"]([^「」『』“”\"]{1,40})[」』”\"]"
)

FIRST_WORD = re.compile(r"(?:^|[.!?:] )\W{0,9}([A-Z][A-Za-zà-ÿ]+(?:-[A-Z][a-z]+)?)(?![A-Za-zà-ÿ])")
COMMON_FIRST = frozenset(
    "applicants children colleagues customers employees everybody everyone guests leads managers members parents people staff students"
    " teachers users visitors workers ask bring call check choose contact do email fill find follow give go hand inform keep leave make meet notify phone please"
    " report ring see send speak take talk tell use visit wait write".split()
)
"""Words at the beginning of a sentence that are not names, though a name may follow."""
JAPANESE_SURNAMES = (
    "佐藤|鈴木|高橋|田中|伊藤|渡辺|渡邊|山本|中村|小林|加藤|吉田|山田|佐々木|山口|松本|井上|木村|斎藤|斉藤|清水|山崎|池田|橋本|阿部|石川"
    "|山下|中島|石井|小川|前田|岡田|長谷川|藤田|後藤|近藤|村上|遠藤|青木|坂本|福田|太田|西村|藤井|金子|岡本|藤原|三浦|中野|中川|原田|松田|竹内"
    "|小野|田村|中山|和田|石田|森田|上田|内田|柴田|酒井|宮崎|横山|高木|安藤|宮本|大野|小島|谷口|今井|工藤|増田|丸山|杉山|村田|大塚|新井|藤本"
)
CHINESE_SURNAMES = "王李张張刘劉陈陳杨楊赵趙黄黃周吴吳徐孙孫胡朱高林何郭马馬罗羅梁宋郑鄭谢謝韩韓唐冯馮于董萧蕭程曹袁邓鄧许許傅沈曾彭吕呂苏蘇卢盧蒋蔣蔡贾賈丁魏薛叶葉阎潘杜戴夏钟鐘汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段钱汤尹黎易常武乔贺赖龚文"
FIRST_WIDE = re.compile(
    rf"(?:^|[。！？、，])(?:(?P<ja>{JAPANESE_SURNAMES})|(?P<name>[{CHINESE_SURNAMES}][\u3400-\u9fff]{{1,2}}?)(?P<behind>[\u3400-\u9fff]{{2}}))"
)

LATIN_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")

LATIN_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nowhere|neither|nor|without|cannot|\w+n't|forbidden|prohibited|impossible"
    r"|hardly|scarcely|barely|rarely|seldom|unable"
    r"|nicht|kein(?:e[nmrs]?)?|nie(?:mals)?|niemand|nichts|ohne|weder|verboten|untersagt|unmöglich|kaum"
    r"|pas|jamais|aucune?|rien|sans|guère|interdite?s?|nunca|ning[uú]na?|non|nessuna?|senza)\b"
)
"""English, German, French, and the commonest words of Spanish and Italian."""

ONE = re.compile(r"\b(?:one|1|first)[ -]([a-z]+)|[一1](.)")
SINGLE = re.compile(r"\b(?:an?|per|single|each|every|once an?|ein(?:e[nmrs]?)?|une?|pro|par)[ -](\w+)|[一毎每](.)")
"""Words that count one thing in a claim, and words that can state this in a quotation."""

JAPANESE_OBLIGATION = re.compile(
    r"な(?:ければ|いと|くては|きゃ)(?:なりません|ならない|なら|いけません|いけない)|かもしれ(?:ません|ない)"
)

JAPANESE_NEGATION = re.compile(r"ません|(?<!少)な(?:い(?!し)|く(?!な)|かっ)|ずに|せず|不可|禁止|なし")

CHINESE_NEGATION = re.compile(
    r"不(?:允许|可以|可|能|得|准|许)?(?![同仅但过久少])|没有?|沒有?|[无無未勿莫](?![论論来])|(?<![常特分区差级性])别(?!的)|非(?!常)|禁止?"
)

KANA = re.compile(r"[\u3041-\u30ff]")

WIDE_RUN = re.compile(r"[\u3005\u3041-\u30ff\u3400-\u9fff]+")

JAPANESE_AUXILIARY = re.compile(r"[はがをも]?、?(?:でき|あり|いたし|し)?\Z")

SENTENCE_END = re.compile(r"[.;!?。；！？](?!\d)")

CLAUSE_END = re.compile(r"[.,;:!?。、，；：！？](?!\d)")

SHORT = 3
SCOPE = 4
"""Content words, or pairs of characters, that a negation is about."""


def supports(claim: str, quotation: str, heading: str = "", sources: str = "") -> bool:
    """Whether a quotation can support a claim: it has content and lacks nothing essential of the claim.

    Every number, date and name of the claim occurs in the quotation (a name may occur in the `heading` of its passage), and
    neither asserts what the other negates. A claim in the language of the quotation shares a word or number with it. Words
    that `sources` capitalise inside a sentence also count as names at the beginning of a claim.

    >>> supports("Ten days are paid.", "up to 10 days are paid"), supports("90 days are paid.", "up to 10 days are paid")
    (True, False)
    >>> supports("犬は入れます。", "犬は入れません"), supports("可以带狗", "不可以带狗")
    (False, False)
    """
    claim, quotation = normalize("NFKC", claim).translate(SAME), normalize("NFKC", quotation).translate(SAME)
    terms, quoted = _terms(claim), _terms(quotation)
    if _content(quotation) < MIN_CONTENT and not (terms and terms <= quoted):
        return False
    folded = quotation.casefold()
    if not _counts(claim.casefold(), folded):
        return False
    if not set(DATE.findall(claim.casefold())) <= set(DATE.findall(folded)):
        return False
    around = f"{folded}\n{normalize('NFKC', heading).casefold()}"
    is_foreign = bool(WIDE_RUN.search(claim)) != bool(WIDE_RUN.search(quotation))
    if any(not _stands(name.casefold(), around) for name in _names(claim, quotation, "" if is_foreign else sources)):
        return False
    if is_foreign:  # the words of another script cannot be compared
        return bool(_negations(claim)) <= bool(_negations(quotation))
    if len(terms) > 1 and terms.isdisjoint(quoted):  # one term may be a mere "yes"
        return False
    denied, quoted_denied = _negations(claim), _negations(quotation)
    asserted = [scope for scope in quoted_denied if len(scope & terms) * 2 >= min(len(scope), len(terms))]
    return _all_denied(denied, quoted_denied) and _all_denied(asserted, denied)


def _all_denied(scopes: list[frozenset[str]], denied: list[frozenset[str]]) -> bool:
    """Whether each scope has its own negation in the other text."""
    left = list(denied)
    for scope in scopes:
        found = next((other for other in left if not scope or not other or scope & other), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _content_words(text: str) -> list[str]:
    return [word for word in LATIN_WORD.findall(text.casefold()) if word not in STOP_WORDS]


def _content(text: str) -> float:
    return len(_content_words(text)) + len(re.findall(r"\d+", text)) + sum(map(len, WIDE_RUN.findall(text))) / 2


def _terms(text: str) -> frozenset[str]:
    """Return the numbers, the stems of the content words, and the pairs of characters of a text."""
    stems = {_stem(word) for word in _content_words(text)}
    return frozenset(numbers(text)) | stems | _pairs("".join(WIDE_RUN.findall(text)))


def _stem(word: str) -> str:
    return word[: max(4, len(word) - 3)]


def _pairs(run: str) -> frozenset[str]:
    return frozenset(run[at : at + 2] for at in range(len(run) - 1))


def _counts(claim: str, quotation: str) -> bool:
    """Whether each number of a claim occurs in the quotation, with its unit; texts are in lower case."""
    left = [*quantities(quotation), *map(Quantity, _singles(claim, quotation))]
    # Match numbers with a unit first: a number without one may have any unit.
    for counted in sorted(quantities(claim), key=lambda each: not each.units):
        agreeing = [each for each in left if counted.agrees(each)]
        if not agreeing:
            return False
        left.remove(next((each for each in agreeing if each.units & counted.units), agreeing[0]))
    quoted_rates = frozenset[str]().union(*rates(quotation))
    known = mentioned_units(quotation) if quoted_rates else quoted_rates
    return not quoted_rates or all(rate & known for rate in rates(claim))


def _singles(claim: str, quotation: str) -> Iterator[str]:
    """Yield the number one for each thing that the claim counts as one and the quotation mentions in the singular."""
    counted = {_stem(latin or wide) for latin, wide in ONE.findall(claim)}
    is_foreign = bool(WIDE_RUN.search(claim)) != bool(WIDE_RUN.search(quotation))
    for latin, wide in SINGLE.findall(quotation):
        if is_foreign or _stem(latin or wide) in counted:
            yield "1"


def _names(claim: str, quotation: str, sources: str) -> Iterator[str]:
    for found in NAME.finditer(claim):
        yield found[found.lastindex or 0]
    common = STOP_WORDS | WORDS.keys() | COMMON_FIRST
    for first in FIRST_WORD.finditer(claim):
        if first[1].lower() not in common and _is_name(first[1], claim[first.end() :], quotation, sources):
            yield first[1]
    for first in FIRST_WIDE.finditer(claim):
        if first["ja"] or any(other["name"] != first["name"] for other in _chinese_names(first["behind"], quotation)):
            yield first["ja"] or first["name"]


def _is_name(word: str, behind: str, quotation: str, sources: str) -> bool:
    """Whether the first word of a sentence, which is always capitalised, is a name."""
    if WIDE.match(behind.lstrip()):
        return True
    texts = f"{sources}\n{quotation}"
    if _is_ordinary(word, texts):
        return False
    if re.match(r"(?:'s)? [A-Z][a-z]", behind):
        return True
    verb = re.match(r"(?:'s\b| [a-z]+s\b| (?:has|was|will|can|may|must|and|or) |, )", behind)
    if sources and (verb or re.search(rf"[a-z,;] {word}\b", sources)):
        return True
    # The quotation says the same of another name.
    following = re.match(r"(?:'s)? [a-z]+", behind)
    others = set(re.findall(rf"\b([A-Z][\w'-]+?){re.escape(following[0])}\b", quotation) if following else ())
    return any(other.lower() not in STOP_WORDS and not _is_ordinary(other, texts) for other in others - {word})


def _is_ordinary(word: str, text: str) -> bool:
    """Whether a word, or its stem, occurs anywhere in lower case."""
    return _stands(_stem(word.lower()), text)


def _stands(word: str, text: str) -> bool:
    """Whether a word of a text begins with this one; three letters, such as `ann`, must match completely but for a plural."""
    if not LATIN_WORD.fullmatch(word):
        return word in text
    end = "" if len(word) > SHORT else "(?:'?s)?(?![a-z0-9])"
    return re.search(f"(?<![a-z0-9]){re.escape(word)}{end}", text) is not None


def _chinese_names(behind: str, quotation: str) -> Iterator[re.Match[str]]:
    """Find the names in front of the same two characters."""
    return re.finditer(rf"(?P<name>[{CHINESE_SURNAMES}][\u3400-\u9fff]{{1,2}}?)(?={re.escape(behind)})", quotation)


def _negations(text: str) -> list[frozenset[str]]:
    """Return what each negation of a text is about: the terms after it, or before it at the end of a Japanese verb."""
    folded = text.casefold()
    scopes: list[frozenset[str]] = []
    for found in LATIN_NEGATION.finditer(folded):
        words = _content_words(CLAUSE_END.split(folded[found.end() :])[0])[:SCOPE]
        words = words or _content_words(CLAUSE_END.split(folded[: found.start()])[-1])[-SCOPE:]
        scopes.append(frozenset(map(_stem, words)))
    if KANA.search(folded):
        folded = JAPANESE_OBLIGATION.sub("", folded)
        before = (JAPANESE_AUXILIARY.sub("", folded[: found.start()]) for found in JAPANESE_NEGATION.finditer(folded))
        return scopes + [_pairs(SENTENCE_END.split(each)[-1].replace("、", "")[-3 * SCOPE :]) for each in before]
    behind = (CLAUSE_END.split(folded[found.end() :])[0] for found in CHINESE_NEGATION.finditer(folded))
    return scopes + [_pairs(each[: 2 * SCOPE]) for each in behind]


# --- quantities of a text ---------------------------------------------------------------------------------------------
# Numbers as decimals that compare equal, and their units and currencies, the same for every spelling and language (`$5`,
# `5 dollars`, `5ドル`, `5美元`), in digits, in words (English, German, French) and in Chinese characters. No library reads all of
# these: text2num does not support Chinese characters, word2number only reads English.

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth"
)
FRENCH = "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
FRENCH_TENS = {"vingt": 20, "vingts": 20, "trente": 30, "quarante": 40, "cinquante": 50, "soixante": 60}
SCALES = {
    "hundred": 100, "hundredth": 100, "cent": 100, "cents": 100, "thousand": 1_000, "thousandth": 1_000, "mille": 1_000,
    "million": 10**6, "millionth": 10**6, "millions": 10**6, "millionen": 10**6, "billion": 10**9, "milliarde": 10**9,
}  # fmt: skip
WORDS = {
    **{word: number for number, word in enumerate(ONES.split())},
    **{word: number for number, word in enumerate(ORDINALS.split())},
    **{word: 10 * ten for ten, word in enumerate(TENS.split(), 2)},
    **{f"{word[:-1]}ieth": 10 * ten for ten, word in enumerate(TENS.split(), 2)},
    **{word: number for number, word in enumerate(FRENCH.split(), 2)}, **FRENCH_TENS, **SCALES,
}  # fmt: skip
ORDINAL_WORDS = frozenset(word for word in WORDS if word in ORDINALS.split() or word.endswith("th"))
CARDINALS, ENDS = "|".join(word for word in WORDS if word not in ORDINAL_WORDS), "|".join(sorted(ORDINAL_WORDS))
PARTS = {
    "dozen": "12", "dutzend": "12", "douzaine": "12", "twice": "2", "zweimal": "2", "double": "2", "doppelt": "2", "thrice": "3",
    "triple": "3", "half": "0.5", "halb": "0.5", "halbe": "0.5", "halben": "0.5", "halbes": "0.5", "moitié": "0.5", "demi": "0.5",
    "demie": "0.5", "半": "0.5", "quarter": "0.25", "quarters": "0.25", "viertel": "0.25", "quart": "0.25",
}  # fmt: skip
"""Words that are a number by themselves."""
GERMAN = {
    **{word: number for number, word in enumerate(
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn".split()
    )},
    **{word: 10 * ten for ten, word in enumerate("zwanzig dreissig vierzig fünfzig sechzig siebzig achtzig neunzig".split(), 2)},
    "ein": 1, "erste": 1, "dritte": 3, "siebte": 7,
}  # fmt: skip
GERMAN_SCALES = (("million", 10**6), ("tausend", 1_000), ("hundert", 100))
HAN_DIGITS = {**{digit: value for value, digit in enumerate("〇一二三四五六七八九")}, "零": 0, "两": 2, "兩": 2}
HAN_UNITS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8}
HAN = "".join((*HAN_DIGITS, *HAN_UNITS))
COUNTERS = "日天年月週周回次人名個个件時小分点泊枚本台歳岁円元度倍位周歩社者割番号号階级級条条項项部章頁页"
"""What is counted: before one of these, 一 百 千 万 alone are numbers, and elsewhere parts of words."""
NUMBER = re.compile(
    r"(?P<minus>(?<![\w.)\]-])-(?=\d)|(?<![\w.)\]-])- (?=\d+ ?°)|\b(?:minus|moins) (?=\d)|マイナス|零下|氷点下|[负負](?=[\d"
    + HAN
    + r"]))?"
    r"(?:(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:[.:]\d+)*)(?P<unit>[十百千万萬億亿]*)"
    rf"|(?P<han>[{HAN}]+)(?P<counted>(?<=第[一百千万])|(?=[{COUNTERS}つ%％]|[かカヶヵケ箇]月))?"
    rf"|\b(?P<words>(?:{ENDS}|(?:{CARDINALS})(?:(?:[ -]|\b(?:and|et)\b)+(?:{CARDINALS}))*(?:(?:[ -]|\band\b)+(?:{ENDS}))?))\b"
    rf"|(?P<part>\b(?:{'|'.join(PARTS)})\b|半(?=[日年月額额分数時时]))"
    r"|\b(?P<german>[a-zäöü]*(?:hundert|tausend|million|zig|ssig|zehn|zwei|drei|dritt|vier|fünf|sechs|sieb|acht|neun|elf|zwölf|eins|erste)[a-zäöü]*)\b)"
)
PRONOUN = re.compile(
    r"\s*(?:$|[^\w\s]|(?:of|another|who|that|which|is|are|was|has|can|may|must|should|will|would|could|might|or|and|in|to|by|for|from|"
    r"with|as|but|if|at|on|more|side|hand|time)\b)"
)
"""Words after which `one` is not a number."""


def numbers(text: str) -> list[str]:
    """Return the numbers of a text as decimals, ordinals as their number, times as hours and minutes.

    >>> sorted(numbers("1,250.50 at 09:30, twenty-five of 三百二十万, 30万 and two hundred and six"))
    ['1250.5', '206', '25', '300000', '3200000', '9:30']
    >>> numbers("-5 degrees, the twenty-first day, a dozen, fünfundzwanzig Tage, quatre-vingt-dix-sept jours, 第百回")
    ['-5', '21', '12', '25', '97', '100']
    """
    return [number for number, _, _ in find_numbers(text.casefold())]


def find_numbers(folded: str) -> Iterator[tuple[str, int, int]]:
    """Yield the numbers of a lower-case text, each with its start and end."""
    for match in NUMBER.finditer(folded):
        if number := _number(match, folded):
            yield f"-{number}" if match["minus"] else number, match.start(), match.end()


def _number(match: re.Match[str], text: str) -> str:
    if words := match["words"]:
        return _words(words, text[match.end() :])
    if han := match["han"]:
        return "" if len(han) == 1 and han in "一百千万萬億亿" and match["counted"] is None else str(_han(han))
    if part := match["part"]:
        return PARTS[part]
    if german := match["german"]:
        value = _german(german)
        return "" if value is None else str(value)
    digits = match["digits"].replace(",", "")
    if ":" in digits:
        return ":".join(part.lstrip("0") or "0" for part in digits.split(":"))
    if match["unit"]:
        if digits.count(".") > 1:
            return digits
        return f"{(Decimal(digits) * _han('一' + match['unit'])).normalize():f}"
    whole, point, rest = digits.partition(".")
    return (whole.lstrip("0") or "0") + (point + rest.rstrip("0") if rest.strip("0") else "")


def _words(words: str, rest: str) -> str:
    if words in ("one", "first", "second") and PRONOUN.match(rest):
        return ""
    value = part = 0
    for word in re.findall("[a-z]+", words):
        number = WORDS.get(word, 0)
        if number in SCALES.values() or (number == 20 and part % 100 == 4):  # quatre-vingt
            part = (part or 1) * number
        else:
            part += number
        if number >= 1_000:
            value, part = value + part, 0
    return str(value + part)


def _german(word: str) -> int | None:
    """Return the value of a German number word, also of its ordinal; None for any other word."""
    for stem in (word, re.sub(r"(?:s?te[nrsm]?)$", "", word), re.sub("[nrsm]$", "", word)):
        if (value := _german_cardinal(stem)) is not None and stem != "ein":
            return value
    return None


def _german_cardinal(word: str) -> int | None:
    for name, scale in GERMAN_SCALES:
        left, found, right = word.partition(name)
        if found:
            head = _german_cardinal(left) if left else 1
            tail = _german_cardinal(right.removeprefix("und")) if right else 0
            return None if head is None or tail is None else head * scale + tail
    ones, found, tens = word.partition("und")
    if found and ones in GERMAN and tens in GERMAN:
        return GERMAN[ones] + GERMAN[tens]
    return GERMAN.get(word)


def _han(text: str) -> int:
    if not set(text) & HAN_UNITS.keys():
        return int("".join(str(HAN_DIGITS[digit]) for digit in text))
    total = section = digit = 0
    for each in text:
        unit = HAN_UNITS.get(each)
        if unit is None:
            digit = HAN_DIGITS[each]
        elif unit < 10_000:
            section, digit = section + (digit or 1) * unit, 0
        else:
            total, section, digit = total + (section + digit or 1) * unit, 0, 0
    return total + section + digit


SPELLINGS = {
    "second": "second seconds sec secs s sekunde sekunden seconde secondes 秒 秒間 秒钟 秒鐘",
    "minute": "minute minutes min mins minuten 分 分間 分钟 分鐘",
    "hour": "hour hours hr hrs h stunde stunden heure heures 時間 小时 小時 钟头 鐘頭",
    "o'clock": "o'clock uhr 時 时 點 点",
    "night": "night nights nacht nächte nuit nuits 泊 晚",
    "day": "day days tag tage tagen jour jours journée journées 日 日間 天 营业日 営業日",
    "week": "week weeks woche wochen semaine semaines 週 週間 周 周間 星期 礼拜 禮拜",
    "month": "month months monat monate monaten mois か月 カ月 ヶ月 ケ月 ヵ月 箇月 か月間 カ月間 ヶ月間 个月 個月",
    "month of the year": "月",
    "year": "year years jahr jahre jahren ans année années 年 年間",
    "fiscal year": "年度",
    "euro": "€ euro euros eur ユーロ 欧元 歐元",
    "dollar": "$ us$ dollar dollars usd ドル 米ドル 美元 美金",
    "pound": "£ pound pounds quid gbp pfund ポンド 英镑 英鎊 lb lbs",
    "yen": "¥ yen yens jpy 円 圓 日元 日圆",
    "yuan": "¥ yuan cny rmb renminbi 元 块 塊 人民币 人民幣",
    "franc": "franc francs franken chf フラン 法郎",
    "won": "₩ won krw ウォン 韩元",
    "rupee": "₹ rupee rupees inr ルピー 卢比",
    "cent": "¢ cent cents セント 美分",
    "penny": "pence penny p ペンス 便士",
    "percent": "% percent per_cent prozent pour_cent パーセント",
    "point": "point points pts ポイント 点 點",
    "permille": "‰",
    "times": "times × 倍 回 次",
    "metre": "metre metres meter meters mètre mètres m メートル 米",
    "kilometre": "kilometre kilometres kilometer kilometers kilomètre kilomètres km キロ キロメートル 公里 千米",
    "centimetre": "centimetre centimetres centimeter centimeters cm センチ センチメートル 厘米 公分",
    "millimetre": "millimetre millimetres millimeter millimeters mm ミリ ミリメートル 毫米",
    "mile": "mile miles meile meilen マイル 英里",
    "foot": "foot feet ft フィート 英尺",
    "inch": "inch inches zoll インチ 英寸",
    "kilogram": "kilogram kilograms kilo kilos kg キロ キログラム 公斤 千克",
    "gram": "gram grams gramm gramme grammes g グラム 克",
    "milligram": "milligram milligrams mg ミリグラム 毫克",
    "tonne": "tonne tonnes ton tons t トン 吨",
    "litre": "litre litres liter liters l リットル 升",
    "millilitre": "millilitre millilitres milliliter milliliters ml ミリリットル 毫升",
    "degree": "degree degrees ° °c °f 度 grad degrés",
    "kilobyte": "kb kilobyte kilobytes",
    "megabyte": "mb megabyte megabytes メガバイト",
    "gigabyte": "gb gigabyte gigabytes ギガバイト",
    "terabyte": "tb terabyte terabytes テラバイト",
    "watt": "watt watts w ワット 瓦",
    "volt": "volt volts v ボルト 伏",
}  # fmt: skip
UNITS_OF_COUNTERS = {
    "person": "人 名 位", "case": "件", "machine": "台", "sheet": "枚 张 張", "volume": "冊 册", "long thing": "本",
    "floor": "階 楼 层 層", "age": "歳 才 岁 歲", "character": "字 文字",
}  # fmt: skip
"""Counters of Japanese and Chinese; other languages name the things themselves, in any words."""

UNITS: dict[str, frozenset[str]] = {}
for _name, _spellings in (SPELLINGS | UNITS_OF_COUNTERS).items():
    for _word in (each.replace("_", " ") for each in _spellings.split()):
        UNITS[_word] = UNITS.get(_word, frozenset[str]()) | {_name}

LATIN = re.compile(r"[a-zäöüéè' $]+\Z")
LATIN_UNITS = "|".join(sorted((re.escape(word) for word in UNITS if LATIN.match(word)), key=len, reverse=True))
SIGN_UNITS = "|".join(sorted((re.escape(word) for word in UNITS if not LATIN.match(word)), key=len, reverse=True))
BOUND = {
    "分": "(?!の|之)", "日": "(?![本曜])", "月": "(?!曜)", "本": "(?![社日部人当])", "人": "(?!民)", "年": "(?!度)",
}  # fmt: skip
"""Characters before which another character is not a unit."""
SMALL = """and or to a an the of in on at for by per than with from until but if as is are may can must be before after each every no
not then when where which who will would should has have had was were does this these those always across unless towards perhaps plus
minus less january february march april june july august september october november december""".split()
OTHER = rf"(?!(?:{'|'.join((*WORDS, *SMALL))})\b)[a-z]+"
"""A word between a number and its unit, as in `28 working days`."""
BEHIND = re.compile(
    r"(?:(?:st|nd|rd|th|er|e)(?=\s))?\)?"
    r"(?:(?:営業|勤務|労働|工作|营业|个工作|個工作|自然|暦)(?P<wide>日|時間|小时)"
    rf"|[ -]?(?P<sign>{'|'.join(f'{word}{BOUND.get(word, str())}' for word in SIGN_UNITS.split('|'))})"
    rf"|[ -]*(?:{OTHER}[ -]+){{0,2}}?(?P<latin>{LATIN_UNITS})(?![\w'])"
    rf"|\s?{OTHER}(?<=[a-z]{{3}}s)\b|[\u30a1-\u30fa\u3400-\u9fff](?<![以前超未約程内中後余強弱]))"
)
PART_OF = re.compile("[ -]*(?:of )?an? ")
BEFORE = re.compile(
    r"(?P<unit>[€£$¥₩₹]|us\$|(?<![a-z])(?:usd|eur|gbp|jpy|cny|rmb|chf|inr|krw)|人民币|人民幣)\s?(?:\d[\d.,]*\s?(?:-|to|bis|〜|~|至|到)\s?)?\Z"
)
RATE = re.compile(
    rf"(?P<before>[a-z%€£$]+|\d) (?:an?|per(?! cent)|each|every|pro|par) (?P<latin>{LATIN_UNITS})\b|/ ?(?P<slash>{LATIN_UNITS})\b"
    r"|\b(?P<adverb>hourly|daily|weekly|monthly|yearly|annual|annually)\b"
    r"|(?:毎|每|一(?=[日年月週周泊]))(?P<wide>日|天|週|周|月|年|時|时|泊|晚)"
)
ADVERBS = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annual": "year", "annually": "year"}  # fmt: skip
HAVE = frozenset(
    "have has had take takes took is was get gets for in within after of on at to and or half such".split()
)
"""Words after which `a day` is one day rather than each day."""
ANY = frozenset[str]()
REPEATED = frozenset({"twice", "thrice", "zweimal"})
ORDINAL = re.compile(rf"(?:{'|'.join(ORDINALS.split())}|(?<=\d)(?:st|nd|rd|th))\b")
COUNTED = frozenset({"day", *UNITS_OF_COUNTERS})
"""What an ordinal without a unit can count: a day of a month, or a thing."""


class Quantity(NamedTuple):
    """A number, its possible units (empty: unknown), and whether a word follows it that is not a unit."""

    number: str
    units: frozenset[str] = ANY
    counts_things: bool = False

    def agrees(self, other: "Quantity") -> bool:
        """Whether this quantity can be the other one; a number without a unit can stand for one with it.

        >>> [Quantity("5", UNITS["$"]).agrees(Quantity("5", UNITS[unit])) for unit in ("dollars", "euros")]
        [True, False]
        """
        if self.number != other.number:
            return False
        if self.units and other.units:
            return not self.units.isdisjoint(other.units)
        return not (self.units and other.counts_things and self.units.isdisjoint(UNITS_OF_COUNTERS))


def quantities(folded: str) -> list[Quantity]:
    """Return the numbers of a lower-case text with their units.

    >>> [(each.number, *sorted(each.units)) for each in quantities("£5 a day, thirty working days, 2万円, 3か月, 午後3時")]
    [('5', 'pound'), ('30', 'day'), ('20000', 'yen'), ('3', 'month'), ('3', "o'clock")]
    """
    return [_quantity(folded, *found) for found in find_numbers(folded)]


def _quantity(folded: str, number: str, start: int, end: int) -> Quantity:
    before, spelling, behind = folded[max(start - 30, 0) : start], folded[start:end], folded[end : end + 60]
    if found := BEFORE.search(before):
        return Quantity(number, UNITS[found["unit"]])
    if spelling in REPEATED:
        return Quantity(number, UNITS["times"])
    found = BEHIND.match(PART_OF.sub(" ", behind, count=1) if number.startswith("0.") else behind)
    is_ordinal = ORDINAL.search(spelling + behind[:2]) is not None
    if found is None:
        return Quantity(number, COUNTED if is_ordinal else ANY)
    word = found["sign"] or found["latin"] or found["wide"]
    return Quantity(number, UNITS[word]) if word else Quantity(number, COUNTED if is_ordinal else ANY, not is_ordinal)


def rates(folded: str) -> Iterator[frozenset[str]]:
    """Yield the units by which something is counted: `a year`, `per mile`, `monthly`, `毎月`.

    >>> [*map(sorted, rates("42 pounds a day, 45 pence per mile, and you have a week"))]
    [['day'], ['mile']]
    """
    for found in RATE.finditer(folded):
        if found["adverb"]:
            yield frozenset({ADVERBS[found["adverb"]]})
        elif wide := found["wide"]:
            yield frozenset({"month"}) if wide == "月" else UNITS[wide] - {"o'clock", "month of the year"}
        elif found["slash"]:
            yield UNITS[found["slash"]]
        elif found["before"] not in HAVE:
            yield UNITS[found["latin"]]


def mentioned_units(folded: str) -> frozenset[str]:
    """Return every unit that a text mentions, with or without a number."""
    return ANY.union(*(UNITS[found[0]] for found in MENTION.finditer(folded)), *rates(folded))


MENTION = re.compile(rf"\b(?:{LATIN_UNITS})(?![\w'])|{SIGN_UNITS}")
