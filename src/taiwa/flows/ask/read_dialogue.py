"""Read a dialogue without a model: its texts, the language to reply in, small talk, and the choice of an option.

The patterns of small talk (greetings, thanks, commands, a request for a human) are in three languages and match complete
texts only: `thanks` is thanks, but `thanks to whom do I owe the form?` is a question. Small talk therefore costs no model
call, and is never rewritten into a question.
"""

import json
import re
from collections.abc import Sequence
from unicodedata import normalize

from taiwa.flows.ask.types import Option, Route
from taiwa.kernel.messages import Message, user
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import fold, guess_language, strip_control

REPLY_LANGUAGES = ("ja", "zh", "en")

MAX_WITHOUT_KANA = 12
"""A longer Japanese text contains kana."""


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


def reply_language(texts: Sequence[str], preferred: str = "", locale: str = "") -> str:
    """Return the language to reply in (ja, zh, en): the preferred one, else that of the user's last text in a known language.

    Chinese characters alone are Japanese if the user wrote kana before; a short text of them also if `locale` is Japanese or if
    they do not exist in simplified Chinese.

    >>> reply_language(["予約"]), reply_language(["休暇"], locale="ja"), reply_language(["休暇"], locale="zh"), reply_language(["预约"])
    ('ja', 'ja', 'zh', 'zh')
    """
    if preferred in REPLY_LANGUAGES:
        return preferred
    languages = [guess_language(text) for text in texts]
    guessed = [*zip(languages, texts, strict=True)][::-1]
    known, text = next((each for each in guessed if each[0] != "und"), ("en", ""))
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


MAX_CHARACTERS = 60

ENDS = r"[\s!！.。、,，~〜～♪😊🙏🙇]*"

PATTERNS: tuple[tuple[Route, str], ...] = (
    (
        "greeting",
        r"(?:hi|hello|hey|good (?:morning|afternoon|evening|day))(?: (?:there|all|everyone|again))?|how are you(?: (?:today|doing))?\??|"
        r"こんにち[はわ]|こんばん[はわ]|おはよう(?:ございます)?|はじめまして|お疲れ(?:さま|様)(?:です|でした)?|もしもし|やあ|元気(?:ですか)?\??|"
        r"你好(?:吗|啊|呀)?\??|您好|大家好|早上好|早安|下午好|晚上好|嗨|哈喽",
    ),
    (
        "thanks",
        r"(?:ok(?:ay)?,? )?(?:many |thank you |thanks )?(?:thanks|thank you|thx|cheers|much appreciated|got it)(?: (?:a lot|so much|very much|again|for (?:the|your) help))?|"
        r"(?:どうも|本当に)?ありがとう(?:ございま(?:す|した))?|どうも|助かりました|(?:了解|承知)(?:です|しました)?|わかりました|分かりました|"
        r"(?:非常|十分|多)?(?:谢谢|感谢)(?:你|您|啦|了)?(?:的帮助)?|多谢|明白了|知道了|好的,?谢谢",
    ),
    (
        "farewell",
        r"(?:good)?bye(?: bye)?|see you(?: (?:later|soon|tomorrow))?|good night|that(?:'| i)s all|"
        r"さようなら|さよなら|おやすみ(?:なさい)?|失礼します|失礼しました|またね|以上です|"
        r"再见|拜拜|晚安|回头见",
    ),
    (
        "command",
        r"/\S+.*|(?:stop|cancel|quit|exit|reset|clear|help|start over|never ?mind)|"
        r"(?:中止|停止|終了|キャンセル|リセット|ヘルプ|やめて|やめます|最初から)(?:する|して|してください)?|"
        r"(?:停止|取消|退出|结束|重置|帮助|算了|重新开始)(?:吧)?",
    ),
    (
        "person",
        r"(?:(?:please |can i |could i |may i |i(?:'d| would) like to |i want to |let me )?(?:talk|speak|connect me|hand me over)(?: to| with)? (?:a |an |some |the )?"
        r"(?:human|person|people|someone|somebody|operator|real person|colleague|staff)(?: please)?\??)|operator|"
        r"(?:担当者?|人|人間|オペレーター|係の方|窓口)(?:の方)?(?:に|と|へ)?(?:つないで|繋いで|代わって|替わって|話したい|相談したい|話させて)(?:です|ください|下さい|くれますか)?|"
        r"(?:请)?(?:帮我)?(?:转|找|接)(?:人工|真人|客服|负责人|同事)(?:服务|客服)?|人工(?:客服|服务)?",
    ),
    (
        "just_answer",
        r"(?:please )?just (?:answer|tell me|search|look(?: it up)?)(?: (?:it|me|the question))?(?: please| anyway)?|(?:please )?answer (?:me |it )?anyway|go ahead(?: and answer)?|(?:no more|stop asking) questions|stop asking(?: me)?|"
        r"(?:it )?does(?:n't| not) matter|whatever|any(?: of them)?|all of (?:them|these)|i don't (?:know|care)|"
        r"(?:いいから|もう|とにかく|とりあえず|そのまま|すぐに?|、)*(?:答えて|教えて|調べて)(?:ください|下さい)?|質問(?:は)?(?:もう)?(?:いい|しないで|やめて)(?:から|です|ください)?(?:答えて)?|どれでも(?:いい)?(?:です)?|"
        r"全部(?:です)?|すべて(?:です)?|わからない(?:です)?|分かりません|わかりません|"
        r"(?:请)?(?:直接)?(?:回答|告诉我|查一下)(?:吧|就行)?|别(?:再)?问了|不要再问了|都可以|都行|随便|全部|不知道",
    ),
    (
        "none",
        r"none(?: of (?:these|those|them|the above))?|neither(?: of them)?|something else|other|"
        r"どれ(?:で)?も(?:ない|ありません|違います|違う|ちがう)(?:です)?|その他|該当なし|違います|ちがいます|"
        r"都不是|没有(?:一个)?|以上都不是|其他(?:的)?|别的",
    ),
)

TOPIC = re.compile(
    r"(?:(?:hi|hello|hey|excuse me)[,!.]? )?(?:i(?:'ve got| have)(?: got)? (?:a|some|another) (?:quick |short )?questions?|i(?:'d| would) like to ask(?: something| a question)?"
    r"|(?:may|can|could) i ask (?:you )?(?:something|a (?:quick )?question)|(?:a )?(?:quick )?question) (?:about|on|concerning|regarding) (?P<en>[^?]+?)"
    r"|(?P<ja>[^?、]+?)(?:について|に関して|のことで|の件で)、?(?:(?:ちょっと|少し))?(?:質問(?:が|は)?(?:あります|ある|です|したい|させてください)|(?:聞|き|伺|お聞|お伺)[きいし]*たい(?:こと|の)?(?:が|です)?(?:あります|ある|のですが|んですが)?|相談(?:が|したい)?(?:あります|です|のですが)?)(?:です|。)?"
    r"|(?:你好[,，!！]?)?(?:我)?(?:有(?:个|一个|些)?(?:关于|有关)(?P<zh>[^?]+?)的?问题|(?:想|要)?(?:问|咨询|请教)(?:一下|下|个)?(?:关于|有关)(?P<zh2>[^?]+?)(?:的)?(?:问题|事情?|情况)?)",
    re.IGNORECASE,
)
"""The announcement of a question, with its subject."""

REPLIES_ONLY: frozenset[Route] = frozenset({"just_answer", "none"})
"""Routes that apply only to replies to a clarifying question: `all of them` has no meaning at the beginning of a dialogue."""

ALWAYS = re.compile(r"just (?:answer|search)|no more|stop asking|質問|いいから|别|不要再|直接", re.IGNORECASE)
"""Words of `just_answer` that need no question before them."""

NUMBER = re.compile(r"[(#]?(\d{1,2})[).]?(?:番(?:目)?|号|です|个|，|。)*")


def detect_route(text: str, *, asked: bool = False) -> Route:
    """Classify a text; "" if its words alone do not decide. `asked`: it is a reply to a clarifying question.

    >>> detect_route("ありがとうございます!"), detect_route("Thanks to whom?"), detect_route("担当者につないでください")
    ('thanks', '', 'person')
    """
    plain = " ".join(normalize("NFKC", text).split())
    if not plain or len(plain) > MAX_CHARACTERS:
        return ""
    for route, pattern in PATTERNS:
        matches = re.fullmatch(rf"(?:{pattern}){ENDS}", plain, re.IGNORECASE)
        if matches and (asked or route not in REPLIES_ONLY or ALWAYS.search(plain)):
            return route
    return "topic" if announced_topic(text) and not asked else ""


def announced_topic(text: str) -> str:
    """Return the subject of a text that only announces a question; "" for any other text.

    >>> announced_topic("I have a question about sick leave."), announced_topic("休暇について質問があります"), announced_topic("我想问一下关于年假的问题")
    ('sick leave', '休暇', '年假')
    """
    found = TOPIC.fullmatch(" ".join(normalize("NFKC", text).split()).rstrip(" .。!"))
    return next((topic for topic in found.groups() if topic), "") if found else ""


def select_option(text: str, offered: Sequence[Option]) -> Option | None:
    """Return the option that a reply names, by its number or its label.

    >>> select_option("2番です", (Option("Paid leave"), Option("Sick leave"))).label
    'Sick leave'
    """
    plain = _plain(text)
    if not plain:
        return None
    number = NUMBER.fullmatch(plain)
    if number and 1 <= int(number[1]) <= len(offered):
        return offered[int(number[1]) - 1]
    labels = [(option, " ".join(fold(option.label).split())) for option in offered]
    exact = [option for option, label in labels if label == plain]
    matches = exact or [option for option, label in labels if label and label in plain]
    return matches[0] if len(matches) == 1 else None


def is_option_number(text: str) -> bool:
    """Whether a reply is only the number of an option, whether or not that option exists; there are fewer than ten."""
    number = NUMBER.fullmatch(_plain(text))
    return number is not None and len(number[1]) == 1


def only_names_option(text: str, option: Option) -> bool:
    """Whether a reply is only the number or the label of an option."""
    return is_option_number(text) or _plain(text) == _plain(option.label)


def _plain(text: str) -> str:
    return " ".join(fold(text).split()).strip("!.。、, ")
