"""Answers under a constraint, from a model in this process, through the runtime."""

from pathlib import Path

import pytest

from taiwa.kernel.messages import Notice, Sampling, TextDelta
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.operations.generate import GenerateOptions, WrittenConstraint, generate
from taiwa.settings import Settings
from tests.peers.tiny import build


@pytest.fixture(scope="module")
def name(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"local:{build(tmp_path_factory.mktemp('tiny'), context=4096)}?threads=1"


def settings(name: str, limits: UsageLimits | None = None) -> Settings:
    return Settings(Path("none.db"), Path("none.yaml"), model=name, limits=limits or UsageLimits())


def ignore(_: TextDelta | Notice) -> None:
    pass


def options(count: int = 1, seed: int | None = 5) -> GenerateOptions:
    return GenerateOptions(
        "hello",
        WrittenConstraint("regex", "[a-z]{40}"),
        count=count,
        sampling=Sampling(temperature=1.0, seed=seed, max_tokens=60),
    )


def test_a_limit_on_output_tokens_holds_in_this_process(name: str) -> None:
    (answer,) = generate(settings(name, UsageLimits(output_tokens=4)), options(), ignore)

    assert answer.response.usage is not None
    assert answer.response.usage.output_tokens <= 4
    assert (answer.response.finish, answer.fits) == ("length", False)


def test_more_answers_than_a_run_usually_makes_requests_are_written_in_common_passes(name: str) -> None:
    several = generate(settings(name), options(count=60), ignore)
    (first,) = generate(settings(name), options(), ignore)

    assert len({answer.response.text for answer in several}) == 60
    assert several[0].response.text == first.response.text
    assert all(answer.fits for answer in several)


def test_answers_without_a_seed_differ(name: str) -> None:
    several = generate(settings(name), options(count=3, seed=None), ignore)

    assert len({answer.response.text for answer in several}) == 3


def test_text_is_passed_on_while_it_is_written(name: str) -> None:
    events: list[TextDelta | Notice] = []

    (answer,) = generate(settings(name), options(), events.append)

    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(texts) > 1
    assert "".join(texts) == answer.response.text
