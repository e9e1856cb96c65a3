"""Work in a process of its own: it is asked in JSON, and ended at its bounds with all that it holds."""

from collections.abc import Iterator

import pytest

from taiwa.apart import Bounds, Worker
from taiwa.kernel import ToolError

DOOR = "tests.apart.doors:echo"
BOUNDS = Bounds(seconds=5.0, memory_mb=512, characters=1_000)


@pytest.fixture
def worker() -> Iterator[Worker]:
    one = Worker(DOOR, {"name": "値"}, "echo", BOUNDS)
    yield one
    one.end()


def test_it_is_started_once_and_asked_many_times(worker: Worker) -> None:
    first, second = (worker.ask({"n": n}, BOUNDS) for n in (1, 2))

    assert first == {"start": {"name": "値"}, "question": {"n": 1}, "characters": 1_000}
    assert second["question"] == {"n": 2}


@pytest.mark.parametrize(("question", "code"), [({"sleep": 60}, "timeout"), ({"leave": True}, "crashed")])
def test_what_does_not_answer_is_told_apart(worker: Worker, question: dict[str, int], code: str) -> None:
    with pytest.raises(ToolError) as caught:
        worker.ask(question, Bounds(seconds=0.3))

    assert caught.value.code == code
    worker.end()
    assert not worker.alive


def test_a_door_that_is_not_there_fails_with_its_reason() -> None:
    one = Worker("tests.apart.doors:nothing", {}, "nothing", BOUNDS)

    with pytest.raises(ToolError) as caught:
        one.ask({}, BOUNDS)
    one.end()

    assert caught.value.code == "crashed"
    assert "nothing" in caught.value.__notes__[0]
