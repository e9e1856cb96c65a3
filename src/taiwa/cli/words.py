"""What the command line says to the person in a conversation, in English, Japanese and Chinese."""

import os
from collections.abc import Mapping
from typing import TypeAlias

__all__ = ["LANGUAGES", "WORDS", "Texts", "language", "spoken", "warning", "words"]

LANGUAGES = ("en", "ja", "zh")
Texts: TypeAlias = tuple[str, str, str]
"""What is said, in each of the languages."""

WORDS: dict[str, Texts] = {
    # a conversation
    "hello": (
        "{app} · {model} · {session}   /help shows what can be done, Ctrl-D leaves",
        "{app}・{model}・{session}　/help で使い方、Ctrl-D で終了",
        "{app} · {model} · {session}　/help 查看用法，Ctrl-D 退出",
    ),
    "small": (
        "no model is set, so the small one that comes along answers; a larger one: taiwa config set model NAME (`taiwa models`)",
        "モデルが設定されていないので、付属の小さなモデルが答えます。大きなモデルは taiwa config set model NAME で（`taiwa models`）",
        "没有设置模型，由自带的小模型回答；更大的模型请用 taiwa config set model NAME（见 `taiwa models`）",
    ),
    "bye": (
        "kept as {session}; go on with: taiwa chat -s {session}",
        "{session} として保存しました。続きは taiwa chat -s {session}",
        "已保存为 {session}；继续对话请用 taiwa chat -s {session}",
    ),
    "undone": ("back to turn {turn}", "ターン {turn} に戻りました", "已回到第 {turn} 轮"),
    "redone": ("forward to turn {turn}", "ターン {turn} に進みました", "已前进到第 {turn} 轮"),
    "no_undo": ("there is nothing to undo", "元に戻せるターンはありません", "没有可以撤销的内容"),
    "too_far": (
        "there are not so many turns to go over",
        "それだけの数のターンはありません",
        "没有那么多轮对话",
    ),
    "no_redo": ("there is nothing to redo", "やり直せるターンはありません", "没有可以重做的内容"),
    "forked": (
        "now on {session}; {parent} stays as it was",
        "{session} に移りました。{parent} はそのままです",
        "现在位于 {session}；{parent} 保持不变",
    ),
    "switched": (
        "now on {session}, turn {turn}",
        "{session} のターン {turn} に移りました",
        "现在位于 {session} 的第 {turn} 轮",
    ),
    "app": (
        "now with the app {app}; the state that fits was kept",
        "アプリを {app} に切り替えました。引き継げる状態は残してあります",
        "已切换到应用 {app}；适用的状态已保留",
    ),
    "named": (
        "this conversation is called {session}: another program took the name before it",
        "この会話の名前は {session} です（別のプログラムが先に名前を使いました）",
        "本对话的名称是 {session}（原来的名称已被其他程序占用）",
    ),
    "saved": ("written to {path}", "{path} に書き出しました", "已写入 {path}"),
    "no_verdict": (
        "only what an app that looks things up did can be judged: taiwa chat ask",
        "評価できるのは、文書を調べるアプリのターンだけです: taiwa chat ask",
        "只能评价查找文档的应用：taiwa chat ask",
    ),
    "no_person": (
        "feedback is kept for a person: taiwa person set NAME, then taiwa chat ask -p person=NAME",
        "評価は人ごとに残ります。taiwa person set NAME のあと taiwa chat ask -p person=NAME",
        "评价按人保存：先 taiwa person set NAME，再 taiwa chat ask -p person=NAME",
    ),
    "verdict": (
        "kept; a question back is welcome: {welcome}",
        "記録しました。聞き返しの歓迎度: {welcome}",
        "已记录；反问受欢迎的程度：{welcome}",
    ),
    "no_turn": ("there is no turn yet", "まだターンがありません", "还没有任何对话"),
    "nothing": ("nothing changed", "変化はありません", "没有变化"),
    "no_state": ("{app} keeps no state", "{app} は状態を持ちません", "{app} 不保存状态"),
    # turns that do not end well
    "interrupted": (
        "stopped; the answer so far is kept",
        "中断しました。ここまでの回答は保存されています",
        "已中断；目前为止的回答已保留",
    ),
    "stopped": (
        "stopped before the answer began; nothing changed",
        "回答が始まる前に中断しました。会話は元のままです",
        "在回答开始之前已中断；对话没有变化",
    ),
    "cut_hint": (
        "the turn was cut off; taiwa resume finishes it without paying again",
        "ターンが途中で切れました。taiwa resume で、支払い済みの分はそのままに続きから再開できます",
        "这一轮被中断；用 taiwa resume 可以继续完成，已付费的部分不会重复计费",
    ),
    "cut_off": (
        "a turn was cut off: {text}\nfinish it without paying again? [Y/n] ",
        "途中で切れたターンがあります: {text}\n支払い済みの分はそのままに、続きを受け取りますか？ [Y/n] ",
        "有一轮对话被中断：{text}\n要继续完成吗？已付费的部分不会重复计费。[Y/n] ",
    ),
    "cut_off_told": (
        "a turn was cut off ({text}); taiwa resume finishes it without paying again",
        "途中で切れたターンがあります（{text}）。taiwa resume で続きから再開できます",
        "有一轮对话被中断（{text}）；用 taiwa resume 可以继续完成",
    ),
    "given_up": ("it was given up", "そのターンは破棄しました", "已放弃这一轮"),
    "warn_length": (
        "the answer was cut off at the length limit",
        "回答が長さの上限で途切れました",
        "回答达到长度上限，被截断",
    ),
    "warn_refused": ("the model refused to go on", "モデルが続きを拒否しました", "模型拒绝继续回答"),
    "warn_state": (
        "the state was left as it was: {why}",
        "状態は更新されませんでした: {why}",
        "状态未更新：{why}",
    ),
    "warn_fold": (
        "the old turns could not be summarised; they stay in the prompt",
        "古いターンを要約できなかったため、プロンプトに残しました",
        "无法概括较早的对话，仍保留在提示中",
    ),
    # slash commands
    "near": (
        "there is no {command}; did you mean {near}?",
        "{command} はありません。{near} のことですか？",
        "没有 {command}；是不是想用 {near}？",
    ),
    "unknown": (
        "there is no {command}; /help shows what there is, and //text says a text that begins with a slash",
        "{command} はありません。一覧は /help で、スラッシュで始まる文を送るには //… と書きます",
        "没有 {command}；用 /help 查看全部命令，要发送以斜杠开头的文本请写 //…",
    ),
    "usage": ("write it as {usage}", "書き方: {usage}", "用法：{usage}"),
    "help_undo": ("take back the last turn, or n", "直前のターン（または n 個）を取り消す", "撤销上一轮（或 n 轮）"),
    "help_redo": ("go forward again", "取り消したターンを元に戻す", "重做"),
    "help_retry": ("ask the last thing again", "同じことをもう一度聞く", "重新提问"),
    "help_edit": (
        "say something else in place of the last turn, or the n-th last",
        "直前（または n 個前）の発言を言い直す",
        "修改上一轮（或倒数第 n 轮）的发言",
    ),
    "help_fork": ("go on under a second name", "別名の枝に分けて続ける", "另起一个分支继续"),
    "help_switch": ("go to another conversation", "別の会話に移る", "切换到另一个对话"),
    "help_app": ("go on with another app", "別のアプリで続ける", "换一个应用继续"),
    "help_state": ("show the state, or part of it", "状態（またはその一部）を見る", "查看状态（或其中一部分）"),
    "help_why": ("say which turn set a value", "値を決めたターンを調べる", "查看某个值由哪一轮设定"),
    "help_log": ("list the turns", "ターンの一覧", "列出各轮对话"),
    "help_cost": ("what was spent since this began", "開始からの費用", "本次对话的费用"),
    "help_save": (
        "write the conversation to FILE (.md, .html, .jsonl)",
        "会話をファイルに書き出す（.md .html .jsonl）",
        "把对话写入文件（.md、.html、.jsonl）",
    ),
    "help_good": (
        "the last turn was right (apps that ask back learn from it)",
        "今のターンは適切だった（聞き返すアプリが学びます）",
        "上一轮合适（会反问的应用会学习）",
    ),
    "help_bad": (
        "it was wrong; ask: it should have asked back, noask: it should not have",
        "不適切だった（ask: 聞き返すべきだった、noask: 聞き返すべきでなかった）",
        "不合适（ask：应该反问，noask：不该反问）",
    ),
    "help_help": ("show this", "この一覧", "显示此帮助"),
    "help_quit": ("leave (so does Ctrl-D)", "終了（Ctrl-D でも）", "退出（或按 Ctrl-D）"),
    "help_keys": (
        'Enter sends, Alt-Enter (or Esc, Enter) begins a new line, """ opens and closes a block of lines, Ctrl-C stops an '
        "answer; //text says a text that begins with a slash.",
        'Enter で送信、Alt-Enter（または Esc, Enter）で改行、""" で複数行の開始と終わり、Ctrl-C で回答を中断。'
        "先頭のスラッシュごと送るには //… と書きます。",
        '按 Enter 发送，Alt-Enter（或 Esc、Enter）换行，用 """ 开始和结束多行文本，Ctrl-C 中断回答；'
        "要发送以斜杠开头的文本请写 //…。",
    ),
    # questions that are reasoned out
    "answered": ("answer: {by}", "答えの出どころ: {by}", "答案来源：{by}"),
    "no_answer": (
        "no answer was found in it",
        "答えを読み取れませんでした",
        "未能从中读出答案",
    ),
    "ending_calls": (
        "no call was left before it was done; the answer cannot be relied on (--calls gives more)",
        "途中で呼び出しの回数を使い切りました。答えは当てになりません（--calls で増やせます）",
        "调用次数在完成之前用尽，答案不可靠（可用 --calls 增加）",
    ),
    "ending_repeat": (
        "it asked for the same call again and again and was ended",
        "同じ呼び出しを繰り返したため、打ち切りました",
        "反复请求同一个调用，已被终止",
    ),
    "ending_tool": (
        "a call failed, and that was to be the end",
        "呼び出しが失敗したため、指定どおり終了しました",
        "调用失败，已按设定结束",
    ),
    "ending_stops": (
        "too many marks in it closed no call; it was ended",
        "呼び出しにならない記号が多すぎるため、打ち切りました",
        "不构成调用的标记过多，已被终止",
    ),
    "ending_tokens": (
        "the bound on tokens was reached before it was done (--tokens gives more)",
        "途中でトークン数の上限に達しました（--tokens で増やせます）",
        "在完成之前达到词元上限（可用 --tokens 增加）",
    ),
    "ending_limit": (
        "a limit was reached before it was done",
        "途中で上限に達しました",
        "在完成之前达到上限",
    ),
    "ending_length": (
        "the answer was cut off at the length limit",
        "回答が長さの上限で途切れました",
        "回答达到长度上限，被截断",
    ),
    "ending_interrupted": (
        "stopped; what was paid is on the bill",
        "中断しました。支払い済みの分は taiwa cost に記録されています",
        "已中断；已付的费用记在 taiwa cost 中",
    ),
    "ending_refusal": ("the model refused to go on", "モデルが続きを拒否しました", "模型拒绝继续回答"),
    "shot_differs": (
        "{where}: {call} gives {given}, and the example says {said}",
        "{where}: {call} の結果は {given} ですが、例では {said} になっています",
        "{where}：{call} 的结果是 {given}，而示例写的是 {said}",
    ),
    # bills
    "cost": (
        "{requests} calls · {tokens} · {cost} · {seconds} s",
        "呼び出し {requests} 回・{tokens}・{cost}・{seconds} 秒",
        "{requests} 次调用 · {tokens} · {cost} · {seconds} 秒",
    ),
    "tokens": (
        "{input} in ({cached} cached) + {output} out tokens",
        "入力 {input}（うちキャッシュ {cached}）＋出力 {output} トークン",
        "输入 {input}（缓存 {cached}）+ 输出 {output} 词元",
    ),
    "first": ("first word after {seconds} s", "最初の語まで {seconds} 秒", "{seconds} 秒后出现首词"),
    "tokens_at_most": (
        "at most {input} in + {output} out tokens",
        "多くても入力 {input}＋出力 {output} トークン",
        "至多输入 {input} + 输出 {output} 词元",
    ),
    "tokens_unknown": ("tokens not reported", "トークン数の報告なし", "未报告词元数"),
    # batches
    "rows": ("rows", "行", "行"),
    "rows_failed": ("{failed} failed", "失敗 {failed}", "失败 {failed}"),
    "batch_end": (
        "{done} rows answered, {failed} failed, {kept} kept from before",
        "回答 {done} 行、失敗 {failed} 行、以前の結果を利用 {kept} 行",
        "已回答 {done} 行，失败 {failed} 行，沿用之前的结果 {kept} 行",
    ),
    "batch_stopped": (
        "stopped: {why}; what is done is kept, --resume goes on",
        "停止しました: {why}。済んだ行は残っています。--resume で続けられます",
        "已停止：{why}；已完成的行都已保留，用 --resume 继续",
    ),
    "why_cost": ("the cost limit is reached", "費用の上限に達しました", "已达到费用上限"),
    "why_interrupt": ("interrupted", "中断されました", "被中断"),
    "why_down": (
        "the server did not answer {count} rows in a row ({error})",
        "サーバーが {count} 行続けて応答しませんでした（{error}）",
        "服务器连续 {count} 行没有响应（{error}）",
    ),
    # the demonstration
    "demo_hello": (
        "A small neural network of {size} parameters, which comes with taiwa, writes the words you see now, on this machine:\n"
        "no key, no download, no network. It can work out quantities and chemistry, take orders at a café (English, Japanese), and\n"
        "say what a question to documents lacks; nothing else, and it can be wrong. `taiwa models show builtin` says how often.\n"
        "Each command is what you would type. Calculations, passages and checks are the program's, not the network's.",
        "これから表示される文は、taiwa に付属する {size}パラメータの小さなニューラルネットワークが、この場で書きます。\n"
        "鍵もダウンロードも通信も要りません。できるのは、数量と化学の計算、カフェの注文（英語・日本語）、文書への質問に足りないことの\n"
        "判断だけで、間違えることもあります。どのくらい間違えるかは `taiwa models show builtin` で分かります。\n"
        "コマンドはすべて、ご自分で打つものと同じです。計算・引用・検査はモデルではなくプログラムが行います。",
        "接下来看到的文字，由 taiwa 自带的一个 {size}参数的小型神经网络在本机写出：不需要密钥、下载和网络。\n"
        "它会的只有：数量和化学计算、咖啡馆点单（英语、日语）、判断对文件的提问还缺什么；而且它也会出错，\n"
        "出错的比例见 `taiwa models show builtin`。\n"
        "每条命令都和您自己输入的一样。计算、引文和检查由程序完成，不靠网络。",
    ),
    "demo_yours": (
        "Type your own where you see >; an empty line takes the example, Ctrl-D ends.",
        "> のところにご自分の文を入力できます。空行なら例文、Ctrl-D で終了します。",
        "看到 > 时可以输入自己的内容；空行使用示例，Ctrl-D 结束。",
    ),
    "demo_example": ("example: {said}", "例: {said}", "示例：{said}"),
    "demo_try": ("try next: {command}", "次にどうぞ: {command}", "接着试试：{command}"),
    "demo_unread": (
        "that line is not UTF-8; please type it again",
        "その行は UTF-8 ではありません。もう一度入力してください",
        "这一行不是 UTF-8，请重新输入",
    ),
    "demo_otherwise": (
        "it went otherwise than was meant: {wanted} should stand there",
        "予定と違う結果になりました。本来は {wanted} が表示されるはずです",
        "结果与预期不同：这里本应出现 {wanted}",
    ),
    "demo_code": (
        "it went otherwise than was meant: exit code {code}, not {wanted}",
        "予定と違う結果になりました。終了コードは {wanted} ではなく {code} です",
        "结果与预期不同：退出码是 {code}，不是 {wanted}",
    ),
    "demo_failed": (
        "{failed} of {steps} steps went otherwise than was meant",
        "{steps} 段階のうち {failed} 段階が予定と違う結果になりました",
        "{steps} 步中有 {failed} 步与预期不同",
    ),
    "demo_bye": (
        "Now your own. With this small model:\n"
        "  taiwa demo --interactive\n"
        "  taiwa chat order\n"
        "and with a larger one (`taiwa models list` shows how one is named):\n"
        "  taiwa config set model http://127.0.0.1:8080/v1#name\n"
        "  taiwa chat",
        "次はご自分で。この小さなモデルで:\n"
        "  taiwa demo --interactive\n"
        "  taiwa chat order\n"
        "より大きなモデルで（名前の書き方は `taiwa models list`）:\n"
        "  taiwa config set model http://127.0.0.1:8080/v1#name\n"
        "  taiwa chat",
        "接下来请自己试试。用这个小模型：\n"
        "  taiwa demo --interactive\n"
        "  taiwa chat order\n"
        "用更大的模型（名称的写法见 `taiwa models list`）：\n"
        "  taiwa config set model http://127.0.0.1:8080/v1#name\n"
        "  taiwa chat",
    ),
}


def language(environ: Mapping[str, str] | None = None) -> str:
    """The language to speak: `TAIWA_LANG`, else that of the locale, else English.

    >>> language({"TAIWA_LANG": "", "LANG": "ja_JP.UTF-8"}), language({"LANG": "C"})
    ('ja', 'en')
    """
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
    return spoken(WORDS[key], **values)


def spoken(texts: Texts, **values: object) -> str:
    """Say one of three texts: that in the person's language."""
    return texts[LANGUAGES.index(language())].format(**values)


WARNINGS = {
    "the answer was cut off at the length limit": "warn_length",
    "the answer was interrupted": "interrupted",
    "the model refused to go on": "warn_refused",
    "the old turns could not be summarised; they stay in the prompt": "warn_fold",
}
"""What turns warn of, as the flow says it."""
STATE_LEFT = "the state was left as it was: "


def warning(text: str) -> str:
    """Say a turn's warning in the person's language; one that is not known is said as it is."""
    if text.startswith(STATE_LEFT):
        return words("warn_state", why=text.removeprefix(STATE_LEFT))
    return words(WARNINGS[text]) if text in WARNINGS else text
