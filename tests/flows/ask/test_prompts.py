"""Policies as Markdown files: own scores, thresholds, functions, cases and prompts; and what is wrong with a file."""

import json
import re

import pytest

from taiwa.apps.catalog import load_app
from taiwa.conversation.history import begin
from taiwa.flows.ask.answer import answer_material
from taiwa.flows.ask.ask_result import AskTurnOptions
from taiwa.flows.ask.consult import clarify
from taiwa.flows.ask.decide_search_or_clarify import decide
from taiwa.flows.ask.dialogue import rewrite_queries
from taiwa.flows.ask.prompts import load_prompts, read_policy
from taiwa.flows.ask.types import Advise, Ask, ClarifyOptions, Decision, HandOver, Search, UserProfile
from taiwa.flows.turn import say
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Capability, Message, Passage, Response, ToolCall, assistant, user
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import record, restore
from taiwa.models.scripted import ScriptedModel, scripted_model
from taiwa.retrieval import InMemoryRetriever
from tests.flows.driving import Drive

NONE: frozenset[Capability] = frozenset()
TOOLS: frozenset[Capability] = frozenset({"tools"})
SHELF = InMemoryRetriever([Passage("press.md", "The press rattles if the belt is loose.")])
DESK = """---
taiwa: 1
policy: desk
thresholds: { late: 2, unclear: 3 }
cases:
  - urgency <= late: hand over
  - clarity >= unclear, urgency > 2: ask which_machine
  - chatter <= 1.5: advise
  - otherwise: search
---
You judge messages to a service desk {word for word}.

## statements

- urgency: The machine stands still.
- clarity: It is clear which machine is meant.
- chatter: The user only talks.

## questions

- which_machine: one question for the number of the machine; else ""
"""


def answer(**scores: int | str) -> str:
    return json.dumps({"urgency": 5, "clarity": 1, "chatter": 5, **scores})


def clarified(drive: Drive, model: ScriptedModel, text: str = DESK, **more: object) -> Decision:
    options = ClarifyOptions(table=read_policy(text), **more)  # type: ignore[arg-type]
    found: Decision = drive(lambda: clarify("It rattles.", options), model, retriever=SHELF).value.decision
    return found


@pytest.mark.parametrize(
    ("written", "act"),
    [
        (answer(urgency=2), HandOver()),
        (answer(clarity=3, which_machine="Which one?"), Ask("Which one?", 2)),
        (answer(clarity=3), Search(4)),
        (answer(chatter=1), Advise("consultation")),
        (answer(), Search(4)),
    ],
)
def test_own_scores_and_thresholds_decide_by_own_cases(drive: Drive, written: str, act: object) -> None:
    model = scripted_model(written, capabilities=NONE)

    decision = clarified(drive, model)

    assert decision.act == act
    assert decision.policy == "desk"
    assert model.requests[0].messages[0].text.startswith("You judge messages to a service desk {word for word}.")
    assert decide("desk", decision.situation) == decision == restore(record(decision))


def prompt_of(drive: Drive, text: str) -> str:
    model = scripted_model(answer(), capabilities=NONE)
    clarified(drive, model, text)
    return model.requests[0].messages[0].text.partition("Write the JSON")[0]


def test_what_the_text_of_a_policy_does_not_say_of_its_scores_and_questions_is_added(drive: Drive) -> None:
    named = DESK.replace("{word for word}", "by urgency (1: “{urgency}”), clarity, chatter and which_machine")

    plain, own = (prompt_of(drive, text) for text in (DESK, named))

    assert plain.startswith("You judge messages to a service desk {word for word}.\nGive each statement a score")
    for line in DESK.splitlines():
        assert not line.startswith("- which_machine: ") or line in plain
        assert not line.endswith(("still.", "meant.", "talks.")) or line in plain
    assert "by urgency (1: “The machine stands still.”), clarity," in own
    assert "Give each statement" not in own
    assert "- clarity" not in own


def test_own_function_names_and_descriptions_are_sent_as_tools(drive: Drive) -> None:
    text = DESK.replace(
        "cases:",
        "functions:\n  report: { about: A report of a fault., fields: [urgency, clarity, which_machine] }\n  chat: { about: Small talk., fields: [chatter], implies: { urgency: 5 } }\ncases:",
    )
    call = Response(Message("assistant", (ToolCall("chat", '{"chatter": 1}'),)))
    model = scripted_model(call, capabilities=TOOLS)

    decision = clarified(drive, model, text)

    assert decision.act == Advise("consultation")
    assert [(tool.name, tool.description) for tool in model.requests[0].tools] == [
        ("report", "A report of a fault."),
        ("chat", "Small talk."),
    ]
    properties = model.requests[0].tools[0].parameters["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["urgency", "clarity", "which_machine"]


def test_a_file_without_cases_keeps_look_first_with_its_thresholds_and_prompts(drive: Drive) -> None:
    text = "---\ntaiwa: 1\npolicy: strict\nthresholds: { unclear: 5 }\n---\nJudge."
    scores = '{"clarity": 4, "is_question": 1, "is_consultation": 5, "in_internal_docs": 1, "ask_person": 5}'
    model = scripted_model(scores, capabilities=NONE)

    decision = clarified(drive, model, text)

    assert isinstance(decision.act, Search)
    assert decision.policy == "strict"
    assert model.requests[0].messages[0].text.startswith("Judge.")
    assert decide("strict", decision.situation) == decision


def test_thresholds_of_a_user_take_precedence_over_those_of_the_file(drive: Drive) -> None:
    options = ClarifyOptions(table=read_policy(DESK))
    own = UserProfile("ann").thresholds
    profile = UserProfile("ann", thresholds=type(own)(unclear=5))
    model = scripted_model(answer(clarity=4, which_machine="Which one?"), capabilities=NONE)

    done = drive(lambda: clarify("It rattles.", options, profile=profile), model, retriever=SHELF).value

    assert done.act == Search(4)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("---\ntaiwa", "taiwa", "the front matter is missing"),
        ("taiwa: 1", "taiwa: 2", "`taiwa` must be 1"),
        ("cases:", "caces:", "unknown key 'caces'; did you mean 'cases'?"),
        ("urgency <= late", "urgensy <= late", "unknown score 'urgensy'; did you mean 'urgency'?"),
        ("urgency <= late", "urgency <= latte", "unknown threshold 'latte'; did you mean 'late'?"),
        ("urgency <= late", "urgency = late", "cannot read the condition 'urgency = late'"),
        ("ask which_machine", "ask what", "unknown question 'what'; choose one of which_machine"),
        ("hand over", "hand_over", "unknown act 'hand_over'; did you mean 'hand over'?"),
        ("late: 2", "late: soon", "threshold late must be a number, got 'soon'"),
        ("## questions", "## questoins", "unknown section 'questoins'; did you mean 'questions'?"),
        ("## questions\n\n", "## questoins\n", "unknown section 'questoins'; did you mean 'questions'?"),
        ("## questions", "## Answer in short", "unknown section 'Answer in short'"),
        ("## questions", "## statements", "the section `## statements` occurs twice"),
        ("## questions", "## exchanges\n\nTea.\n\n## questions", "`## exchanges` needs a passage, notes and messages"),
        ("unclear: 3 }", "unclear: 3, uncler: 2 }", "unknown threshold 'uncler'; did you mean 'unclear'?"),
        ("cases:\n", "cases: { a: b }\nabout:\n", "`cases` must be a list"),
        ("thresholds: { late", "thresholds: { late: *x", "desk.md:4"),
    ],
)
def test_a_wrong_file_is_an_error_with_its_place_and_a_hint(old: str, new: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        read_policy(DESK.replace(old, new, 1), "desk.md")


def test_a_policy_without_exchanges_shows_none() -> None:
    assert load_prompts("en").replaced_by([("exchanges", "")]).exchanges() == ()


def test_a_section_needs_no_blank_line_behind_its_heading() -> None:
    close = DESK.replace("## statements\n\n", "## statements\n").replace("## questions\n\n", "##  questions \n")

    assert read_policy(close) == read_policy(DESK)


def test_the_prompts_of_rewriting_and_answering_are_those_of_the_file(drive: Drive) -> None:
    own = read_policy(f"{DESK}\n## rewrite_one\n\nRewrite it.\n\n## answer\n\nAnswer it.\n").prompts
    model = scripted_model("press rattles")
    dialogue = (user("The press."), assistant("What of it?"), user("It rattles."))

    drive(lambda: rewrite_queries(dialogue, multiple=False, own_prompts=own), model)

    assert model.requests[0].messages[0].text == "Rewrite it."
    passages = [Passage("press.md", "The press rattles.")]
    assert answer_material("It rattles.", passages, "en", own)[0] == "Answer it."


def test_a_turn_uses_the_prompts_of_its_policy_file() -> None:
    table = read_policy(f"{DESK}\n## answer\n\nAnswer it.\n")
    model = scripted_model(answer(), "NOT FOUND", capabilities=NONE)
    options = AskTurnOptions(clarify=ClarifyOptions(table=table))
    conversation = begin(load_app("ask").with_params({}))

    Runtime(model, retriever=SHELF).run(say("The press rattles, why?", documents=options)(conversation))

    assert model.requests[-1].messages[0].text.startswith("Answer it.")
