# The built-in handbook, asked without a model and with one.
#@ taiwa config remove model
#== first
taiwa ask "How many days of annual leave do I have in Galway?"
#== broad
taiwa ask 休暇について
taiwa ask -c 1
#== topic
#! fails
taiwa ask "I have a question about leave."
taiwa ask -c 1
#== topic-ja
#! fails
taiwa ask 休暇について質問があります
taiwa ask -c 1
taiwa ask 育児休業は何か月取れますか
#== back
#! fails
taiwa ask この書類はだれに出せばいいですか
#== verbose
taiwa ask "Which video system do we use for a call with a customer?" -v
#== closed
taiwa ask "What is the pay band of grade 5 in Galway?" --as group:managers
#@ taiwa config set model written:script
#== model
#> You can carry over up to 5 days, and they must be taken by 30 June [1]. All other days can be paid out [1].
taiwa ask "Until when can I use leave that I carried over?"
