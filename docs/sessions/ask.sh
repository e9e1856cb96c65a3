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
#> {"clarity": 1, "is_question": 1, "is_consultation": 5, "in_internal_docs": 1, "ask_person": 5}
#> {"in_documents": true, "statements": [{"text": "Up to 195 euro a night in Dublin, and 150 euro elsewhere.", "quotations": [{"passage": 1, "words": "up to 150 euro, Dublin 195"}]}, {"text": "Breakfast is included.", "quotations": [{"passage": 1, "words": "breakfast is included"}]}]}
taiwa ask "What may a hotel in Dublin cost a night?"
