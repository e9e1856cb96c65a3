"""Computed fields."""

import pytest
from hypothesis import given

from taiwa.conversation.state import COMPUTED_FIELDS, StateField, TurnContext
from taiwa.kernel.serialization import canonical
from taiwa.kernel.text import estimate_tokens, guess_language
from tests.conversation.apps import app, talked
from tests.strategies import texts


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("今日は良い天気ですね", "ja"),
        ("ｶﾀｶﾅ", "ja"),
        ("東京タワー", "ja"),
        ("今天天气很好", "zh"),
        ("오늘 날씨가 좋네요", "ko"),
        ("Сегодня хорошая погода", "ru"),
        ("الطقس جميل اليوم", "ar"),
        ("מזג האוויר יפה היום", "he"),
        ("Ο καιρός είναι καλός", "el"),
        ("วันนี้อากาศดี", "th"),
        ("आज मौसम अच्छा है", "hi"),
        ("The weather is nice today", "en"),
        ("Hello", "en"),
        ("Ｈｅｌｌｏ", "en"),
        ("Das Wetter ist heute schön", "de"),
        ("Il fait beau dans le sud, je ne sais pas", "fr"),
        ("El tiempo es bueno y no llueve", "es"),
        ("O tempo está bom e não chove", "pt"),
        ("Il tempo è bello e non piove", "it"),
        ("Dzień dobry, jak się masz?", "und"),
        ("12:30 – 14:00 ☀", "und"),
        ("", "und"),
        ("What does 改善 mean in the book?", "en"),
        ("「改善」とはどういう意味？ Kaizen", "ja"),
        ("文(sentence)を書く。", "ja"),
    ],
)
def test_the_language_is_known_by_script_and_common_words(text: str, language: str) -> None:
    assert guess_language(text) == language


@given(texts)
def test_every_text_has_a_language_and_a_size(text: str) -> None:
    assert guess_language(text).isalpha()
    assert 0 <= estimate_tokens(text) <= len(text)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("日本語", 2), ("日本語abcd", 3)])
def test_tokens_are_estimated_by_width(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_computed_fields_follow_the_conversation() -> None:
    fields = [StateField(name, reduce=name) for name in COMPUTED_FIELDS]

    state = talked(app(*fields), ("Hello there", "Hi", {}), ("元気かい", "はい。", {})).state

    assert state == {"turn_count": 2, "language": "ja", "tokens": 3 + 1 + 3 + 2, "characters": 11 + 2 + 4 + 3}


@pytest.mark.parametrize("name", sorted(COMPUTED_FIELDS))
@given(user=texts, answer=texts)
def test_computed_values_can_be_stored(name: str, user: str, answer: str) -> None:
    first = COMPUTED_FIELDS[name].next(TurnContext(1, user, answer, COMPUTED_FIELDS[name].start))

    assert canonical(COMPUTED_FIELDS[name].next(TurnContext(2, user, answer, first)))
