# Every line of a file: in one conversation whose state is carried on, and each on its own.
#== fold
printf '文(sentence)を書く。\n文を読む。\n' > lines.txt
#> I write a sentence.
#| @@delta
#| {"dictionary": {"文": "sentence"}}
#> I read the sentence.
#| @@delta
#| {}
taiwa batch translate lines.txt --mode fold -p target_lang=English -o out.jsonl
cat out.jsonl
taiwa state -s translate-lines
#== map
cat > questions.jsonl <<'END'
{"id": "a", "text": "Is a tomato a fruit?"}
{"id": "b", "text": ""}
{"id": "c", "text": "Is a cucumber?"}
END
#! fails
#> Botanically, yes.
#| @@delta
#| {"topics": ["tomatoes"]}
#> Botanically, yes as well.
#| @@delta
#| {"topics": ["cucumbers"]}
taiwa batch chat questions.jsonl --mode map -j 1 -o answers.jsonl
cat answers.jsonl
#! fails
taiwa batch chat questions.jsonl --mode map -o answers.jsonl --resume
