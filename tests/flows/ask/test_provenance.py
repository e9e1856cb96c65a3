"""Where a value comes from, and fields that take no value without a source."""

import json

import pytest

from taiwa.apps.catalog import load_text
from taiwa.conversation.history import add_turn, begin
from taiwa.flows.ask.provenance import cited_only, sources_of, stated_only
from taiwa.flows.turn import say
from taiwa.kernel.messages import Passage
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json
from taiwa.models.scripted import scripted_model
from taiwa.sessions.session import Session

HOTELS = Passage("guide.md", "# Stay\nThe Harbour Inn has 12 rooms. A room costs 1,200 yen. Dogs stay free.", id="p")
CALLS: Json = {"calls": [
    {"name": "adder", "input": "40+2", "result": "42", "error": ""},
    {"name": "adder", "input": "x", "result": "77", "error": "bad_arguments"},
]}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (3, "user", "A room for the three of us."),
        ("the Harbour inn", "passage", "The Harbour Inn has 12 rooms."),
        (1200, "passage", "A room costs 1,200 yen."),
        (42, "tool", "42"),
        (77, "model", "77"),
        ("by tram", "answer", "You can come by tram or on foot."),
        ("by boat", "model", "by boat"),
        ("三", "user", "A room for the three of us."),
    ],
)
def test_the_closest_words_that_hold_a_value_are_its_source(value: Json, kind: str, words: str) -> None:
    (source,) = sources_of(
        value, "Hello. A room for the three of us.", CALLS, "You can come by tram or on foot.", [HOTELS]
    )

    assert (source.kind, source.words) == (kind, words)


@pytest.mark.parametrize("said", ["It is 4.5 km away.", "評価は4.5点以上です。"])
def test_a_decimal_point_ends_no_sentence(said: str) -> None:
    (source,) = sources_of("4.5", f"Hello. {said} Thanks.", None)

    assert source.words == said


@pytest.mark.parametrize(
    ("value", "text", "kind"),
    [
        (12500, "It costs 12,500 yen.", "user"),
        (12500, "It costs 12\u202f500 euros.", "user"),
        (12500, "It costs 12’500 francs.", "user"),
        (1250.5, "Das kostet 1.250,50 €.", "user"),
        (1250000, "Das kostet 1.250.000 €.", "user"),
        (12500, "料金は1万2500円です。", "user"),
        (150000000, "价格是1亿5000万元。", "user"),
        (12500, "价格是1.25万元。", "user"),
        (12500, "It costs 12 and 500.", "model"),
        (500, "It costs 12’500 francs.", "model"),
        (2500, "料金は1万2500円です。", "model"),
    ],
)
def test_a_number_is_found_however_its_thousands_are_written(value: Json, text: str, kind: str) -> None:
    (source,) = sources_of(value, text, None)

    assert source.kind == kind


def test_each_part_of_a_value_has_a_source_of_its_own() -> None:
    value: Json = {"inn": "Harbour Inn", "nights": 2, "paid": True, "note": None, "who": ["Mina", "nobody"]}

    found = sources_of(value, "Mina stays two nights.", None, "", [HOTELS])

    assert [(each.path, each.kind) for each in found] == [
        ("inn", "passage"), ("nights", "user"), ("who.0", "user"), ("who.1", "model"),
    ]  # fmt: skip
    assert found[0].citation is not None
    assert HOTELS.text[found[0].citation.start : found[0].citation.end] == found[0].words


APP = load_text(
    """---
taiwa: 1
reply: text+delta
state:
  inn: { type: str, cite: true }
  extras: { type: "list[str]", reduce: union, cite: true }
  rooms: { type: int }
---
Help.
""",
    "a.md",
    "a",
)


def test_what_no_source_holds_is_left_out_with_a_warning() -> None:
    before = add_turn(begin(APP), "Hello", "The Harbour Inn is nice.", {})
    model = scripted_model('Fine.\n@@delta\n{"inn": "Harbour Inn", "extras": ["dog", "a spa"], "rooms": 9}')

    reply, after = Runtime(model).run(say("That one, with my dog.")(before))

    assert after.state == {"inn": "Harbour Inn", "extras": ["dog"], "rooms": 9}
    assert reply.warnings == ('extras: no source holds ["a spa"], so it was left out',)


@pytest.mark.parametrize(("said", "kept"), [("The Harbour Inn, please.", "Harbour Inn"), ("Yes, that one.", "")])
def test_of_a_field_from_the_user_only_the_words_of_the_user_are_a_source(said: str, kept: str) -> None:
    app = load_text(
        "---\ntaiwa: 1\nreply: text+delta\nstate: { inn: { type: str, cite: true, from: user } }\n---\nHelp.\n",
        "a.md",
        "a",
    )
    before = add_turn(begin(app), "Hello", "The Harbour Inn is nice.", {})
    delta: dict[str, Json] = {"inn": "Harbour Inn"}
    findings: Json = {"calls": [{"name": "find", "result": "Harbour Inn"}]}
    passages = [Passage("inns.md", "The Harbour Inn has rooms.", id="p1")]

    found, warnings = cited_only(before, said, delta, findings, passages)

    assert found.get("inn", "") == kept
    left_out = 'inn: the user\'s text does not hold "Harbour Inn", so it was left out'
    assert warnings == (() if kept else (left_out,))


def test_why_goes_to_the_words_of_the_user_the_tool_or_the_passage() -> None:
    import taiwa

    model = scripted_model('Fine.\n@@delta\n{"inn": "Harbour Inn", "rooms": 9}', 'So be it.\n@@delta\n{"rooms": 2}')
    session: Session = taiwa.open(app=APP, model=model, store=":memory:")
    session.say("The Harbour Inn.")
    session.say("A room for two.")

    (inn,), (rooms,) = (session.why(path).sources for path in ("inn", "rooms"))
    assert (inn.kind, inn.words) == ("user", "The Harbour Inn.")
    assert (rooms.kind, rooms.words) == ("user", "A room for two.")


def test_why_names_what_is_computed_and_what_a_program_set() -> None:
    import taiwa
    from taiwa.kernel.effects import Program

    def turn(_: object, text: str) -> Program[taiwa.Reply]:
        yield from ()
        return taiwa.Reply("Noted 1.", {"inn": "Harbour Inn", "rooms": int(text)})

    app = load_text(
        "---\ntaiwa: 1\nstate: { inn: str, rooms: int, n: { computed: turn_count } }\n---\nHi.\n", "a.md", "a"
    )
    session: Session = taiwa.open(app=app, model=scripted_model(), store=":memory:")
    session.run(turn, "1")

    (inn,), (rooms,), (n,) = (session.why(path).sources for path in ("inn", "rooms", "n"))
    assert [inn.kind, rooms.kind] == ["program", "user"]
    assert (n.kind, n.words) == ("computed", "turn_count")


def test_why_goes_to_the_sentence_under_which_the_model_recorded_what_no_words_hold() -> None:
    import taiwa

    said = {
        "said": "I never eat meat.",
        "changes": [{"field": "diet", "value": "vegetarian"}, {"field": "dog", "value": True}],
    }
    invented = {"said": "I love my dog.", "changes": [{"field": "dog", "value": False}]}
    app = load_text(
        "---\ntaiwa: 1\nreply: record\nstate: { diet: '\"vegetarian\" | \"any\"', dog: 'bool | null' }\n---\nHelp.\n",
        "a.md",
        "a",
    )
    replies = (json.dumps([said]), "Noted.", json.dumps([invented]), "Noted.")
    session: Session = taiwa.open(app=app, model=scripted_model(*replies), store=":memory:")
    session.say("Hello! I never eat meat.")

    (diet,), (dog,) = (session.why(path).sources for path in ("diet", "dog"))
    assert (diet.kind, diet.words) == (dog.kind, dog.words) == ("stated", "I never eat meat.")

    session.say("No dog comes along.")  # a model that cannot be bound may write a sentence that nobody said
    (dog,) = session.why("dog").sources
    assert (dog.kind, dog.words) == ("model", "false")


@pytest.mark.parametrize(
    ("kind", "written", "kept"),
    [
        ('type: "dict[str, int]"', {"Mallory": 3, "Ann": 3}, {"Ann": 3}),
        ('type: "dict[str, bool]"', {"Mallory": True, "Ann": True}, {"Ann": True}),
        (
            'type: "dict[str, {sum: int}]", reduce: table',
            {"Mallory": {"sum": 3}, "Ann": {"sum": 3}},
            {"Ann": {"sum": 3}},
        ),
        ('type: "list[dict[str, int]]"', [{"Mallory": 3}, {"Ann": 3}], [{"Ann": 3}]),
    ],
)
def test_the_name_of_an_entry_needs_a_source_too(kind: str, written: Json, kept: Json) -> None:
    app = load_text(
        f"---\ntaiwa: 1\nreply: text+delta\nstate:\n  owed: {{ {kind}, cite: true }}\n---\nHelp.\n", "a.md", "a"
    )
    model = scripted_model(f"Fine.\n@@delta\n{json.dumps({'owed': written})}")

    reply, after = Runtime(model).run(say("Ann owes 3.")(begin(app)))

    assert after.state == {"owed": kept}
    assert len(reply.warnings) == 1
    assert "Mallory" in reply.warnings[0]


DESK = load_text(
    """---
taiwa: 1
state:
  inn: { type: str }
  mood: { type: str, cite: false }
  rooms: { type: int }
  garden: { type: 'bool | null' }
  kind: { type: '"quiet" | "lively"' }
  topics: { type: "list[str]", reduce: union }
  town: { type: str, from: reply }
---
Help.
""",
    "a.md",
    "a",
)
OFFER = "The Harbour Inn has a room for 300 pounds."


@pytest.mark.parametrize(
    ("text", "delta", "left_out"),
    [
        ("A room at the harbour inn, please.", {"inn": "Harbour Inn"}, ()),
        ("Good, I take it.", {"inn": "the Harbour Inn"}, ()),
        ("Where is it?", {"inn": "Harbour Inn"}, ("inn",)),
        ("それはどこですか。", {"inn": "Harbour Inn"}, ("inn",)),
        ("有两间房吗", {"rooms": 300}, ("rooms",)),
        ("Is it a quiet inn?", {"inn": "quiet inn"}, ()),
        ("Thank you.", {"inn": "name of the inn"}, ("inn",)),
        ("はい、港ホテルで。", {"inn": "港ホテル"}, ()),
        ("港ホテルはどこですか？", {"inn": "評価"}, ("inn",)),
        ("For me and my wife, please.", {"rooms": 1}, ()),
        ("How much is that for each of us?", {"rooms": 150}, ("rooms",)),
        ("Have you two rooms?", {"rooms": 2}, ()),
        ("Hm?", {"mood": "unsure", "kind": "quiet", "topics": ["doubt"], "town": "Leith"}, ()),
        ("Forget the inn. Any other?", {"inn": ""}, ()),
        ("How many days of leave are there?", {"inn": "None"}, ("inn",)),
        ("None of them, please.", {"inn": "none"}, ()),
        ("For me and my wife, please.", {"rooms": 0}, ("rooms",)),
        ("We need no rooms, thank you.", {"rooms": 0}, ()),
        ("Is there a bus?", {"garden": False}, ("garden",)),
        ("Could we have one with a garden?", {"garden": True}, ()),
        ("Is there one without a garden?", {"garden": False}, ()),
        ("An inn on the harbour, please.", {"garden": False}, ()),
        ("我想要一家价格便宜的高档酒店。", {"inn": "酒店价格"}, ("inn",)),
        ("酒店要在市中心，最好有早餐。", {"inn": "市中心，有早餐"}, ()),
    ],
)
def test_a_free_text_must_be_said_and_a_question_takes_nothing_over(
    text: str, delta: dict[str, Json], left_out: tuple[str, ...]
) -> None:
    before = add_turn(begin(DESK), "Hello.", OFFER, {})

    kept, rest = stated_only(before, text, delta)

    assert tuple(rest) == left_out
    assert kept == {name: part for name, part in delta.items() if name not in left_out}


def test_a_text_stays_in_its_field_until_the_user_says_it_again() -> None:
    trip = load_text("---\ntaiwa: 1\nstate: { start: str, goal: str }\n---\nHelp.\n", "a.md", "a")
    before = add_turn(begin(trip), "From Leeds, please.", "Fine.", {"start": "Leeds"})

    assert stated_only(before, "Good, thank you.", {"goal": "Leeds"})[1] == {"goal": "Leeds"}
    assert stated_only(before, "And back to Leeds.", {"goal": "Leeds"})[1] == {}


def test_a_value_that_stays_as_it_is_needs_no_words() -> None:
    before = add_turn(begin(DESK), "The Harbour Inn.", "Fine.", {"inn": "Harbour Inn"})

    assert stated_only(before, "Is it far?", {"inn": "Harbour Inn"}) == ({"inn": "Harbour Inn"}, {})


def test_a_statement_takes_over_what_the_state_holds() -> None:
    before = add_turn(begin(DESK), "To Leith, at the Harbour Inn.", "Fine.", {"inn": "Harbour Inn"})

    assert stated_only(before, "Put the inn down as my mood too.", {"inn": "the inn at the harbour"})[1] == {}
