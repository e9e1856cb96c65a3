"""Check citations: whether the words that a model quotes are in the passage and support its claim, and how far its text is safe.

`find_quotation` ignores what copying changes (widths, case, white space, quotation marks, dashes, emphasis), and nothing else: a
quotation that is not found supports no claim. `supports` compares a claim with a quotation that was found. `answer.check_answer`
applies both to an answer.
"""

import re
from collections.abc import Iterator
from unicodedata import normalize

from taiwa.ask.quantities import WORDS as NUMBER_WORDS
from taiwa.ask.quantities import Quantity, mentioned_units, numbers, quantities, rates
from taiwa.kernel.text import CONTROL

CLUSTER = re.compile("[\\S\\s][\u0300-\u036f\u3099\u309a\uff9e\uff9f]*")
"""A character with the combining marks behind it."""

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
"""What counts one thing in a claim, and what can say so in a quotation."""

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
    """Whether a quotation can support a claim: it has content, and lacks nothing of the claim that would make it another one.

    Every number, date and name of the claim stands in the quotation (a name may stand in the `heading` of its passage), and what
    the one negates, the other does not assert. A claim in the language of the quotation shares a word or number with it. Words of
    `sources` with a capital inside a sentence are names at the beginning of a claim too.

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
    if is_foreign:  # its words cannot be compared
        return bool(_negations(claim)) <= bool(_negations(quotation))
    if len(terms) > 1 and terms.isdisjoint(quoted):  # one term may be a mere "yes"
        return False
    denied, quoted_denied = _negations(claim), _negations(quotation)
    asserted = [scope for scope in quoted_denied if len(scope & terms) * 2 >= min(len(scope), len(terms))]
    return _all_denied(denied, quoted_denied) and _all_denied(asserted, denied)


def _all_denied(scopes: list[frozenset[str]], denied: list[frozenset[str]]) -> bool:
    """Whether each scope has a negation of its own among those of the other text."""
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
    """Whether each number of a claim stands in the quotation, with its unit; texts in small letters."""
    left = [*quantities(quotation), *map(Quantity, _singles(claim, quotation))]
    # Those with a unit first, each with one that has it: a number without may be that of any unit.
    for counted in sorted(quantities(claim), key=lambda each: not each.units):
        agreeing = [each for each in left if counted.agrees(each)]
        if not agreeing:
            return False
        left.remove(next((each for each in agreeing if each.units & counted.units), agreeing[0]))
    quoted_rates = frozenset[str]().union(*rates(quotation))
    known = mentioned_units(quotation) if quoted_rates else quoted_rates
    return not quoted_rates or all(rate & known for rate in rates(claim))


def _singles(claim: str, quotation: str) -> Iterator[str]:
    """Yield the number one for each thing that the claim counts so, and of which the quotation speaks in the singular."""
    counted = {_stem(latin or wide) for latin, wide in ONE.findall(claim)}
    is_foreign = bool(WIDE_RUN.search(claim)) != bool(WIDE_RUN.search(quotation))
    for latin, wide in SINGLE.findall(quotation):
        if is_foreign or _stem(latin or wide) in counted:
            yield "1"


def _names(claim: str, quotation: str, sources: str) -> Iterator[str]:
    for found in NAME.finditer(claim):
        yield found[found.lastindex or 0]
    common = STOP_WORDS | NUMBER_WORDS.keys() | COMMON_FIRST
    for first in FIRST_WORD.finditer(claim):
        if first[1].lower() not in common and _is_name(first[1], claim[first.end() :], quotation, sources):
            yield first[1]
    for first in FIRST_WIDE.finditer(claim):
        if first["ja"] or any(other["name"] != first["name"] for other in _chinese_names(first["behind"], quotation)):
            yield first["ja"] or first["name"]


def _is_name(word: str, behind: str, quotation: str, sources: str) -> bool:
    """Whether the first word of a sentence, which has a capital anyway, is a name."""
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
    """Whether a word stands somewhere in small letters, at least its stem."""
    return _stands(_stem(word.lower()), text)


def _stands(word: str, text: str) -> bool:
    """Whether a word of a text begins so; three letters, such as `ann`, must be all of it but a plural."""
    if not LATIN_WORD.fullmatch(word):
        return word in text
    end = "" if len(word) > SHORT else "(?:'?s)?(?![a-z0-9])"
    return re.search(f"(?<![a-z0-9]){re.escape(word)}{end}", text) is not None


def _chinese_names(behind: str, quotation: str) -> Iterator[re.Match[str]]:
    """Find the names in front of the same two characters."""
    return re.finditer(rf"(?P<name>[{CHINESE_SURNAMES}][\u3400-\u9fff]{{1,2}}?)(?={re.escape(behind)})", quotation)


def _negations(text: str) -> list[frozenset[str]]:
    """Return what each negation of a text is about: the terms behind it, or before it at the end of a Japanese verb."""
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
