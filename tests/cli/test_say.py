"""`taiwa say`: one turn, and what a script reads of it."""

from tests.cli.conftest import Speaker, Taiwa, delta


def test_the_answer_is_printed_and_its_state_is_not(taiwa: Taiwa, speaker: Speaker) -> None:
    speaker(delta("Hello!", topics=["greeting"]))

    said = taiwa.ok("say", "Hi")

    assert said.out == "Hello!\n"
    assert said.err == ""
