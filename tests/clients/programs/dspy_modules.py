"""Modules of DSPy over LiteLLM: both adapters, types, tools, streams."""

import os

import dspy
from pydantic import BaseModel
from refusals import refused


class Person(BaseModel):
    name: str
    age: int


class Who(dspy.Signature):
    question: str = dspy.InputField()
    person: Person = dspy.OutputField()


ANN = Person(name="Nara", age=3)
CHAT = 'SAY <<<[[ ## person ## ]]\n{"name": "Nara", "age": 3}\n\n[[ ## completed ## ]]>>>'
for kind in ("chat", "responses"):
    lm = dspy.LM(f"openai/{os.environ['MODEL']}", model_type=kind, cache=False)
    assert lm("a")[0] in ("Read: a", {"text": "Read: a"}), lm("a")
    dspy.configure(lm=lm, adapter=dspy.ChatAdapter())
    assert dspy.Predict(Who)(question=CHAT).person == ANN
    dspy.configure(lm=lm, adapter=dspy.JSONAdapter())
    assert dspy.Predict(Who)(question='SAY <<<{"person": {"name": "Nara", "age": 3}}>>>').person == ANN
    with refused():
        lm("status 400")
