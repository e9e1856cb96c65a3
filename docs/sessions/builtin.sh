#! builtin
# What the built-in model does: problems, an order desk, questions to the handbook, constraints.
#== solve
taiwa solve "How many grams do 3 moles of sulfuric acid weigh?"
#== limiting
taiwa solve "2 mol of hydrogen and 3 mol of oxygen react. How many moles of water are formed?" -v
#== everyday
taiwa solve "A train travels 210 km in 2.5 hours. What is its average speed in km/h?"

#== order
taiwa say order "Two grande lattes with oat milk, please."
taiwa say -c "Make that three, please."
#== state
taiwa state
#== why
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

#== cited
taiwa ask "How many days of annual leave do I have in Galway?" -v

#== generate
taiwa generate --task solve "What is the formula of ammonia?" -v \
  --regex "((Ammonia|Ethanol|Glucose|Methane|Water) is ([A-Z][a-z]?[0-9]{0,2}){1,9}|I do not know the formula of [a-z]{3,20})\."
#== explain
taiwa explain --vocab builtin --regex "((Ammonia|Ethanol|Glucose|Methane|Water) is ([A-Z][a-z]?[0-9]{0,2}){1,9}|I do not know the formula of [a-z]{3,20})\." "Ammonia is NH3."
#== other
taiwa say "Who wrote Hamlet?"
#== show
taiwa models show builtin
