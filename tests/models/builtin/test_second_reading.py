"""What a check changes in a solution: the answer goes on behind the changed line, ends where it must, and counts its tokens."""

import pytest

from taiwa.kernel.messages import Request, Response, Sampling, collect_response, system, user
from taiwa.models.builtin import model as built_in
from taiwa.models.builtin.copy_constraint import CopyGuide
from taiwa.models.builtin.model import BuiltinModel, load
from taiwa.models.builtin.second_reading import other_lines

TOOLS = system(
    "Solve it. Write calls as <<name: input>>.\n\nTools:\n- <<calculator: expression>>\n- <<molar_mass: formula>>"
)
QUESTION = "What mass of CH3CHCH2 reacts with 3 mol of C6H6?"
"""One about which the network is not sure."""


def asked(stop: tuple[str, ...] = (), most: int | None = None) -> Response:
    sampling = Sampling(temperature=0.0, max_tokens=most)
    return collect_response(
        BuiltinModel().stream(Request((TOOLS, user(QUESTION)), stop=stop, sampling=sampling, task="solve"))
    )


@pytest.fixture
def doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one call can be right."""
    monkeypatch.setattr(built_in, "check_line", lambda question, before, line: "<<molar_mass: HO>>")
    monkeypatch.setattr(built_in, "is_doubtful", lambda *_: False)


@pytest.mark.usefixtures("doubted")
def test_a_changed_call_ends_at_the_stop_string_of_the_request() -> None:
    answer = asked(stop=(">>",))

    assert (answer.text, answer.finish, answer.stop) == ("<<molar_mass: HO", "stop", ">>")
    assert answer.usage is not None
    assert answer.usage.output_tokens == len(load().encode("<<molar_mass: HO>>"))


@pytest.mark.usefixtures("doubted")
def test_a_changed_line_counts_to_the_limit_of_tokens() -> None:
    whole, short = asked(most=12), asked(most=2)

    assert whole.text.startswith("<<molar_mass: HO>>")
    assert whole.usage is not None
    assert whole.usage.output_tokens <= 12
    assert not short.text.startswith("<<molar_mass: HO>>")  # there is no room for it


def test_a_line_that_the_guide_does_not_let_through_is_not_changed() -> None:
    answer = collect_response(BuiltinModel().stream(Request((TOOLS, user("2*+3")), task="solve")))

    assert answer.text.startswith("<<calculator: ")
    assert "2*+3" not in answer.text


def test_a_line_that_cannot_be_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = asked(stop=(">>",)).text
    monkeypatch.setattr(built_in, "is_doubtful", lambda question, before, line: line.startswith(first))
    second = asked(stop=(">>",)).text
    monkeypatch.setattr(built_in, "is_doubtful", lambda *_: True)

    assert not second.startswith(first)
    assert asked(stop=(">>",)).text == first  # where no reading can be right, the first one stands


def test_other_readings_are_others_and_end_where_a_line_does() -> None:
    loaded = load()
    prepared = loaded.prepare(Request((TOOLS, user(QUESTION)), task="solve"))
    guide = CopyGuide.for_question(QUESTION, ("stoichiometry", "molar_mass"), loaded.network.vocabulary)

    found = list(other_lines(loaded.network, loaded.tokens, prepared.tokens, guide.start(), ""))

    assert 1 < len(found) == len({*found})
    assert asked(stop=(">>",)).text + ">>" not in found
    assert all("\n" not in line for line in found)
