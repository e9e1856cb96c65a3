"""Read a dialogue: its texts, the language to reply in, and its form for a model that assesses it."""

import json
from collections.abc import Sequence

from taiwa.kernel.messages import Message, user
from taiwa.kernel.records import Json
from taiwa.kernel.text import guess_language, strip_control

REPLY_LANGUAGES = ("ja", "zh", "en")

MAX_WITHOUT_KANA = 12
"""A Japanese text of more characters contains kana."""


def turns(dialogue: Sequence[Message]) -> tuple[Message, ...]:
    """Return the turns of the user and the assistant that are not empty, oldest first."""
    return tuple(each for each in dialogue if each.role in ("user", "assistant") and each.text.strip())


def user_texts(dialogue: Sequence[Message]) -> tuple[str, ...]:
    """Return the texts of the user that are not empty, oldest first."""
    return tuple(message.text for message in dialogue if message.role == "user" and message.text.strip())


def last_user_text(dialogue: Sequence[Message]) -> str:
    """Return the last text of the user, "" if there is none."""
    texts = user_texts(dialogue)
    return texts[-1] if texts else ""


def reply_language(dialogue: Sequence[Message], preferred: str = "", locale: str = "") -> str:
    """Return the language to reply in (ja, zh, en): the preferred one, else that of the user's last text in a known language.

    Chinese characters alone are Japanese if the user wrote kana before; a short text of them also if `locale` is Japanese or if
    they do not exist in simplified Chinese.

    >>> reply_language((user("予約"),)), reply_language((user("休暇"),), locale="ja"), reply_language((user("休暇"),), locale="zh"), reply_language((user("预约"),))
    ('ja', 'ja', 'zh', 'zh')
    """
    if preferred in REPLY_LANGUAGES:
        return preferred
    texts = user_texts(dialogue)[::-1]
    languages = [guess_language(text) for text in texts]
    known, text = next((each for each in zip(languages, texts, strict=True) if each[0] != "und"), ("en", ""))
    if known == "zh" and ("ja" in languages or _is_japanese(text, locale)):
        return "ja"
    return known if known in REPLY_LANGUAGES else "en"


def _is_japanese(han: str, locale: str) -> bool:
    """Whether Chinese characters without kana are Japanese, by the characters of the national standards and the locale."""
    if locale == "zh" or len(han.strip()) > MAX_WITHOUT_KANA or not _encodable(han, "cp932"):
        return False
    return locale == "ja" or not _encodable(han, "gb2312")


def _encodable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def dialogue_message(dialogue: Sequence[Message], **more: Json) -> Message:
    """Return the message that contains the dialogue and other material as one line of JSON.

    No text in it can end early or pose as another turn; `<` is escaped, so that no server finds a mark of its chat template.
    """
    texts: list[Json] = [{"role": each.role, "text": strip_control(each.text)} for each in turns(dialogue)]
    whole: dict[str, Json] = {"dialogue": texts, **{name: part for name, part in more.items() if part}}
    return user(json.dumps(whole, ensure_ascii=False).replace("<", "\\u003c"))
