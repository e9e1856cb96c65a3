# Exercises for the tools alone, and what an evaluation of a model would ask.
#== tools
cat > exercises.jsonl <<'END'
{"id": "water", "kind": "molar_mass", "input": "H2O", "gold": 18.015}
{"id": "rust", "kind": "balance", "input": "Fe + O2 -> Fe2O3", "gold": "4Fe + 3O2 -> 2Fe2O3"}
{"id": "typo", "kind": "arithmetic", "input": "12 × 12", "gold": 1444}
{"id": "sum", "question": "How many in all?", "answer": "3*4=<<3*4=12>>12, so 12+5=<<12+5=17>>17.\n#### 17"}
{"id": "name", "question": "What does a mole of washing soda weigh?", "answer": 286}
END
python -m evals tools --data exercises.jsonl
python -m evals tools --data exercises.jsonl --json
#== dry
cat > questions.jsonl <<'END'
{"id": 1, "question": "A jar holds 0.5 mol of table salt, NaCl. How many grams is that?", "answer": "29.22"}
{"id": 2, "question": "Tea for 4 people takes 10 g of leaves. How many grams do 14 people need?", "answer": 35}
END
taiwa eval reason --data questions.jsonl --dry-run
taiwa eval reason --data questions.jsonl --shots 0,5 --tools-on none,cal+mml,all --mode execution,exposure --dry-run
#== wrong
printf '{"question": "How many?", "answer": 3}\n{"question": "How many more?"}\n' > broken.jsonl
#! fails
taiwa eval reason --data broken.jsonl --strict
#== retrieve
cat > help_passages.jsonl <<'END'
{"id": "paid", "title": "Paid leave", "text": "Paid leave is asked for in the portal, two weeks before."}
{"id": "sick", "title": "Sick leave", "text": "Sick leave needs a note from the doctor from day three."}
END
cat > help_questions.jsonl <<'END'
{"id": 1, "question": "Who writes the note for sick leave?", "relevant": ["sick"]}
{"id": 2, "question": "Where is paid leave asked for?", "relevant": ["paid"]}
END
taiwa eval retrieve --data help_questions.jsonl --dry-run
#== asking
cat > leave_passages.jsonl <<'END'
{"id": "paid", "title": "Paid leave", "text": "Paid leave is asked for in the portal, two weeks before."}
{"id": "sick", "title": "Sick leave", "text": "Sick leave needs a note from the doctor from day three."}
END
cat > leave_questions.jsonl <<'END'
{"id": 1, "q": "Who writes the note for sick leave?", "rel": ["sick"], "answers": ["the doctor"]}
{"id": 2, "q": "Where is paid leave asked for?", "rel": ["paid"], "answers": ["in the portal"]}
END
python -m evals answer --data leave_questions.jsonl
python -m evals clarify --data taiwa:handbook --dry-run
#! fails
python -m evals clarify --data leave_questions.jsonl
#== order
cat > requests.jsonl <<'END'
{"id": "two", "domain": "cafe", "input": "Two tall iced lattes and a scone"}
{"id": "talk", "domain": "cafe", "input": "Nice weather today"}
END
cat > key.yaml <<'END'
requests:
  two:
    items:
      - { name: latte, size: tall, quantity: 2, options: [iced] }
      - { name: [scone, plain scone] }
  talk: { items: [] }
END
printf 'requests:\n  two: { items: [{ nane: latte }] }\n' > slip.yaml
#! fails
python -m evals order --data requests.jsonl --key slip.yaml
