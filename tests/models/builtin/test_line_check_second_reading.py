"""What a check changes in a solution: the answer goes on behind the changed line, ends where it must, and counts its tokens."""

import pytest

from taiwa.kernel.messages import Request, Response, Sampling, collect_response, system, user
from taiwa.models.builtin import model as built_in
from taiwa.models.builtin.copy_constraint import CopyGuide
from taiwa.models.builtin.line_check import readings
from taiwa.models.builtin.model import BuiltinModel, load

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
    monkeypatch.setattr(built_in, "check_step", lambda question, before, step: "<<molar_mass: HO>>")
    monkeypatch.setattr(built_in, "is_step_doubtful", lambda *_: False)


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
    monkeypatch.setattr(built_in, "is_step_doubtful", lambda question, before, step: step.startswith(first))
    second = asked(stop=(">>",)).text
    monkeypatch.setattr(built_in, "is_step_doubtful", lambda *_: True)

    assert not second.startswith(first)
    assert asked(stop=(">>",)).text == first  # where no reading can be right, the first one stands


def test_readings_differ_begin_with_the_likeliest_and_end_where_a_step_does() -> None:
    loaded = load()
    prepared = loaded.prepare(Request((TOOLS, user(QUESTION)), task="solve"))
    guide = CopyGuide.for_question(QUESTION, ("calculator", "molar_mass"), loaded.network.vocabulary)

    found = list(readings(loaded.network, loaded.tokens, prepared.tokens, guide.start(), ""))

    assert 1 < len(found) == len({*found})
    assert asked(stop=(">>",)).text + ">>" == found[0]
    assert all(step.count("\n") <= 1 for step in found)


def test_words_and_the_call_behind_them_are_read_again_together() -> None:
    question = "A ring costs 30 pounds; the rate is 158 pounds per one rupee. How many rupees is that?"

    answer = collect_response(BuiltinModel().stream(Request((TOOLS, user(question)), stop=(">>",), task="solve")))

    assert answer.text.endswith("<<calculator: 30/158")
    assert not answer.text.startswith("Times")


def test_confidence_leaves_out_the_readings_that_cannot_be_right(monkeypatch: pytest.MonkeyPatch) -> None:
    question = "What is 12 split in 3?"
    request = Request((TOOLS, user(question)), task="solve", prefix="Divide.\n<<calculator: 12/3>> 4\n")
    plain = collect_response(BuiltinModel().stream(request)).confidence

    monkeypatch.setattr(built_in, "UNSURE", (0.0, 1.0))
    monkeypatch.setattr(built_in, "is_step_doubtful", lambda question, before, step: "12/3" not in step + before)
    left = collect_response(BuiltinModel().stream(request)).confidence

    assert plain is not None
    assert left is not None
    assert left > plain
