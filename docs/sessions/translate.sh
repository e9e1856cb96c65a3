# The published example of Monadic Chat: a translation in parentheses is used from then on.
#== say
#> It is a sentence.
#| @@delta
#| {"dictionary": {"文": "sentence"}}
taiwa say translate -p target_lang=English "文(sentence)です。"
#> The next sentence is longer.
#| @@delta
#| {}
taiwa say -c "次の文はもっと長いです。"
taiwa why dictionary.文
