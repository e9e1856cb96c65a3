#! builtin
# What the model that comes along does: problems, an order desk, questions to the handbook, constraints.
#== solve
taiwa solve "How many grams does 0.25 mol of caffeine weigh?"
#== limiting
taiwa solve "5 mol of nitrogen and 9 mol of hydrogen react to ammonia. How many moles of ammonia can form?" -v
#== everyday
taiwa solve "A train travels 210 km in 2.5 hours. How far does it go in 4 hours at the same speed?"

#== order
taiwa say order "Two large lattes and a blueberry muffin, please."
taiwa say -c "With oat milk, please."
#== state
taiwa state
taiwa why items.1
#== fork
taiwa fork order-1~1 other
taiwa say -c "No muffin after all. That's everything, what do I owe you?"
taiwa diff order-1 other
#== replay
taiwa replay order-1
#== ja
taiwa say order -s ja "抹茶ラテを二つと、チーズケーキを一つください。"
taiwa say -c "やっぱりチーズケーキはやめます。"
taiwa state
taiwa why items.2

#== back
#! fails
taiwa ask "Who approves it?"
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
