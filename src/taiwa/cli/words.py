"""What the command line says to the person in a conversation, in English, Japanese and Chinese."""

import os
from collections.abc import Mapping

__all__ = ["LANGUAGES", "WORDS", "language", "words"]

LANGUAGES = ("en", "ja", "zh")

WORDS: dict[str, tuple[str, str, str]] = {
    "hello": (
        "{app} · {model} · {session}   /help shows what can be done, Ctrl-D leaves",
        "{app}・{model}・{session}　/help で使い方、Ctrl-D で終わります",
        "{app} · {model} · {session}　/help 查看用法，Ctrl-D 退出",
    ),
    "bye": ("kept as {session}; go on with: taiwa chat -s {session}", "{session} として保存しました。続けるには: taiwa chat -s {session}", "已保存为 {session}；继续：taiwa chat -s {session}"),
    "undone": ("back to turn {turn}", "ターン {turn} に戻りました", "已回到第 {turn} 轮"),
    "redone": ("forward to turn {turn}", "ターン {turn} に進みました", "已前进到第 {turn} 轮"),
    "forked": ("now on {session}; {parent} stays as it was", "{session} に移りました。{parent} はそのままです", "现在在 {session}；{parent} 保持不变"),
    "switched": ("now on {session}, turn {turn}", "{session} のターン {turn} に移りました", "现在在 {session}，第 {turn} 轮"),
    "app": ("now with the app {app}; the state that fits was kept", "アプリ {app} に切り替えました。合う状態は引き継ぎました", "已切换到应用 {app}；合适的状态已保留"),
    "saved": ("written to {path}", "{path} に書き出しました", "已写入 {path}"),
    "interrupted": ("stopped; what was said and paid for is kept", "中断しました。ここまでの内容は残ります", "已停止；已说和已付费的内容都保留"),
    "cut_off": (
        "the last turn was cut off: {text}\nfinish it without paying again? [Y/n] ",
        "前回のターンが途中で切れています: {text}\n支払い済みの分はそのままに、続けますか？ [Y/n] ",
        "上一轮被中断：{text}\n是否继续完成（已付费的部分不会重复计费）？[Y/n] ",
    ),
    "nothing": ("nothing changed", "変化はありません", "没有变化"),
    "unknown": ("there is no {command}; /help shows what there is", "{command} はありません。/help をご覧ください", "没有 {command}；请看 /help"),
    "cost": ("{requests} calls · {tokens} · {cost} · {seconds} s", "{requests} 回の呼び出し・{tokens}・{cost}・{seconds} 秒", "{requests} 次调用 · {tokens} · {cost} · {seconds} 秒"),
    "tokens": ("{input} in ({cached} cached) + {output} out tokens", "入力 {input}（うちキャッシュ {cached}）＋出力 {output} トークン", "输入 {input}（缓存 {cached}）+ 输出 {output} 词元"),
    "first": ("first word after {seconds} s", "最初の語まで {seconds} 秒", "首词 {seconds} 秒"),
    "tokens_unknown": ("tokens not reported", "トークン数は報告されませんでした", "未报告词元数"),
}  # fmt: skip


def language(environ: Mapping[str, str] | None = None) -> str:
    """The language to speak: `TAIWA_LANG`, else that of the locale, else English."""
    environ = os.environ if environ is None else environ
    for name in ("TAIWA_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        chosen = environ.get(name, "")[:2].lower()
        if chosen:
            return chosen if chosen in LANGUAGES else "en"
    return "en"


def words(key: str, **values: object) -> str:
    """Say something in the person's language.

    >>> words("undone", turn=2)
    'back to turn 2'
    """
    return WORDS[key][LANGUAGES.index(language())].format(**values)
