"""`taiwa doctor`: what is here, what is missing, and the command for it."""

import pytest

from taiwa import extras
from taiwa.cli import doctor
from tests.cli.conftest import Place, Taiwa


def checks(result: object) -> dict[str, dict[str, object]]:
    return {each["name"]: each for each in result.json["checks"]}  # type: ignore[attr-defined]


def test_without_a_model_it_names_the_command_that_fetches_one(taiwa: Taiwa) -> None:
    result = taiwa.ok("doctor", "--json")

    assert checks(result)["model"]["command"] == "taiwa models pull qwen2.5-coder-1.5b --use"
    assert set(result.json["extras"]) == set(extras.EXTRAS)


def test_an_extra_that_is_missing_comes_with_the_command_for_this_copy(
    taiwa: Taiwa, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "is_installed", lambda name: name != "serve")

    result = taiwa.ok("doctor")

    (line,) = (line for line in result.lines if line.startswith("serve "))
    assert "not installed" in line
    assert extras.install_command("NAME") in result.err
    assert taiwa.ok("doctor", "--json").json["extras"]["serve"]["command"] == extras.install_command("serve")


def test_a_model_without_its_key_is_a_fault_with_the_command(taiwa: Taiwa, place: Place) -> None:
    place.set(model="openai:gpt-5-mini")

    result = taiwa("doctor")

    assert result.code == 1
    assert "taiwa keys set openai" in result.out


def test_a_model_that_was_not_fetched_is_a_fault_with_the_command(taiwa: Taiwa, place: Place) -> None:
    place.set(model="smollm2-135m")

    result = taiwa("doctor", "--json")

    assert result.code == 1
    assert checks(result)["model"]["command"] == "taiwa models pull smollm2-135m"


def test_a_broken_config_file_is_named_and_the_rest_is_still_shown(taiwa: Taiwa, place: Place) -> None:
    place.set(timeout="soon")

    result = taiwa("doctor")

    assert result.code == 1
    assert "config.yaml" in result.out
    assert "serve" in result.out


def test_a_file_that_is_not_a_store_is_a_fault(taiwa: Taiwa, place: Place) -> None:
    note = place.folder / "note.txt"
    note.write_text("a note")

    result = taiwa("doctor", "--store", str(note))

    assert result.code == 1
    assert f"{note} is not a store" in result.out


@pytest.mark.parametrize(("system", "works"), [("win32", False), ("darwin", True)])
def test_what_another_system_lacks_is_listed(monkeypatch: pytest.MonkeyPatch, system: str, works: bool) -> None:
    monkeypatch.setattr("sys.platform", system)

    found = doctor._system()

    assert found.works is works
    assert ":" in found.found
