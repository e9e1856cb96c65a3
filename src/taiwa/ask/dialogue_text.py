"""What was said, as material for a model to judge: one line of JSON, in which nothing can end early or pose as another turn."""

import json
from collections.abc import Sequence

from taiwa.kernel.messages import Message, user
from taiwa.kernel.records import Json
from taiwa.kernel.text import guess_language, strip_control

__all__ = ["dialogue_message", "last_words", "reply_language", "turns", "user_texts"]


TONGUES = ("ja", "zh", "en")

FEW_CHARACTERS = 12
"""A Japanese text of more characters has kana."""


def turns(dialogue: Sequence[Message]) -> tuple[Message, ...]:
    """The turns of the user and the assistant that have words, oldest first."""
    return tuple(each for each in dialogue if each.role in ("user", "assistant") and each.text.strip())


def user_texts(dialogue: Sequence[Message]) -> tuple[str, ...]:
    """What the user said, oldest first, without empty turns."""
    return tuple(message.text for message in dialogue if message.role == "user" and message.text.strip())


def last_words(dialogue: Sequence[Message]) -> str:
    """What the user said last."""
    said = user_texts(dialogue)
    return said[-1] if said else ""


def reply_language(dialogue: Sequence[Message], wish: str = "", locale: str = "") -> str:
    """Return the language to reply in (ja, zh, en): the one wished for, else that of the user's last words that show one.

    Chinese characters alone are Japanese where the user wrote kana before, and a few of them where `locale` is Japanese or where
    they do not exist in simplified Chinese.

    >>> reply_language((user("予約"),)), reply_language((user("休暇"),), locale="ja"), reply_language((user("休暇"),), locale="zh"), reply_language((user("预约"),))
    ('ja', 'ja', 'zh', 'zh')
    """
    if wish in TONGUES:
        return wish
    texts = user_texts(dialogue)[::-1]
    found = [guess_language(text) for text in texts]
    known, text = next((each for each in zip(found, texts, strict=True) if each[0] != "und"), ("en", ""))
    if known == "zh" and ("ja" in found or _is_japanese(text, locale)):
        return "ja"
    return known if known in TONGUES else "en"


def _is_japanese(han: str, locale: str) -> bool:
    """Whether Chinese characters without kana are Japanese, by the characters of the national standards and the locale."""
    if locale == "zh" or len(han.strip()) > FEW_CHARACTERS or not _encodable(han, "cp932"):
        return False
    return locale == "ja" or not _encodable(han, "gb2312")


def _encodable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def dialogue_message(dialogue: Sequence[Message], **more: Json) -> Message:
    """Make the message that holds the dialogue, and what else is given of it.

    `<` is written as its escape, so that no server reads a mark of its chat template out of what somebody said.
    """
    said: list[Json] = [{"role": each.role, "text": strip_control(each.text)} for each in turns(dialogue)]
    whole: dict[str, Json] = {"dialogue": said, **{name: part for name, part in more.items() if part}}
    return user(json.dumps(whole, ensure_ascii=False).replace("<", "\\u003c"))
