"""A small vocabulary of our own, to look at guides with: every byte, pieces of JSON, and words of three languages.

It belongs to no model. Its tokenizer takes the longest token each time.
"""

from functools import cache

from taiwa.guide.vocabulary import Vocabulary

__all__ = ["small"]

END = b"<end>"
JSON = '{" "} ": ":" ", "," "], [" {} [] [{ }] }} }, ]} "" \\" \\n ": " ": { ": [ true false null ": true, ": false, ": null, -1 0. 1. e+ e-'
NUMBERS = " ".join(str(number) for number in (*range(10, 100), *range(100, 1000, 100), 1000, 2000, 2024, 2025, 2026))
ENGLISH = (
    "the and of to in is it you that for on with as are be this have or not can all your one two name value type id size "
    "date time text number count price total order item items note answer question title city color email address kind "
    "yes no tea coffee hello world ing ed er est ion tion ment able ly al an at en es he re st th ti on ou"
)
JAPANESE = "です ます した する こと もの これ それ ある いる ない から まで の は が を に で と も て 日本 東京 今日 名前 値段 注文 お茶 抹茶 コーヒー はい いいえ ありがとう こんにちは 。 、 「 」"
CHINESE = "的 是 不 我 你 他 们 这 那 有 在 和 了 中国 北京 今天 名字 茶 咖啡 谢谢 你好"
SPACED = "the and of to in is it a for not value name tea coffee"
INDENTS = tuple(b" " * width for width in (2, 4, 8)) + tuple(b"\n" + b" " * width for width in (0, 2, 4))


@cache
def small() -> Vocabulary:
    """The small vocabulary; its last token ends a text.

    >>> vocabulary = small()
    >>> [vocabulary.tokens[token].decode() for token in vocabulary.encode('{"name":"抹茶"}')]
    ['{"', 'name', '":"', '抹茶', '"}']
    """
    single = [bytes([byte]) for byte in range(256)]
    words = f"{JSON} {NUMBERS} {ENGLISH} {JAPANESE} {CHINESE}".split()
    pieces = [*(word.encode() for word in words), *(f" {word}".encode() for word in SPACED.split()), *INDENTS]
    tokens = [*dict.fromkeys((*single, *pieces)), END]
    plain = Vocabulary(tokens, len(tokens) - 1)
    return Vocabulary(tokens, len(tokens) - 1, encode=lambda text: plain.divide(text.encode()), name="small")
