# One small app: its file, a conversation, its state, going back, two branches, and who set what.
#== app
cat > party.md <<'END'
---
taiwa: 1
name: party
state:
  guests: { type: int, init: 0, description: number of guests }
  avoid:  { type: "list[str]", reduce: union, description: foods that a guest cannot eat }
  menu:   { type: "dict[str, str | null]", reduce: table, description: dish by course; null for one that was dropped }
---
You plan a meal. Propose one dish at a time.
END
taiwa apps check party.md

#== say
#> For six, a baked dish is the least work: courgette lasagne. There are no nuts in it.
#| @@delta
#| {"guests": 6, "avoid": ["nuts"], "menu": {"main": "courgette lasagne"}}
taiwa say party.md "Dinner for six on Friday. Mina cannot eat nuts."
#> Lemon tart, baked the evening before.
#| @@delta
#| {"menu": {"dessert": "lemon tart"}}
taiwa say -c "And for dessert?"
taiwa state

#== fork
taiwa fork party-1~1 no-oven
#> Strawberries with whipped cream: the oven stays free for the lasagne.
#| @@delta
#| {"menu": {"dessert": "strawberries with cream"}}
taiwa say -c "A dessert that needs no oven, please."
taiwa diff party-1 no-oven

#== why
taiwa why avoid
taiwa why menu.dessert

#== undo
taiwa undo
taiwa state get menu
taiwa redo

#== log
taiwa log
taiwa log no-oven
taiwa log --tree

#== show
taiwa show party-1~1

#== set
taiwa state set guests 7
taiwa why guests
taiwa state history guests

#== search
taiwa search tart

#== retry
taiwa switch party-1
#> Panna cotta: no oven either, and it keeps for two days.
#| @@delta
#| {"menu": {"dessert": "panna cotta"}}
taiwa retry
#> Then a cheese board with grapes.
#| @@delta
#| {"menu": {"dessert": "cheese and grapes"}}
taiwa edit party-1 "And something that is not sweet?" --fork savoury
taiwa log --tree

#== replay
taiwa replay party-1 -v

#== rerun
#> Vegetable curry for six; no nuts.
#| @@delta
#| {"guests": 6, "avoid": ["nuts"], "menu": {"main": "vegetable curry"}}
#> Mango sorbet.
#| @@delta
#| {"menu": {"dessert": "mango sorbet"}}
taiwa rerun party-1 -o other-model
taiwa diff party-1 other-model

#== export
taiwa export party-1 -o party-1.jsonl
taiwa import party-1.jsonl from-a-friend
taiwa export party-1 --format md

#== cost
taiwa cost --by app

#== dry
taiwa say --dry-run -s party-1 "And to drink?"

#== json
#> Elderflower lemonade.
#| @@delta
#| {"menu": {"drink": "elderflower lemonade"}}
taiwa say -s party-1 --json "And to drink?"

#== upkeep
taiwa fsck
taiwa gc --dry-run
taiwa delete from-a-friend --yes

#== name
taiwa fork 別案
