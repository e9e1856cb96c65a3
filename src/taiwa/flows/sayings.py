"""The few sentences that the program itself says when it asks back, in three languages."""

from collections.abc import Mapping
from typing import Literal

__all__ = ["Saying", "say"]

Saying = Literal["which", "which_more", "pointing", "nothing", "open", "assuming"]

SAYINGS: Mapping[str, Mapping[Saying, str]] = {
    "en": {
        "which": "Which of these do you mean?",
        "which_more": "I still find several things. Which of these is it?",
        "pointing": "What does “{words}” refer to?",
        "nothing": "I found nothing about “{words}”. Could you say it in other words?",
        "open": "Could you say more exactly what you want to know?",
        "assuming": "assuming “{words}”",
    },
    "ja": {
        "which": "次のどれについてのご質問ですか。",
        "which_more": "まだいくつか当てはまるものがあります。どれでしょうか。",
        "pointing": "「{words}」は何を指していますか。",
        "nothing": "「{words}」については見つかりませんでした。別の言い方で教えていただけますか。",
        "open": "知りたいことをもう少し具体的に教えていただけますか。",
        "assuming": "「{words}」についてのご質問として",
    },
    "zh": {
        "which": "您问的是下面哪一项？",
        "which_more": "还有几项都符合，是哪一项？",
        "pointing": "“{words}”指的是什么？",
        "nothing": "没有找到关于“{words}”的内容。可以换一种说法吗？",
        "open": "能说得更具体一些吗？",
        "assuming": "假定您问的是“{words}”",
    },
}


def say(language: str, saying: Saying, words: str = "") -> str:
    """Say it in a language, in English where it is none of the three.

    >>> say("ja", "pointing", "それ")
    '「それ」は何を指していますか。'
    """
    return SAYINGS.get(language, SAYINGS["en"])[saying].replace("{words}", words)
