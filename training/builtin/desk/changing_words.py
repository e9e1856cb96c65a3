"""Wordings of changes. `{r}` is the line, `{x}` the new value, `{o}` the old one, `{n}` the quantity, `{w}` another item."""

__all__ = ["CHANGES"]

A = "[||||actually |no wait |sorry |oh |wait |hmm |please |can you |could you |can you please |ok |no |um |i changed my mind |on second thought |oh and |and ]"
P = "[||| please| thanks| instead| actually| if possible]"
J = "[||||やっぱり|すみません、|あ、|えっと、|ごめんなさい、|あの、|それと、|あと、|じゃあ、]"
JE = "[してください|してください|してもらえますか|お願いします|変更してください|変えてください|変更で|変えて|して|変更お願いします|してほしいです]"
JD = "[お願いします|お願いします|ください||いただけますか|お願いできますか|頼みます]"

CHANGES = {
    "en": {
        "size": f"""{A}make {{r}} [a |]{{x}}{P}||{A}change {{r}} to [a |]{{x}}{P}||{A}[i'd like|i want|we'd like|i'll have|i'd prefer|let me have] {{r}} in {{x}}{P}||{{r}} [should be|needs to be|was meant to be|was supposed to be|must be|has to be] [a |]{{x}}{P}||
{{x}} for {{r}}{P}||{A}[turn|switch] {{r}} [into|to] [a |]{{x}}{P}||i meant {{x}} for {{r}}||[can|could] {{r}} be [a |]{{x}}{P}||{A}{{r}} [in|as a] {{x}}{P}||{A}[upgrade|bump] {{r}} to {{x}}{P}||{{x}} size for {{r}}{P}||{A}set {{r}} to {{x}}""",
        "quantity": f"""{A}make {{r}} {{n}}{P}||{A}change {{r}} to {{n}}{P}||{A}[i meant|i want|i need|we need|it should be|make it] {{n}} of {{r}}||{A}{{n}} of {{r}}, not {{o}}||[there should be|i'd like] {{n}} of {{r}}{P}||{A}set {{r}} to {{n}}||{A}[only|just] {{n}} of {{r}}{P}||{A}{{r}} times {{n}}||{A}let's do {{n}} of {{r}} instead||{A}take {{n}} of {{r}} and not {{o}}""",
        "with": f"""{A}[add|put] {{x}} [to|in|on] {{r}}{P}||{A}make {{r}} with {{x}}{P}||[can|could] {{r}} [come|be] with {{x}}{P}||{{r}} with {{x}}{P}||[can i|could i|i'd like to] [get|have] {{r}} with {{x}}{P}||i want {{x}} [in|on|with] {{r}}||{A}{{x}} for {{r}}{P}||{A}[i forgot,|also] {{x}} [in|with|on] {{r}}{P}||[could you|can you] throw {{x}} into {{r}}||{{r}} gets {{x}}{P}||give {{r}} {{x}}{P}""",
        "bare": f"""{A}make {{r}} {{x}}{P}||[can|could] {{r}} be {{x}}{P}||{{r}} {{x}}{P}||[i'd like|i want|i need|we'd like|i'd have] {{r}} {{x}}{P}||{A}{{x}} for {{r}}{P}||{{r}} [should be|needs to be] {{x}}{P}||{A}i want {{r}} to be {{x}}||{A}do {{r}} {{x}}{P}||{A}and {{r}} {{x}}{P}""",
        "milk": f"""{A}make {{r}} with {{x}} instead[| of {{o}}]||{A}[use|take] {{x}} [in|for] {{r}}{P}||{A}[change|switch|swap] the milk [in|of|for] {{r}} to {{x}}{P}||{{r}} with {{x}}, not {{o}}||{A}{{x}} instead of {{o}} [in|for] {{r}}||{A}not {{o}}, {{x}} [in|for] {{r}}||[can|could] {{r}} [be|come] with {{x}} instead[| of the {{o}}]||{A}replace the {{o}} in {{r}} with {{x}}||{A}make {{r}} {{x}} not {{o}}""",
        "drop": f"""{A}[take|leave] the {{o}} [off|out of] {{r}}{P}||{A}[remove|drop|lose] the {{o}} from {{r}}{P}||{{r}} without [the |]{{o}}{P}||{A}[forget|never mind|cancel|skip] the {{o}} [on|in|for] {{r}}{P}||i don't want the {{o}} [in|on] {{r}} [anymore|after all]||{A}make {{r}} without [the |]{{o}}{P}||no more {{o}} [in|on] {{r}}{P}""",
        "rename": f"""{A}change {{r}} to {{w}}{P}||{A}[{{w}}|make that {{w}}|i'd like {{w}}|i'll have {{w}}|give me {{w}}] instead of {{r}}||{A}[swap|exchange|trade] {{r}} for {{w}}{P}||{A}replace {{r}} with {{w}}{P}||i'd rather have {{w}} than {{r}}||not {{r}}, {{w}}{P}||{A}{{w}}, not {{r}}||{A}forget {{r}} and [give me|make it|get me] {{w}}{P}||{A}turn {{r}} into {{w}}||{A}instead of {{r}} [i want|i'd like|could i have|let me have] {{w}}{P}""",
        "one_of": f"""{A}make one of {{r}} {{x}}{P}||one of {{r}} [should be|needs to be|has to be] {{x}}{P}||{A}one of {{r}} {{x}}{P}||[can|could] one of {{r}} be {{x}}{P}||{A}i want one of {{r}} {{x}}""",
        "remove": f"""{A}[remove|delete|cancel|drop|scratch|skip|lose|strike|kill|forget|leave out|take off|take away|forget about|get rid of|scrap] {{r}}{P}||{A}take {{r}} [off|off the order|off my order|away|back|out]{P}||[i don't want|i don't need|we don't need|i no longer want|we won't need|no need for] {{r}} [anymore|any more|after all|]||never mind {{r}}||{A}without {{r}}{P}||{A}no {{r}} after all||i changed my mind about {{r}}, [no|cancel it|leave it]||
{A}[i'll skip|we'll skip|i'll pass on] {{r}}||[can you|could you] [cancel|take back|undo] {{r}}{P}||{A}{{r}} [can go|is not needed|isn't needed|must go|has to go]""",
        "one_less": f"""{A}[remove|drop|take off|cancel|scratch] one of {{r}}{P}||{A}one [less|fewer] of {{r}}{P}||[i don't need|we don't need] one of {{r}}||{A}take one of {{r}} [off|away|back]{P}||{A}[one of|only one of] {{r}} [can go|is not needed]""",
        "more_of": f"""{A}[another|one more|an extra|another one] of {{r}}{P}||{A}[add another|give me another|get me another|one more] of {{r}}{P}||[can i get|could i get|i'll take|i'd like|we need|let me get|can we have] [one more|another|another one] of {{r}}{P}||{A}[the same|same] again for {{r}}||[a second|another|one more] of {{r}} please""",
        "n_more": f"""{A}{{n}} more of {{r}}{P}||{A}[add|give me|get me|make it|we need] {{n}} more of {{r}}{P}||[can i get|could i get|i'll take|i'd like|we need|let me get] {{n}} more of {{r}}{P}||{{n}} additional ones of {{r}}{P}""",
        "again": """[the same again|same again|same again please|the same again please|one more time please|another one of the same|once more the same|the same thing again|repeat that|again the same|the same once more|another round|another round please|same thing again please|let me have the same again|i'll have the same again|can i get the same again|do that again]""",
        "another": """[another one|another one please|one more|one more please|make that one more|one more of those|can i get another one|can i have one more|i'd like another|add another one|another|another of those|and another one|and one more|give me one more|let me get another|i'll take one more|and one more of these|we need one more of them]""",
        "same_but": f"""{A}[the same|the same again|another one|one more|another|the same thing|and the same] but {{x}}{P}||[can i get|could i have|i'd like|i'll have|we need|give me] [the same|another one|one more|another] but {{x}}{P}||[the same|another one|one more], {{x}} this time||[and one|and another one] {{x}}, otherwise the same""",
    },
    "ja": {
        "size": f"{J}{{r}}を{{x}}に{JE}||{J}{{r}}は{{x}}で{JD}||{J}{{r}}のサイズを{{x}}に{JE}||{J}{{r}}、{{x}}に{JE}||{J}{{r}}は{{x}}に{JE}||{{r}}を{{x}}サイズに{JE}||{J}{{r}}、{{x}}で{JD}",
        "quantity": f"{J}{{r}}を{{n}}に{JE}||{J}{{r}}は{{n}}で{JD}||{J}{{r}}は{{o}}じゃなくて{{n}}で{JD}||{J}{{r}}の数を{{n}}に{JE}||{J}{{r}}、{{n}}に{JE}||{J}{{r}}は{{n}}でした||{J}{{r}}は{{n}}に{JE}",
        "with": f"{J}{{r}}、{{x}}{JD}||{J}{{r}}は{{x}}{JD}||{J}{{r}}を{{x}}{JD}||{J}{{r}}だけ{{x}}{JD}||{J}{{r}}の方は{{x}}{JD}",
        "bare": f"{J}{{r}}、{{x}}{JD}||{J}{{r}}は{{x}}{JD}||{J}{{r}}を{{x}}{JD}||{J}{{r}}だけ{{x}}{JD}||{J}{{r}}の方は{{x}}{JD}",
        "milk": f"{J}{{r}}のミルクを{{x}}に{JE}||{J}{{r}}は{{o}}じゃなくて{{x}}で{JD}||{J}{{r}}の{{o}}を{{x}}に{JE}||{J}{{r}}は{{o}}ではなく{{x}}に{JE}||{J}{{r}}、ミルクは{{x}}に{JE}||{J}{{r}}を{{x}}に{JE}",
        "drop": f"{J}{{r}}の{{o}}はやっぱりいりません||{J}{{r}}から{{o}}を抜いて{JD}||{J}{{r}}の{{o}}を取り消して{JD}||{J}{{r}}の{{o}}をやめて{JD}||{J}{{r}}の{{o}}をなくして{JD}||{J}{{r}}は{{o}}なしに戻して{JD}",
        "rename": f"{J}{{r}}を{{w}}に{JE}||{J}{{r}}じゃなくて{{w}}で{JD}||{J}{{r}}の代わりに{{w}}を{JD}||{J}{{r}}をやめて{{w}}に{JE}||{J}{{r}}ではなく{{w}}に{JE}||{J}{{r}}はなしで、{{w}}を{JD}||{J}{{r}}はキャンセルして{{w}}に{JE}",
        "one_of": f"{J}{{r}}の一つを{{x}}{JD}||{J}{{r}}のうち1つは{{x}}{JD}||{J}{{r}}、一つだけ{{x}}{JD}||{J}{{r}}のひとつは{{x}}{JD}",
        "remove": f"{J}{{r}}を取り消して{JD}||{J}{{r}}をキャンセル[してください|で|します|お願いします]||{J}{{r}}は[いりません|やめます|なしで|結構です|キャンセルで|やめておきます|要らないです|不要です|なしにしてください]||{J}{{r}}を[やめます|なしにしてください|消してください|抜いてください|外してください|削除してください|減らしてください]||{J}{{r}}はやっぱりいらない",
        "one_less": f"{J}{{r}}を一つ減らして{JD}||{J}{{r}}を1つ取り消して{JD}||{J}{{r}}は一つ少なくて[いいです|大丈夫です]||{J}{{r}}を1つキャンセル[で|してください]||{J}{{r}}一つはいりません",
        "more_of": f"{J}{{r}}をもう一つ{JD}||{J}{{r}}もう1つ{JD}||{J}{{r}}をもうひとつ追加で{JD}||{J}{{r}}を一つ追加して{JD}||{J}{{r}}おかわり{JD}||もう一つ{{r}}を{JD}",
        "n_more": f"{J}{{r}}をあと{{n}}{JD}||{J}{{r}}をもう{{n}}{JD}||{J}{{r}}を{{n}}追加で{JD}||{J}{{r}}あと{{n}}追加して{JD}",
        "again": "[同じものをもう一度|同じのをもう一回|さっきと同じのを|同じものをください|同じのをください|同じのをお願いします|もう一回同じの|同じものをもう一度お願いします|同じのおかわり|同じものを追加で]",
        "another": "[もう一つ|もう一つください|もう1つお願いします|もうひとつ|もう一個ください|もう一杯|おかわり|あと一つ|もう一つ追加で|もう一つ追加してください|それをもう一つ|もう一つもらえますか]",
        "same_but": f"{J}同じのを、でも{{x}}{JD}||{J}もう一つ、ただし{{x}}{JD}||{J}同じもので{{x}}{JD}||{J}もう一つ同じのを、{{x}}{JD}||あともう一つ、こっちは{{x}}{JD}",
    },
}  # fmt: skip
