"""Convert text to terms, in the same way for all languages, for documents and for queries.

Width, case and ligatures are folded (NFKC). Words of scripts with spaces are stemmed (Snowball) and lose their accents. Text
without spaces becomes its characters and pairs of neighbours, without a dictionary: on Japanese questions that is within two
percent of the best morphological analysers, which need 200 MB.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import filterfalse
from operator import concat
from typing import TYPE_CHECKING, cast
from unicodedata import normalize

from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message
from taiwa.kernel.text import WORD_MARKS, fold

if TYPE_CHECKING:
    import tantivy

DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Characters of scripts without spaces between words, or with agglutinated endings, as a range of a regular expression."""
RUN = re.compile(rf"([{DENSE}]+)|((?![{DENSE}_])\w(?:(?![{DENSE}_])[\w{WORD_MARKS}])*)(?:'(?:s|t|re|ve|ll|d|m)(?!\w))?")
FOLDED_LINE = re.compile(rf"(?<=[{DENSE}])[ \t\u3000]*\n[ \t\u3000]*(?=[{DENSE}])")
DENSE_START = re.compile(f"[{DENSE}]")
ACCENTS = re.compile("[\u0300-\u036f]+")
PAIR = cast("Callable[[str, str], str]", concat)
PARTICLE = re.compile("[\u3041-\u309f\u30fc]").fullmatch
LONGEST = 40
"""Maximum characters of a word; longer runs are cut into pieces."""
LANGUAGES = tuple(
    "arabic danish dutch english finnish french german greek hungarian italian norwegian portuguese romanian russian "
    "spanish swedish tamil turkish".split()
)
WITHOUT_STOPS = frozenset({"arabic", "greek", "romanian", "tamil", "turkish"})
"""Languages whose stop words tantivy lacks."""


EARLIER = 0.5
FADING = 0.7
"""An earlier turn of the user's counts half, and each one before it 0.7 of that."""
SUBJECT = 0.8
"""The minimum weight of the turns that probably name the antecedent of a pronoun: the last one without a pronoun, and a
short first one, which usually names the subject.

nDCG@10 of this, of the decay alone, and of all user turns joined: CANARD .530, .402, .526; CAsT .832, .825, .764; iKAT .628, .628,
.515; MTRAG .528, .539, .394, where the subject changes within a dialogue.
"""
SHORT = 5
"""The maximum number of terms of a first turn that only names a subject."""
ANSWERED = 0.05
"""The last answer has a small weight; it helps to resolve `it`."""
MOST_TERMS = 128
"""Maximum number of query terms; those with the least weight are dropped."""

POINTING = re.compile(
    r"\b(?:this|that|these|those)\s+(?P<noun>[a-z]{3,})|"
    r"\b(?P<pronoun>it|its|they|them|their|he|him|his|she|her|hers|this|that|these|those|the same|the former|the latter)\b|"
    r"(?P<ja>(?:これ|それ|あれ)(?:ら)?|(?:この|その|あの)(?=[\u4e00-\u9fff\u30a1-\u30fa])|(?:彼女|彼)(?:ら)?(?=[はがをにのも])|同じ(?:もの|やつ))|"
    r"(?P<zh>这(?:个|些|种|项)?|那(?:个|些|种|项)?|[它他她](?:们)?|其(?=[\u4e00-\u9fff]))",
    re.IGNORECASE,
)
EMPTY = re.compile(
    r"\b(?:is|was|does|would)\s+it\s+(?:possible|allowed|ok|okay|necessary|true|take|cost|matter)\b|"
    r"\bit\s+(?:is|was|takes|seems)\b|\b(?:so|such|now)\s+that\b|\bthat\s+(?:is|are|was|were|can|will|has|have|i|we|you|the|a)\b|"
    r"それ(?:では|で|から|とも|ぞれ|ほど|なら)|これ(?:から|まで)|その(?:ほか|他|まま|うち|後)|このたび|那么|这样|那样|其他|其中|其实|尤其|其余",
    re.IGNORECASE,
)
"""Expressions that look like references but are not."""
SENTENCE_ENDS = ".!?。！？\n"

ASKING = frozenset(
    "what when where which who whom whose why how do doe did can could should would will may is are wa be have has ha i my me "
    "we you tell show explain pleas about and but or on in of to for with "
    "long much mani often far old big soon late earli high".split()
)
"""Question words."""


class Analyzer:
    """Split text into terms. Its `name` is stored with an index, which is rebuilt when it changes.

    >>> Analyzer().terms("Cats' whiskers、東京タワー")
    ['cat', 'whisker', '東', '京', 'タ', 'ワ', 'ー', '東京', '京タ', 'タワ', 'ワー']
    """

    def __init__(self, language: str = "english") -> None:
        if language not in LANGUAGES:
            raise InputError(f"unknown stemmer language {language!r}; choose one of {', '.join(LANGUAGES)}")
        self.language = language
        self.name = f"pairs-2/{language}"
        self._stem, self._is_stop = _stemmer(language), _stops(language)

    def __repr__(self) -> str:
        return f"Analyzer({self.language!r})"

    @classmethod
    def named(cls, name: str) -> "Analyzer":
        """Return the analyzer of that name, or its successor for the same language."""
        return cls(name.rpartition("/")[2])

    def terms(self, text: str) -> list[str]:
        """Return all terms of a text, with repetitions."""
        return self._split(_folded(text))

    def asked(self, text: str) -> list[str]:
        """Return the terms of a question: without words like `the` or `how many` and single kana like `の`, unless there is
        nothing else.

        Pairs with the kana stay. On Japanese questions this changes nDCG@10 by 0.001 and saves a fifth of the time.
        """
        plain = without_askwords(text, english=self.language == "english")
        return self._telling(_folded(plain)) or self._telling(_folded(text)) or self.terms(text)

    def content(self, text: str) -> tuple[str, ...]:
        """Return the terms of a question that say what it is about, each once; () if it has only words that fit any subject.

        Those are function words, modals, words of permission, necessity and possibility, verbs of saying and knowing, and
        light verbs. In Japanese and Chinese the content is pairs of Chinese characters or katakana, a single one in the place of a
        noun, and a word in hiragana that begins a run.

        >>> Analyzer().content("May I keep a snake?"), Analyzer().content("蛇を飼ってもいいですか")
        (('snake',), ('蛇',))
        """
        plain = without_askwords(text, english=self.language == "english")
        folded = GENERIC_JAPANESE.sub(PARTED, _folded(plain))
        if len(folded) > LONGEST_COMPOUND and not KANA.search(text):
            folded = GENERIC_CHINESE.sub(PARTED, folded)
        if self.language == "english":
            folded = SENTENCE_MAY.sub(PARTED, folded) if "may" in folded else folded
            folded = GENERIC_ENGLISH.sub(PARTED, folded)
        found: list[str] = []
        stems: list[str] = []
        for match in RUN.finditer(folded):
            if match[2]:
                found += () if self._is_stop(match[2]) else self._split(match[0])
                continue
            is_whole = folded[match.start() - 1 : match.start()] != PARTED
            if is_whole and (word := KANA_WORD.match(match[1])):
                found += map(PAIR, word[0], word[0][1:])
            for part in NOUN_PART.finditer(match[1]):
                if len(part[0]) > 1:
                    found += map(PAIR, part[0], part[0][1:])
                else:
                    (stems if INFLECTED.match(match[1], part.end()) else found).append(part[0])
        return tuple(dict.fromkeys(found or stems))

    def marks(self, text: str, terms: "frozenset[str] | set[str]") -> tuple[tuple[int, int], ...]:
        """Return the ranges (start, end) of a text that contain any of the terms; adjacent ranges are merged.

        In a run without spaces pairs count; a single character counts only if it is isolated or the question is one character.
        """
        spans: list[tuple[int, int]] = []
        for start, end in self._places(text, terms):
            if spans and start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((start, end))
        return tuple(spans)

    def weigh(self, query: str, history: Sequence[Message] = ()) -> dict[str, float]:
        """Return the terms of a question with their weights: 1 per occurrence in the question, less for earlier turns.

        >>> from taiwa.kernel.messages import user
        >>> Analyzer().weigh("and on Sunday?", [user("opening hours on Monday")])
        {'sunday': 1.0, 'open': 0.5, 'hour': 0.5, 'monday': 0.5}
        >>> Analyzer().weigh("Who approves it?", [user("a hotel in Dublin"), user("How long in advance?")])
        {'approv': 1.0, 'advanc': 0.8, 'hotel': 0.8, 'dublin': 0.8}
        """
        weights = {term: float(times) for term, times in Counter(self.asked(query)).items()}
        questions = [message.text for message in history if message.role == "user"]
        answers = [message.text for message in history if message.role == "assistant"]
        for age, text in enumerate(reversed(questions)):
            _add(weights, self.asked(text), EARLIER * FADING**age)
        if questions and _has_reference(query):
            _add(weights, self.asked(next(filterfalse(_has_reference, reversed(questions)), questions[0])), SUBJECT)
            if len(first := self.asked(questions[0])) <= SHORT:
                _add(weights, first, SUBJECT)
        if answers:
            _add(weights, self.asked(answers[-1]), ANSWERED)
        heaviest = sorted(weights, key=lambda term: -weights[term])[:MOST_TERMS]
        return weights if len(heaviest) == len(weights) else {term: weights[term] for term in heaviest}

    def unresolved_references(self, query: str, history: Sequence[Message] = ()) -> tuple[str, ...]:
        """Return the references of a question without an antecedent: `that form` if no form was mentioned.

        Any history resolves a pronoun, and so do terms before it in the question. What stands in an earlier sentence of the question
        resolves every reference: `My lamp blinks. What does that mean?`
        """
        text = EMPTY.sub(lambda expression: " " * len(expression[0]), query)
        before = {term for message in history for term in self.terms(message.text)}
        references: list[str] = []
        for pointing in POINTING.finditer(text):
            before_it = text[: pointing.start()]
            earlier = before_it[: max(before_it.rfind(mark) for mark in SENTENCE_ENDS) + 1]
            if any(term not in ASKING for term in self.asked(earlier)):
                continue
            own = [term for term in self.asked(before_it) if term not in ASKING]
            noun = pointing["noun"]
            known = before | set(own)
            resolved = bool(set(self.terms(noun)) & known) if noun else bool(known)
            if not resolved:
                references.append(" ".join(pointing[0].split()))
        return tuple(references)

    def _telling(self, folded: str) -> list[str]:
        without_stops = RUN.sub(lambda run: " " if run[2] and self._is_stop(run[2]) else run[0], folded)
        return [term for term in self._split(without_stops) if not PARTICLE(term)]

    def _split(self, folded: str) -> list[str]:
        terms: list[str] = []
        add, stem = terms.append, self._stem
        for run, word in RUN.findall(folded):
            if run:
                terms += run
                terms += map(PAIR, run, run[1:])
            elif len(word) <= LONGEST:
                add(stem(word))
            else:
                terms += (word[at : at + LONGEST] for at in range(0, len(word), LONGEST))
        return terms

    def _places(self, text: str, terms: "frozenset[str] | set[str]") -> Iterator[tuple[int, int]]:
        folded, places = _folded_with_places(text)
        pairs = any(len(term) == 2 and dense(term) for term in terms)
        for match in RUN.finditer(folded):
            start, run = match.start(), match[1]
            if not run:
                if self._stem(match[2][:LONGEST]) in terms:
                    yield places[start][0], places[match.end(2) - 1][1]
                continue
            size = 2 if pairs else 1
            for at in range(len(run) - size + 1):
                if run[at : at + size] in terms:
                    yield places[start + at][0], places[start + at + size - 1][1]


def _has_reference(text: str) -> bool:
    return POINTING.search(EMPTY.sub(" ", text)) is not None


def _add(weights: dict[str, float], terms: Sequence[str], weight: float) -> None:
    """Use the maximum weight of a term: a topic of every turn must not outweigh the current question."""
    for term in terms:
        weights[term] = max(weights.get(term, 0.0), weight)


def dense(text: str) -> bool:
    """Whether a text begins with a character of a script without spaces."""
    return DENSE_START.match(text) is not None


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    plain = fold(text).replace("\u2019", "'")
    # Text without spaces continues across a line break.
    return FOLDED_LINE.sub("", plain) if "\n" in plain else plain


CLUSTER = re.compile("[\\S\\s][\u0300-\u036f\u3099\u309a\uff9e\uff9f]*")
"""A character with its combining characters."""


def _folded_with_places(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The folded text, and the range of each of its characters in the original text."""
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    for cluster in CLUSTER.finditer(text):
        part = fold(cluster[0]).replace("\u2019", "'")
        parts.append(part)
        places += [cluster.span()] * len(part)
    whole = "".join(parts)
    for line in reversed([*FOLDED_LINE.finditer(whole)]):
        del places[line.start() : line.end()]
    return FOLDED_LINE.sub("", whole), places


@cache
def _filtered(language: str, name: str) -> "tantivy.TextAnalyzer":
    import tantivy  # 17 MB that only documents need

    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(getattr(tantivy.Filter, name)(language)).build()


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    @lru_cache(maxsize=1 << 17)
    def stem(word: str) -> str:
        if word.isdigit():
            return word
        stemmed = "".join(_filtered(language, "stemmer").analyze(word)) or word
        return (
            stemmed
            if stemmed.isascii()
            else normalize("NFC", ACCENTS.sub("", normalize("NFD", stemmed))).replace("ı", "i")
        )

    return stem


@cache
def _stops(language: str) -> Callable[[str], bool]:
    @lru_cache(maxsize=1 << 12)
    def is_stop(word: str) -> bool:
        return language not in WITHOUT_STOPS and not _filtered(language, "stopword").analyze(word)

    return is_stop


ASKING_ENGLISH = re.compile(
    r"\b(?:how (?:many|much|long|often|far|old|big|soon|late|early|high)|"
    r"what|which|who|whom|whose|when|where|why|how|do|does|did|can|could|should|would|must|i|me|my|we|our|you|your|am|were|"
    r"been|have|has|had|please|tell|about|from|so|than|any|some|"
    r"(?-i:(?<!\bin )(?<!\bby )(?<!\bof )(?<!\bsince )may|might|us))(?![\w\u0300-\u036f])(?:['\u2019](?:s|t|re|ve|ll|d|m)(?!\w))?",
    re.IGNORECASE,
)
"""`May` and `US` are a month and a country."""
ABOUT = r"(?:について|に関して|のことを?)?"
ASKING_CJK = re.compile(
    rf"(?:{ABOUT}(?:詳しく|くわしく)?(?:教え|おしえ)て(?:ください|下さい|くれますか|くれませんか|もらえますか|ほしい|欲しい)?(?:です)?|"
    rf"{ABOUT}(?:知り|聞き|伺い)たい(?:です|のですが|んですが)?|"
    r"どう(?:すれば|したら)(?:よい|いい|良い)?(?:の)?(?:です|でしょう)?か?|は?(?:何|なん|なに)(?:です|でしょう)か|でしょうか|"
    r"(?:です|ます|ました)か(?=[?？。\s]|$)|ください|下さい|"
    r"请问|请?(?:告诉我|介绍一下)|是什么|什么是|怎么(?:样|办)?|[吗呢](?=[?？。\s]|$))(?![\u3099\u309a\uff9e\uff9f])"
)
GENERIC_ENGLISH = re.compile(
    r"\b(?:"
    # auxiliaries, modals and semi-modals
    r"be|being|am|been|do|does|did|done|doing|have|has|had|having|will|would|shall|should|can|cannot|could|might|must|ought|"
    r"needs?|needed|wants?|wanted|wish|able|supposed|going|"
    # permission, necessity, possibility
    r"allow(?:s|ed|ing)?|permit(?:s|ted|ting)?|permissible|forbidden|prohibited|possible|impossible|necessary|requir(?:e|es|ed)|"
    r"ok|okay|fine|"
    # saying and knowing
    r"tells?|told|says?|said|knows?|known|explain(?:s|ed)?|describe[sd]?|shows?|shown|means?|meant|answers?|questions?|information|"
    # light verbs
    r"gets?|got|getting|gives?|given?|giving|goes?|went|gone|comes?|came|coming|makes?|made|making|takes?|took|taken|taking|"
    r"puts?|putting|keeps?|kept|keeping|lets?|letting|uses?|used|using|"
    # pronouns, quantifiers, adverbs and nouns of any subject
    r"he|him|his|she|her|hers|it|its|us|mine|ours|yours|one|ones|someone|anyone|everyone|nobody|somebody|anybody|everybody|"
    r"something|anything|nothing|everything|all|each|every|both|few|more|most|less|least|other|others|another|same|own|also|too|"
    r"very|just|only|really|still|even|ever|never|always|here|now|again|if|while|when|whether|because|things?|ways?|kinds?|sorts?|"
    r"much|many|long|far|between|after|before|during|under|over|out|up|down|off|through"
    r")(?![\w\u0300-\u036f])(?:'(?:s|t|re|ve|ll|d|m)(?!\w))?"
)
"""Words that fit any subject, by class, in lower case."""
SENTENCE_MAY = re.compile(r"(?:^|(?<=[.?!|]))\s*may\b(?!\s+\d)")
"""`may` at the beginning of a sentence is rather the modal than the month."""
GENERIC_JAPANESE = re.compile(
    r"(?:"
    # permission, necessity, possibility
    r"許可|可能|不可|必要|禁止|大丈夫|義務|"
    # question words and pronouns
    r"何(?:人|日|時|分|年|月|回|個|円|歳|か|を|が|で|に)?|誰|私|僕|俺|自分|どこ|いつ|だれ|どれ|どの(?:くらい|よう)?|どう|どんな|なぜ|いくら|いくつ|"
    r"なに|なん|これ|それ|あれ|この|その|あの|ここ|そこ|もし|また|ほか|"
    # saying and knowing, light verbs, formal nouns
    r"教え|知り|聞き|情報|質問|場合|方法|使用|利用|します|する|した|して|できます|できる|できません|でき|あります|ある|いる|います"
    r")"
)
"""Japanese expressions that fit any subject."""
GENERIC_CHINESE = re.compile(
    # permission, necessity, possibility
    r"可以|允许|允許|能够|能否|可否|可能|需要|必须|必要|应该|禁止|不可|"
    # question words and pronouns
    r"什么|哪里|哪儿|哪些|哪个|哪|谁|怎么|怎样|如何|为什么|为何|多少|多久|几个?|我们?|你们?|您|他们?|她们?|它们?|这个?|那个?|"
    # saying and knowing, light verbs, formal nouns
    r"告诉|知道|介绍|请|问题|情况|时候|使用|利用|"
    # particles, auxiliaries and conjunctions
    r"会不会|能不能|要不要|有没有|是不是|[的了吗呢吧么着过和与或也就还很是在有把被让]"
)
"""Chinese expressions that fit any subject."""
LONGEST_COMPOUND = 3
"""A text of at most this number of Chinese characters is a compound (有效期), which is not divided."""
KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa]")
KANA_WORD = re.compile(r"[\u3041-\u3096\u30fc]{2,}?(?=[はがをのにへともでや]|[^\u3041-\u3096\u30fc]|$)")
"""A word in hiragana at the beginning of a run."""
NOUN_PART = re.compile(
    r"[\u3005\u30a1-\u30fa\u30fc\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3\U00020000-\U0003ffff]+|[\u0e00-\u109f\u1780-\u17ff]{2,}"
)
INFLECTED = re.compile(r"[\u3041-\u3096](?<![はがをのにへともでやか])")
"""The ending of a verb or adjective."""
PARTED = "|"
"""Replaces removed words, so that the words around them do not become neighbours, not even across a line."""


def without_askwords(text: str, *, english: bool) -> str:
    """Remove question words from a question; names in capitals are kept.

    >>> without_askwords("休暇について教えてください", english=True), without_askwords("What is the WHO?", english=True)
    ('休暇|', '| is the WHO?')
    """
    text = ASKING_CJK.sub(PARTED, text)
    if not english:
        return text
    shouted = text.isupper()
    return ASKING_ENGLISH.sub(lambda word: word[0] if _is_name(word[0]) and not shouted else PARTED, text)


def _is_name(word: str) -> bool:
    return len(word) > 1 and word.isupper()
