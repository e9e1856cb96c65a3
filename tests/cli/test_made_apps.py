"""Apps that the options of `say` make, and `taiwa apps save`."""

from pathlib import Path

import pytest

from taiwa.apps.catalog import check, load, load_app
from taiwa.conversation.app import AnswerOptions
from taiwa.kernel.messages import Sampling
from taiwa.operations.apps import save_app
from tests.cli.conftest import ModelServer, Place, Taiwa, delta

FIELDS = "city str: the town, nights int(1..20), kind: inn|hotel"


@pytest.fixture
def guides(tmp_path: Path) -> Path:
    folder = tmp_path / "guides"
    folder.mkdir()
    (folder / "osaka.md").write_text("# Osaka\n\nThe Inn of the Cat in Osaka costs 80 pounds a night.\n")
    return folder


def test_options_put_documents_state_and_a_tool_into_one_turn(
    taiwa: Taiwa, model_server: ModelServer, guides: Path
) -> None:
    model_server(
        delta("The Inn of the Cat costs 80 pounds a night. [1]", city="Osaka", nights=2), delta("Yes.", nights=3)
    )

    said = taiwa.ok(
        "say", "--in", str(guides), "--state", FIELDS, "--tool", "calculator", "--system", "You are a travel desk.",
        "What does the Inn of the Cat in Osaka cost a night? We stay two nights.", "--json",
    ).json  # fmt: skip
    shown = taiwa.ok("say", "-c", "Make it three nights at the Inn of the Cat.", "-v")

    assert said["delta"] == {"city": "Osaka", "nights": 2}
    assert "searched for: Make it three nights at the Inn of the Cat." in shown.err
    assert "osaka.md › Osaka" in shown.err
    assert taiwa.ok("state", "--json").json["state"]["nights"] == 3
    prompt = str(model_server.requests[0]["messages"])
    assert "You are a travel desk." in prompt
    assert "80 pounds a night" in prompt
    assert "the town" in prompt
    assert "calculator" in prompt


def test_what_was_set_up_is_kept_as_an_app(
    taiwa: Taiwa, model_server: ModelServer, guides: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(guides.parent)
    model_server(delta("80 pounds. [1]", city="Osaka"), delta("80 pounds. [1]", city="Kobe"))
    taiwa.ok(
        "say", "--in", "guides", "--state", FIELDS, "--tool", "calculator", "--temperature", "0.5",
        "What does the Inn of the Cat in Osaka cost?",
    )  # fmt: skip

    saved = taiwa.ok("apps", "save", "travel")
    monkeypatch.chdir("/")

    path = place.config.parent / "apps" / "travel.md"
    assert saved.out == f"{path}\n"
    assert taiwa.ok("apps", "check", "travel").out == f"{path}: no errors\n"
    said = taiwa.ok("say", "travel", "What does the Inn of the Cat in Osaka cost?", "--json").json
    assert said["delta"] == {"city": "Kobe"}
    before, after = model_server.requests
    assert before["messages"] == after["messages"]
    assert before["temperature"] == after["temperature"] == 0.5
    again = taiwa("apps", "save", "travel")
    assert (again.code, "already exists" in again.err) == (2, True)


def test_a_saved_app_keeps_parameters_instructions_and_type(
    taiwa: Taiwa, model_server: ModelServer, place: Place
) -> None:
    model_server("猫です。", '{"days": 2}', "Cats.", '{"days": 3}')
    taiwa.ok("say", "translate", "-p", "target_lang=Japanese", "-s", "t", "It is a cat.")
    taiwa.ok("say", "--system", 'Answer "briefly".\nPlease.', "--type", "days int", "-s", "d", "How long?")

    taiwa.ok("apps", "save", "to-japanese", "t")
    taiwa.ok("apps", "save", "days", "d")
    taiwa.ok("say", "to-japanese", "It is a cat.")
    taiwa.ok("say", "days", "How long?")

    text = (place.config.parent / "apps" / "days.md").read_text()
    assert text.endswith('---\nAnswer "briefly".\nPlease.\n')
    translated, typed, translated_again, typed_again = model_server.requests
    assert translated["messages"][0] == translated_again["messages"][0]
    assert typed["messages"][0] == typed_again["messages"][0]


def test_a_saved_app_names_the_file_of_a_tool(taiwa: Taiwa, model_server: ModelServer, tmp_path: Path) -> None:
    (tmp_path / "made_app_prices.py").write_text(
        'import taiwa\n\n\n@taiwa.tool\ndef price(tea: str) -> int:\n    """Price of a tea."""\n    return 3\n'
    )
    model_server("Three.", "Three.")
    taiwa.ok("say", "--tool", f"{tmp_path / 'made_app_prices.py'}:price", "How much?")

    saved = taiwa.ok("apps", "save", "shop")

    assert saved.err == 'use it: taiwa apps confirm shop && taiwa say shop "TEXT"\n'
    refused = taiwa("say", "shop", "How much?")
    assert (refused.code, "taiwa apps confirm" in refused.err) == (2, True)
    taiwa.ok("apps", "confirm", "shop", "--yes")
    taiwa.ok("say", "shop", "How much?")
    assert len(model_server.requests) == 2
    assert all("Price of a tea." in str(request) for request in model_server.requests)


def test_a_saved_app_has_the_type_of_a_file(
    taiwa: Taiwa, model_server: ModelServer, place: Place, tmp_path: Path
) -> None:
    (tmp_path / "made_app_order.py").write_text(
        "from typing import Annotated\n\nfrom annotated_types import Le\nfrom pydantic import AfterValidator, BaseModel\n\n\n"
        "def even(cups: int) -> int:\n    assert cups % 2 == 0, 'an even number'\n    return cups\n\n\n"
        "class Order(BaseModel):\n    cups: Annotated[int, AfterValidator(even)]\n"
    )
    (tmp_path / "order.ts").write_text("interface Order { cups: number }")
    model_server(*['{"cups": 2}'] * 4, '{"cups": 3}', '{"cups": 3}')
    for file, name in (("order.ts", "data"), ("made_app_order.py", "code")):
        taiwa.ok("say", "--type", f"{tmp_path / file}:Order", "Two.")
        taiwa.ok("apps", "save", name)
        taiwa.ok("apps", "confirm", name, "--yes")
        taiwa.ok("say", name, "Two.")

    refused = taiwa("say", "code", "Three.")

    assert (refused.code, "an even number" in refused.err) == (1, True)
    first, saved, first_of_code, saved_of_code = model_server.requests[:4]
    assert first["messages"] == saved["messages"]
    assert first_of_code["messages"] == saved_of_code["messages"]
    assert taiwa.ok("apps", "list").out.count("Talk with the model as it is") == 1


def test_a_saved_app_has_the_sampling_that_a_file_can_hold(tmp_path: Path) -> None:
    options = AnswerOptions(sampling=Sampling(0.0, seed=7, effort="low", extra={"top_k": 5}))

    saved = save_app(
        load_app("translate").with_params({"target_lang": "English"}).with_options(options), tmp_path / "a.md"
    )

    assert check(saved) == ()
    assert load(saved).sampling == Sampling(0.0, seed=7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--state", "city str", "plain", "Hi"], "the app 'plain' has its own documents and state; leave them out"),
        (["--in", "nowhere", "Hi"], "nowhere"),
        (["--state", "city strr", "Hi"], "strr"),
        (["--state", "1city", "Hi"], "invalid field '1city'"),
        (["--state", "city str", "-c", "Hi"], "the conversation has its own documents and state"),
    ],
)
def test_what_cannot_be_set_up_is_one_line(
    taiwa: Taiwa, model_server: ModelServer, arguments: list[str], message: str
) -> None:
    model_server("Hello.", "Hello.")
    taiwa.ok("say", "Hi")

    said = taiwa("say", *arguments)

    assert (said.code, said.err.count("\n")) == (2, 1)
    assert message in said.err
    assert len(model_server.requests) == 1


def test_an_app_is_saved_under_a_name_or_at_a_path_that_ends_with_md(
    taiwa: Taiwa, place: Place, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = place.folder / "a" / "b"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    model_server("Hi.")
    taiwa.ok("say", "Hi")

    for verb in ("save", "new"):
        for name in ("../../x", "sub/x", "/tmp/x", "..", ".x", "~/x", "", "x/"):
            refused = taiwa("apps", verb, name)
            assert (refused.code, refused.err.count("\n")) == (2, 1)
            assert "is not a valid app name" in refused.err
    taiwa.ok("apps", "save", "../../x.md")
    taiwa.ok("apps", "save", "x")

    assert {str(path.relative_to(place.folder)) for path in place.folder.rglob("x*")} == {
        "x.md",
        "config/taiwa/apps/x.md",
    }


def test_the_source_of_a_value_of_an_imported_turn_is_unknown_unless_the_import_holds_it(
    taiwa: Taiwa, model_server: ModelServer, guides: Path, place: Place
) -> None:
    (guides / "osaka.md").write_text(
        "# Osaka\n\nThe Inn of the Cat in Osaka costs 80 pounds a night. It has 12 rooms.\n"
    )
    model_server(delta("The Inn of the Cat in Osaka costs 80 pounds a night. [1]", city="Osaka", cost=80, rooms=12))
    taiwa.ok("say", "--in", str(guides), "--state", "city str, cost int, rooms int", "What is there in Osaka?")
    elsewhere = ("--store", str(place.folder / "new.db"), "--json")
    taiwa.ok("export", "custom-1", "-o", str(place.folder / "gift.jsonl"))
    taiwa.ok("import", str(place.folder / "gift.jsonl"), "gift", *elsewhere)

    here = [taiwa.ok("why", name, "custom-1", "--json").json["sources"][0] for name in ("city", "cost", "rooms")]
    there = [taiwa.ok("why", name, "gift", *elsewhere).json["sources"][0] for name in ("city", "cost", "rooms")]

    assert [each["kind"] for each in here] == ["user", "passage", "passage"]
    assert [each["kind"] for each in there] == ["user", "passage", "unknown"]
    shown = taiwa.ok("why", "rooms", "gift", *elsewhere[:2]).out
    assert "not known; what the turn read is not in this store: “12”" in shown
