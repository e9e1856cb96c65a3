# One line each: what, where, and what to do next.
#== names
#! fails
taiwa sya hello
#! fails
taiwa say -m gpt-x hello
#! fails
taiwa say -m opena:gpt-x hello
#! fails
taiwa say -m openai:gpt-x hello
#! fails
taiwa show plan~2
#== app
cat > broken.md <<'END'
---
taiwa: 1
stat:
  topics: { type: "list[str", reduce: union }
---
Hello
END
#! fails
taiwa apps check broken.md
#== text
#! fails
printf 'caf\351' | taiwa say -
#! fails
taiwa say ""
#== state
#> Hello.
#| @@delta
#| {}
taiwa say chat "Hi"
#! fails
taiwa why topics[3]
#! fails
taiwa state set confidence 7
#! fails
taiwa undo 5
#! fails
taiwa redo
#! fails
taiwa resume
#== cost
#! fails
taiwa say -c --max-cost 0.01 -m openai:gpt-x "And now?"
#== server
#! fails
taiwa say -m http://127.0.0.1:9/v1#none "Is anybody there?"
#== repair
#> Good.
#| @@delta
#| {"topics": "tea"}
#> {"topics": "tea"}
taiwa say -c "Let us talk about tea."
#> Good.
#| @@delta
#| {"topics": "tea"}
#> {"topics": "tea"}
#! fails
taiwa say -c --strict "Let us talk about tea."
