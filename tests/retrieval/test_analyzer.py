"""One analyzer for all languages: equal words give equal terms, and marks lie where the words were written."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import InputError
from taiwa.retrieval.analyzer import LANGUAGES, Analyzer, dense

PLAIN = Analyzer()
TEXTS = st.text(st.sampled_from("aZéß1 ,'\n有給休暇のｱﾞカガ。한국ไทย_　\u0301\u3099ﬁ"), max_size=40)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("ｶﾞｲﾄﾞ", "ガイド"),
        ("café", "CAFE\u0301"),
        ("running days", "run day"),
        ("the company's", "the company"),
        ("the company\u2019s", "the company"),
        ("有給\n休暇", "有給休暇"),
        ("有給  \n\u3000休暇", "有給休暇"),
        ("snake_case", "snake case"),
        ("㈱", "(株)"),
    ],
)
def test_what_is_the_same_to_a_reader_gives_the_same_terms(one: str, other: str) -> None:
    assert PLAIN.terms(one) == PLAIN.terms(other)


@pytest.mark.parametrize(
    ("question", "content"),
    [
        ("May tenants smoke here?", ["tenant", "smoke"]),
        ("Is it possible to get a key?", ["key"]),
        ("What is due in May?", ["due", "may"]),
        ("May 12: what is due?", ["may", "12", "due"]),
        ("What is allowed?", []),
        ("蛇を飼ってもいいですか", ["蛇"]),
        ("たばこは許可されていますか", ["たば", "ばこ"]),
        ("有給休暇は何日ですか", ["有給", "給休", "休暇"]),
        ("飼えますか", ["飼"]),
        ("可以养蛇吗", ["养蛇"]),
        ("有效期", ["有效", "效期"]),
    ],
)
def test_the_content_of_a_question_has_no_words_that_fit_any_subject(question: str, content: list[str]) -> None:
    assert list(PLAIN.content(question)) == content


def test_text_without_spaces_becomes_characters_and_pairs() -> None:
    assert PLAIN.terms("休暇A暇") == ["休", "暇", "休暇", "a", "暇"]
    assert PLAIN.terms("ไทย") == ["ไ", "ท", "ย", "ไท", "ทย"]


def test_a_question_drops_words_that_say_nothing_unless_there_are_no_others() -> None:
    assert PLAIN.asked("What is the leave of the year?") == ["leav", "year"]
    assert PLAIN.asked("to be or not to be") == ["to", "be", "or", "not", "to", "be"]


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("How many days can I carry over?", ["day", "carri", "over"]),
        ("What's due in May in the US?", ["due", "may", "us"]),
        ("what may a hotel cost us?", ["hotel", "cost"]),
        ("due in may", ["due", "may"]),
        ("WHO guidelines", ["who", "guidelin"]),
        ("WHAT IS DUE?", ["due"]),
        ("how?", ["how"]),
        ("休暇について教えてください", ["休", "暇", "休暇"]),
        ("請求書を教えて", ["請", "求", "書", "請求", "求書", "書を"]),
        ("请问年假是什么?", ["年", "假", "年假"]),
        ("教えて", ["教", "教え", "えて"]),
        ("休\n教えて暇", ["休", "暇"]),
    ],
)
def test_a_question_drops_words_that_only_ask(question: str, asked: list[str]) -> None:
    assert PLAIN.asked(question) == asked


def test_words_that_ask_in_english_mean_something_elsewhere() -> None:
    assert "must" in Analyzer("german").asked("must trinken")


def test_a_question_drops_single_kana_and_keeps_them_in_pairs() -> None:
    assert PLAIN.asked("休暇の日") == ["休", "暇", "日", "休暇", "暇の", "の日"]
    assert PLAIN.asked("の") == ["の"]
    assert PLAIN.asked("カ") == ["カ"]


def test_a_language_has_its_own_stemmer_and_name() -> None:
    assert Analyzer("german").terms("Häuser") == Analyzer("german").terms("Haus")
    assert Analyzer("german").name != PLAIN.name
    assert Analyzer.named(Analyzer("german").name).language == "german"
    with pytest.raises(InputError, match="unknown stemmer language 'klingon'"):
        Analyzer("klingon")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_stems_and_knows_its_empty_words(language: str) -> None:
    assert Analyzer(language).asked("a word of 1 language")


@given(TEXTS)
def test_terms_are_words_or_at_most_two_characters_without_spaces(text: str) -> None:
    terms = PLAIN.terms(text)

    assert all(term and not any(sign.isspace() for sign in term) for term in terms)
    assert all(len(term) <= 2 for term in terms if dense(term))
    assert set(PLAIN.asked(text)) <= set(terms)


@given(TEXTS)
def test_marks_are_places_in_order_and_hold_what_was_asked(text: str) -> None:
    marks = PLAIN.marks(text, set(PLAIN.terms(text)))

    assert all(0 <= start < end <= len(text) for start, end in marks)
    assert all(first[1] < second[0] for first, second in pairwise(marks))
    assert bool(marks) == bool(PLAIN.terms(text))


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("Ｌｅａｖｅ and leaving", "leave", ["Ｌｅａｖｅ", "leaving"]),
        ("有給休\n暇の申請", "休暇の申請", ["休\n暇の申請"]),
        ("ｶﾞｲﾄﾞを見る", "ガイド", ["ｶﾞｲﾄﾞ"]),
        ("東京の京", "東京", ["東京"]),
        ("東京の京", "京", ["京", "京"]),
        ("nothing", "leave", []),
    ],
)
def test_what_was_asked_is_marked_where_it_was_written(text: str, query: str, marked: list[str]) -> None:
    assert [text[start:end] for start, end in PLAIN.marks(text, set(PLAIN.asked(query)))] == marked


def test_a_blob_is_kept_in_pieces() -> None:
    assert PLAIN.terms("x" * 95) == ["x" * 40, "x" * 40, "x" * 15]


@pytest.mark.parametrize(("one", "other"), [("İSTANBUL", "istanbul"), ("Istanbul", "İstanbul"), ("IŞIK", "ışık")])
def test_the_turkish_letters_are_found_in_either_case(one: str, other: str) -> None:
    assert Analyzer("turkish").terms(one) == Analyzer("turkish").terms(other)
    assert len(Analyzer().terms(one)) == 1


def test_vowel_signs_belong_to_their_word() -> None:
    assert len(Analyzer().terms("हिन्दी में शब्द")) == 3
