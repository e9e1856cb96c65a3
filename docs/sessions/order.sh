# A café's order desk: a conversation with typed state.
#== order
#> 2 grande lattes (oat milk). Anything else?
#| @@delta
#| {"items": {"1": {"name": "latte", "size": "grande", "quantity": 2, "options": ["oat milk"]}}}
taiwa say order "Two grande lattes with oat milk, please."
#> Now: 3 grande lattes (oat milk). Anything else?
#| @@delta
#| {"items": {"1": {"name": "latte", "size": "grande", "quantity": 3, "options": ["oat milk"]}}}
taiwa say -c "Make that three, please."
#== why
taiwa why items.1
#== fork
taiwa fork order-1~1 other
#> Thank you! Your lattes are on the way.
#| @@delta
#| {"status": "confirmed"}
taiwa say -c "That's everything, thank you."
taiwa diff order-1 other
#== replay
taiwa replay order-1
#== ja
#> 抹茶ラテ2つとチーズケーキ1つですね。ほかにはいかがですか?
#| @@delta
#| {"items": {"1": {"name": "matcha latte", "quantity": 2, "options": []}, "2": {"name": "cheesecake", "quantity": 1, "options": []}}}
taiwa say order -s ja "抹茶ラテを二つと、チーズケーキを一つください。"
#> チーズケーキ1つを取り消しました。ほかにはいかがですか?
#| @@delta
#| {"items": {"2": null}}
taiwa say -c "やっぱりチーズケーキはやめます。"
taiwa state
taiwa why items
