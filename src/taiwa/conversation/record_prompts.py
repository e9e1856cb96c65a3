"""The prompts of the layout `record` in English, Japanese and Chinese.

A small model reads a dialogue in the language of its instructions: with English ones, Qwen2.5-Coder 1.5B copied the record or the names
of the fields into the changes of a Chinese dialogue (decision 0045).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from taiwa.kernel.text import guess_language


@dataclass(frozen=True, slots=True)
class ChangePrompts:
    """The question whether a text that would overwrite a value asks to change the record, or only to be told something."""

    instructions: str
    about: str
    record: str
    """The record of the examples."""
    examples: tuple[tuple[str, str, bool], ...]
    """Texts of a user, each with the change at issue, and whether it asks for it."""


@dataclass(frozen=True, slots=True)
class RecordPrompts:
    """What the model reads, in one language. `{example}` stands for a value that no user says."""

    of_user: str
    of_reply: str
    record: str
    exchange: str
    reply: str
    user_says: tuple[str, str, str, str]
    """A greeting, a wish, a question, and another wish."""
    reply_says: tuple[str, str, str, str]
    change: ChangePrompts


ENGLISH = RecordPrompts(
    of_user="""\
You keep the record of a dialogue. Fields of the record:
{fields}

After each message of the user you write as a JSON list of {{"said", "changes": [{{"field", "value"}}]}} what this last message states \
or changes: each sentence that says something, and all fields that it states, with their values as the user said them. The list is [] if the message states nothing new.""",
    of_reply="""\
You keep the record of a dialogue. Fields of the record:
{fields}

After each reply of the assistant you write as a JSON list of {{"field", "value"}} what this reply states or changes, with the value \
as the reply has it. The list is [] if the reply states nothing new.""",
    record="{said}\n\nRecord so far: {state}",
    exchange="Assistant said: {answer}\nUser says: {text}",
    reply="User said: {text}\nAssistant says: {answer}",
    user_says=("Hello.", "{example}, please.", "What would that cost?", "And {example}."),
    reply_says=("Hello. What can I do for you?", "It is {example}.", "Which one do you mean?", "And {example}."),
    change=ChangePrompts(
        instructions="You read what a user writes to an assistant that keeps a record. Answer whether the user asks the assistant to change the \
record (change), or only wants to know something (ask).",
        about="Record: {state}\nUser: {text}\nChange: {changed}",
        record='{"size": "small", "count": 2}',
        examples=(
            ("What would a large one cost?", '{"size": "large"}', False),
            ("Can you make it a large one?", '{"size": "large"}', True),
            ("Is there a large one on Fridays?", '{"size": "large"}', False),
            ("Shall we take three of them?", '{"count": 3}', True),
            ("How much is it for five?", '{"count": 5}', False),
            ("Does it include a bag?", '{"bag": true}', False),
            ("May I have a bag with it?", '{"bag": true}', True),
            ("And if I took six?", '{"count": 6}', False),
        ),
    ),
)

JAPANESE = RecordPrompts(
    of_user="""\
あなたは対話の記録係です。記録の項目:
{fields}

利用者が発言するたびに、その最後の発言が述べたこと、変えたことを、\
JSON のリスト {{"said", "changes": [{{"field", "value"}}]}} で書きます。何かを述べている文ごとに、それが述べている項目すべてと、利用者が言ったとおりの値です。新しいことを述べていなければ、リストは [] です。""",
    of_reply="""\
あなたは対話の記録係です。記録の項目:
{fields}

アシスタントが返答するたびに、その返答が述べたこと、変えたことを、JSON のリスト {{"field", "value"}} で、返答にあるとおりの値で書きます。\
新しいことを述べていなければ、リストは [] です。""",
    record="{said}\n\nこれまでの記録: {state}",
    exchange="アシスタントの発言: {answer}\n利用者の発言: {text}",
    reply="利用者の発言: {text}\nアシスタントの発言: {answer}",
    user_says=("こんにちは。", "{example}をお願いします。", "それはいくらになりますか？", "それから{example}も。"),
    reply_says=(
        "こんにちは。ご用件は何でしょうか。",
        "{example}です。",
        "どちらのことでしょうか。",
        "それから{example}です。",
    ),
    change=ChangePrompts(
        instructions="記録をつけるアシスタントに利用者が書いた発言を読み、記録を変えるよう頼んでいる (change) か、ただ知りたいだけ (ask) かを答えます。",
        about="記録: {state}\n利用者: {text}\n変更: {changed}",
        record='{"size": "小", "count": 2}',
        examples=(
            ("大だといくらですか。", '{"size": "大"}', False),
            ("大にしてもらえますか。", '{"size": "大"}', True),
            ("大は金曜日にもありますか。", '{"size": "大"}', False),
            ("三つにしましょうか。", '{"count": 3}', True),
            ("五つではいくらになりますか。", '{"count": 5}', False),
            ("袋は付きますか。", '{"bag": true}', False),
            ("袋も付けてもらえますか。", '{"bag": true}', True),
            ("六つにしたらどうなりますか。", '{"count": 6}', False),
        ),
    ),
)

CHINESE = RecordPrompts(
    of_user="""\
你负责记录一段对话。记录的字段：
{fields}

用户每发一条消息，你就用 JSON 列表 {{"said", "changes": [{{"field", "value"}}]}} 写出这条消息说明或更改的内容：\
说明它的句子，以及这句话说明的各个字段和用户所说的值。如果消息没有说明新的内容，列表就是 []。""",
    of_reply="""\
你负责记录一段对话。记录的字段：
{fields}

助手每回复一次，你就用 JSON 列表 {{"field", "value"}} 写出这条回复说明或更改的内容，值与回复中的一致。如果回复没有说明新的内容，列表就是 []。""",
    record="{said}\n\n目前的记录：{state}",
    exchange="助手说：{answer}\n用户说：{text}",
    reply="用户说：{text}\n助手说：{answer}",
    user_says=("你好。", "我想要{example}。", "那要多少钱？", "还要{example}。"),
    reply_says=("你好，有什么可以帮您？", "是{example}。", "您指的是哪一个？", "还有{example}。"),
    change=ChangePrompts(
        instructions="阅读用户写给记录助手的话，判断用户是要求更改记录（change），还是只想了解情况（ask）。",
        about="记录：{state}\n用户：{text}\n更改：{changed}",
        record='{"size": "小", "count": 2}',
        examples=(
            ("大的要多少钱？", '{"size": "大"}', False),
            ("能换成大的吗？", '{"size": "大"}', True),
            ("星期五有大的吗？", '{"size": "大"}', False),
            ("那就要三个，好吗？", '{"count": 3}', True),
            ("买五个一共多少钱？", '{"count": 5}', False),
            ("送袋子吗？", '{"bag": true}', False),
            ("可以再要一个袋子吗？", '{"bag": true}', True),
            ("换成六个的话要多少钱？", '{"count": 6}', False),
        ),
    ),
)

BY_LANGUAGE: Mapping[str, RecordPrompts] = {"en": ENGLISH, "ja": JAPANESE, "zh": CHINESE}


def record_language(*texts: str) -> str:
    """Return the language of the prompts: that of the first text in Japanese or Chinese, else English.

    Chinese characters alone are Japanese beside a text with kana.

    >>> record_language("OK", "行き先"), record_language("去哪儿？", "city"), record_language("予約", "どの日ですか"), record_language("", "city")
    ('ja', 'zh', 'ja', 'en')
    """
    found = [guess_language(text) for text in texts]
    first = next((each for each in found if each in ("ja", "zh")), "en")
    return "ja" if "ja" in found else first
