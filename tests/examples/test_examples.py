"""The examples run, each with an answer as a model might write it, and fit on a page."""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import taiwa
from taiwa.flows.plans import Api, Confirm
from taiwa.flows.route import NeedsClarification, Routed
from taiwa.kernel.serialization import Json
from tests.house.source import ROOT
from tests.peers.faults import FaultServer, speech

FILES = sorted((ROOT / "examples").glob("*.py"))
MOST_LINES = 70


def example(name: str) -> Any:
    return import_module(f"examples.{name}")


def steps(*calls: tuple[str, *tuple[Json, ...]]) -> Json:
    return {"@steps": [{"@func": name, "@args": list(given)} for name, *given in calls]}


def ran(program: taiwa.Program[Any], *answers: Json, **more: Any) -> Any:
    """Run a program with these answers."""
    return client(*answers, **more).run(program)


def client(*answers: Json, **more: Any) -> taiwa.Client:
    """Make a client of a model with these answers; a text is played as it is."""
    words = [answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False) for answer in answers]
    return taiwa.Client(taiwa.scripted_model(*words), **more)


def test_there_is_one_for_each_of_ten_domains() -> None:
    assert [path.stem for path in FILES] == [
        "appointments", "coffee_shop", "crossword", "drawing", "front_desk", "health_diary", "music", "restaurant",
        "sentiment", "sums",
    ]  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_fits_on_a_page_and_says_how_it_is_run(path: Any) -> None:
    text = path.read_text(encoding="utf-8")

    assert len(text.splitlines()) <= MOST_LINES
    assert f"python examples/{path.name}" in text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_type_of_it_can_be_shown_to_a_model(path: Any) -> None:
    module = example(path.stem)
    own = [part for part in vars(module).values() if isinstance(part, type) and part.__module__ == module.__name__]

    for part in own:
        shown = Api(part) if part.__name__ in ("Sums", "Player", "Bill") else taiwa.OutputType[Any](part)
        assert part.__name__ in shown.render()


def test_a_coffee_shop_takes_an_order() -> None:
    shop = example("coffee_shop")
    answer = """The guest wants:
    ```json
    {"items": [
        {"kind": "coffee", "name": "latte", "size": "large", "milk": "oat", "cups": 2},  // two of them
        {"kind": "bakery", "name": "croissant", "warm": True},
        {"kind": "unclear", "words": "a newspaper"},
    ]}
    ```"""

    found = client(answer).try_extract(shop.Order, "Two large oat lattes, a warm croissant and a newspaper")

    assert found.value.items == [
        shop.Coffee(kind="coffee", name="latte", size="large", milk="oat", cups=2),
        shop.Bakery(kind="bakery", name="croissant", warm=True),
        shop.Unclear(kind="unclear", words="a newspaper"),
    ]
    assert len(found.attempts) == 1


def test_a_coffee_shop_asks_again_for_what_is_not_on_the_menu() -> None:
    shop = example("coffee_shop")
    bad: Json = {"items": [{"kind": "coffee", "name": "mocha"}]}
    good: Json = {"items": [{"kind": "unclear", "words": "mocha"}]}

    found = client(bad, good).try_extract(shop.Order, "A mocha")

    assert found.attempts[0].diagnostics[0].startswith('$.items[0].name = "mocha": must be "espresso", "latte"')
    assert found.value.items == [shop.Unclear(kind="unclear", words="mocha")]


def test_a_calendar_is_changed() -> None:
    calendar = example("appointments")
    answer: Json = {
        "value": [
            {"do": "move", "which": {"about": "dentist"}, "to": {"day": "Friday", "hours": "15:00"}},
            {"do": "invite", "which": {"about": "dentist", "with": ["Ken"]}, "people": ["Aiko"]},
        ]
    }

    move, invite = client(answer).extract(calendar.CHANGES, "Move the dentist to Friday at three, and tell Aiko")

    assert move.to == calendar.When(day="Friday", hours="15:00")
    assert (invite.which.with_, invite.people) == (["Ken"], ["Aiko"])


def test_a_mood_is_read_after_its_reason() -> None:
    sentiment = example("sentiment")

    found = client({"reason": "'late' and 'lovely'", "mood": "mixed"}).extract(sentiment.Mood, "late, but lovely")

    assert found.mood == "mixed"
    assert taiwa.OutputType(sentiment.Mood).render().index("reason") < taiwa.OutputType(sentiment.Mood).render().index(
        "mood:"
    )


def test_a_table_becomes_lines_for_the_kitchen() -> None:
    restaurant = example("restaurant")
    noodles: Json = {"dish": "ramen", "broth": "miso"}
    answer: Json = {
        "guests": [{"noodles": noodles}, {"noodles": noodles, "drink": "beer"}],
        "shared": [{"dish": "dumplings", "plates": 2}],
    }

    found = client(answer).extract(restaurant.Table, "味噌ラーメン二つと餃子二皿")

    assert restaurant.kitchen(found) == ['2 x {"dish":"ramen","broth":"miso"}', "2 x dumplings"]


def test_a_sum_is_planned_checked_and_calculated() -> None:
    sums = example("sums")
    plan = steps(("multiply", 12, 24), ("percent", 5, {"@ref": 0}), ("subtract", {"@ref": 0}, {"@ref": 1}))

    outcome = ran(sums.solve("12 boxes of 24 eggs, less 5 percent"), plan, tools=sums.SUMS.bind(sums.Sums()))

    assert outcome.result == pytest.approx(273.6)


def test_a_sum_that_divides_by_zero_is_told() -> None:
    sums = example("sums")

    outcome = ran(sums.solve("1/0"), steps(("divide", 1, 0)), tools=sums.SUMS.bind(sums.Sums()))

    assert [(each.status, each.error) for each in outcome.calls] == [("failed", "divide failed")]


@pytest.mark.parametrize("dry", [True, False])
def test_a_player_looks_up_freely_and_asks_before_it_saves(dry: bool) -> None:
    music = example("music")
    shelf, asked = music.Player(), list[Confirm]()
    plan = steps(
        ("favourites",), ("ordered", {"@ref": 0}, "beats"), ("first", {"@ref": 1}, 2), ("save", "calm", {"@ref": 2})
    )
    handlers = {Confirm: lambda effect: asked.append(effect) or True}

    outcome = ran(music.obey("…", dry=dry), plan, tools=music.PLAYER.bind(shelf), handlers=handlers)

    assert [song.title for song in shelf.saved.get("calm", [])] == ([] if dry else ["Drift", "Rain"])
    assert [each.status for each in outcome.calls] == ["done", "done", "done", "dry_run" if dry else "done"]
    assert len(asked) == (not dry)


def test_a_drawing_becomes_svg() -> None:
    drawing = example("drawing")
    answer: Json = {
        "parts": [
            {"draw": "box", "x": 0, "y": 50, "width": 100, "height": 50, "fill": "green"},
            {"draw": "circle", "x": 80, "y": 20, "radius": 10, "fill": "yellow"},
        ]
    }

    svg = drawing.svg(client(answer).extract(drawing.Drawing, "a sun over a field"))

    assert svg.count("<rect") == svg.count("<circle") == 1


def test_a_diary_asks_back_or_writes_down() -> None:
    diary = example("health_diary")
    question: Json = {"to": "none", "question": "Since when?"}
    entry: Json = {
        "to": "entry",
        "content": {"symptoms": [{"what": "headache", "strength": "light", "since": "morning"}]},
    }

    assert ran(diary.entry(["My head hurts"]), question) == NeedsClarification("Since when?")
    found = ran(diary.entry(["My head hurts a little", "Since the morning"]), entry)
    assert found.value.symptoms[0].since == "morning"


@pytest.mark.parametrize(
    ("answer", "to"),
    [
        ({"to": "booking", "content": {"people": 2, "day": "Friday", "hour": "seven"}}, "booking"),
        ({"to": "complaint", "content": {"about": "room", "words": "it is cold", "urgent": True}}, "complaint"),
        ({"to": "bill", "content": steps(("entries", "today"), ("total", {"@ref": 0}))}, "bill"),
    ],
)
def test_one_desk_knows_what_is_meant(answer: Json, to: str) -> None:
    found = ran(example("front_desk").desk("…"), answer)

    assert isinstance(found, Routed)
    assert found.to == to


def test_clues_are_read_and_only_faulty_places_are_asked_for_again() -> None:
    crossword = example("crossword")
    clues: list[Json] = [
        {"number": n, "words": f"Clue number {n} of a long page", "lengths": [n]} for n in range(1, 31)
    ]
    page: Json = {"across": clues[:15], "down": clues[15:]}

    found = ran(crossword.clues("…"), page, {f"$.down[{n - 16}].lengths": [n - 10, 10] for n in range(26, 31)})

    assert [each.form for each in found.attempts] == ["whole", "patch"]
    assert found.value.down[-1].lengths == [20, 10]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_without_a_model_it_says_how_to_get_one(real_environment: dict[str, str], path: Path) -> None:
    done = subprocess.run(
        [sys.executable, path], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        cwd=ROOT, env=real_environment | {"TAIWA_MODEL": "", "TAIWA_CONFIG": "/nonexistent.yaml"},
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("taiwa: no model is set")


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as opened:
        yield opened


SHOWN: dict[str, tuple[Json, str]] = {
    "appointments": (
        {"value": [{"do": "add", "about": "lunch", "when": {"day": "Monday", "hours": "noon"}, "people": ["Ken"]}]},
        'add: {"about":"lunch","when":{"day":"Monday","hours":"noon"},"people":["Ken"]}',
    ),
    "coffee_shop": (
        {"items": [{"kind": "coffee", "name": "latte", "size": "large", "milk": "oat"}]},
        "coffee: latte large oat",
    ),
    "crossword": (
        {"across": [{"number": 1, "words": "Leaves in hot water", "lengths": [3]}], "down": []},
        "  1 across Leaves in hot water (3)",
    ),
    "drawing": ({"parts": [{"draw": "circle", "x": 80, "y": 20, "radius": 10, "fill": "yellow"}]}, "<circle"),
    "front_desk": (
        {"to": "complaint", "content": {"about": "room", "words": "It is cold in my room", "urgent": False}},
        "complaint: about='room'",
    ),
    "health_diary": (
        {"to": "entry", "content": {"measures": [{"what": "temperature", "number": 38.5, "unit": "degrees"}]}},
        '"number": 38.5',
    ),
    "music": (
        steps(("favourites",), ("ordered", {"@ref": 0}, "beats"), ("save", "calm", {"@ref": 1})),
        "dry_run: save\n    calm\n    [{'title': 'Drift'",
    ),
    "restaurant": (
        {"guests": [{"noodles": {"dish": "ramen", "broth": "miso"}}]},
        '1 x {"dish":"ramen","broth":"miso"}',
    ),
    "sentiment": ({"reason": "'worse'", "mood": "neutral"}, "neutral: 'worse'"),
    "sums": (steps(("multiply", 12, 24), ("percent", 5, {"@ref": 0})), "multiply(12, 24) = 288"),
}
"""What a model answers to the example without arguments, and what the example then prints."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_one_command_prints_something_worth_reading(
    real_environment: dict[str, str], server: FaultServer, tmp_path: Path, path: Path
) -> None:
    answer, shown = SHOWN[path.stem]
    server.plays(speech(json.dumps(answer)))
    (tmp_path / "probes.json").write_text(json.dumps({f"{server.base_url}#": {"server": "test"}}))

    done = subprocess.run(
        [sys.executable, path], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT,
        env=real_environment | {"TAIWA_MODEL": f"{server.base_url}#m", "TAIWA_CONFIG": str(tmp_path / "config.yaml")},
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
