#! builtin
# What the model that comes along does: problems, an order desk, questions to the handbook, constraints.
#== solve
taiwa solve "How many grams does 0.25 mol of caffeine weigh?"
#== limiting
taiwa solve "5 moles of nitrogen react with 9 moles of hydrogen. How many moles of ammonia are formed?" -v
#== everyday
taiwa solve "Mia buys 6 notebooks at 2.75 dollars each and pays with 20 dollars. How much does she get back?"

#== order
taiwa say order "Two grande lattes with oat milk and a blueberry muffin, please."
taiwa say -c "Make the lattes iced, please."
#== state
taiwa state
taiwa why items.1
#== fork
taiwa fork order-1~1 other
taiwa say -c "That's everything, thank you."
taiwa diff order-1 other
#== replay
taiwa replay order-1
#== ja
taiwa say order -s ja "抹茶ラテを二つと、チーズケーキを一つください。"
taiwa say -c "やっぱりチーズケーキはやめます。"
taiwa state
taiwa why items

#== back
#! fails
taiwa ask "I have a question about leave."
taiwa ask -c 1
#== cited
taiwa ask "How many days of annual leave do I have in Galway?" -v

#== ja-ask
taiwa ask 領収書をなくしたらどうすればいいですか

#== generate
taiwa generate "What is the formula of caffeine?" -v \
  --system "Solve the problem step by step. End with a line that states the answer; its number comes last." \
  --regex "([A-Z][a-z]{2,20} is ([A-Z][a-z]?[0-9]{0,2}){1,9}|I do not know the formula of [a-z]{3,20})\."
#== explain
taiwa explain --vocab builtin --regex "([A-Z][a-z]{2,20} is ([A-Z][a-z]?[0-9]{0,2}){1,9}|I do not know the formula of [a-z]{3,20})\." "Water is H2O."
#== other
taiwa say "Who wrote Hamlet?"
#== show
taiwa models show builtin
