from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.solve.solve import Vote, vote
from taiwa.kernel.effects import Complete, Program, perform
from taiwa.kernel.errors import InputError, OutputValidationError, OverloadedError
from taiwa.kernel.messages import Request, Sampling, user
from taiwa.kernel.runtime import Runtime
from taiwa.models.scripted import ScriptedModel, scripted_model
from tests.flows.driving import Drive


def answers(*words: str) -> ScriptedModel:
    """A model that answers by seed, because the programs run in parallel in any order."""
    return scripted_model(*[lambda request: words[request.sampling.seed or 0]] * len(words))


def program(seed: int) -> Program[str]:
    request = Request((user("Which one?"),), sampling=Sampling(1.0, seed=seed))
    text = (yield from perform(Complete(request))).text
    if text == "?":
        raise OutputValidationError("no answer", text=text)
    return text


def test_the_most_frequent_answer_wins(drive: Drive) -> None:
    done = drive(lambda: vote(program, 3), answers("a", "b", "b"))

    assert done.value == Vote("b", 2, ("a", "b", "b"))


def test_of_equal_counts_the_first_seen_wins(drive: Drive) -> None:
    done = drive(lambda: vote(program, 4), answers("c", "a", "a", "c"))

    assert (done.value.winner, done.value.count) == ("c", 2)


def test_answers_may_agree_in_one_part_only(drive: Drive) -> None:
    done = drive(lambda: vote(program, 3, by=lambda text: text[-1]), answers("x 1", "so 2", "thus 2"))

    assert (done.value.winner, done.value.count) == ("so 2", 2)


def test_an_invalid_answer_counts_as_failed(drive: Drive) -> None:
    done = drive(lambda: vote(program, 3), answers("?", "a", "?"))

    assert done.value == Vote("a", 1, ("a",), failed=2)


def test_the_first_error_is_raised_when_every_answer_is_invalid(drive: Drive) -> None:
    with pytest.raises(OutputValidationError, match="no answer"):
        drive(lambda: vote(program, 2), answers("?", "?"))


def test_any_other_failure_ends_the_vote() -> None:
    model = scripted_model("a", OverloadedError("busy"), "a")

    with pytest.raises(OverloadedError):
        Runtime(model).run(vote(program, 3))


def test_a_vote_without_programs_is_rejected(drive: Drive) -> None:
    with pytest.raises(InputError, match="n must be at least 1"):
        drive(lambda: vote(program, 0))


@given(st.lists(st.lists(st.integers(0, 3), max_size=1), min_size=1, max_size=12))
def test_no_other_answer_has_more_votes_nor_as_many_and_came_before(cast: list[list[int]]) -> None:
    def given_one(index: int) -> Program[list[int]]:
        return cast[index]
        yield

    result = Runtime().run(vote(given_one, len(cast)))

    def firsts() -> Iterator[list[int]]:
        for index, each in enumerate(cast):
            if cast.index(each) == index:
                yield each

    best = max(firsts(), key=cast.count)
    assert (result.winner, result.count) == (best, cast.count(best))
