"""Reducers of a user's own file: confirmed once, known by the hash of the file, and never run otherwise."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from taiwa.apps.catalog import check, load, load_source, own_code
from taiwa.conversation.app import App
from taiwa.conversation.code_files import confirm_file
from taiwa.conversation.history import add_turn, begin
from taiwa.flows.turn import say
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.runtime import Runtime
from taiwa.models.scripted import scripted_model

CODE = '''\
from pathlib import Path
from taiwa.conversation.reducers import Reducer

(Path(__file__).parent.parent / "ran").touch()

def highest(before, delta, count):
    """Keep the highest numbers."""
    return sorted([*(before or []), *delta])[-count:]

def broken(before, delta):
    return 1 / 0

def odd(before, delta):
    return {1, 2}

joined = Reducer("joined", lambda before, delta, turn: f"{before or ''}{delta}{turn}")
'''


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    monkeypatch.setenv("TAIWA_CONFIG", str(tmp_path / "config" / "config.yaml"))

    def made(reduce: str = "tops.py:highest(3)", kind: str = "list[int]", code: str = CODE) -> Path:
        (tmp_path / "tops.py").write_text(code, encoding="utf-8")
        path = tmp_path / "scores.md"
        path.write_text(
            f'---\ntaiwa: 1\nstate:\n  f: {{ type: "{kind}", reduce: "{reduce}" }}\n---\nreduce: tops.py:x\n'
        )
        return path

    return made


def confirmed(path: Path) -> App:
    for file in own_code(path):
        confirm_file(file)
    return load(path)


def test_code_runs_only_after_it_was_confirmed_and_as_it_was(write: Callable[..., Path], tmp_path: Path) -> None:
    path, ran = write(), tmp_path / "config" / "ran"
    with pytest.raises(ConfigError, match=r"was not confirmed here; run `taiwa apps confirm`"):
        load(path)
    assert not ran.exists()

    app = confirmed(path)

    state = begin(app)
    for numbers in ([5, 1], [9, 7], [2]):
        state = add_turn(state, "a", "b", {"f": numbers})
    assert state.state == {"f": [5, 7, 9]}
    assert ran.exists()
    assert app.body == "reduce: tops.py:x"
    assert [file.confirmed for file in own_code(path)] == [True]

    path = write(code=CODE.replace("[-count:]", "[:count]"))
    with pytest.raises(ConfigError, match="was not confirmed here"):
        load(path)
    assert [problem.level for problem in check(path)] == ["error"]
    # The stored app still means the code that it was made with.
    assert add_turn(begin(load_source(app.source)), "a", "b", {"f": [1, 2, 3, 4]}).state == {"f": [2, 3, 4]}


def test_a_file_that_was_not_confirmed_is_one_problem_and_what_is_no_tool_another(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    path = write(code=CODE + "# of no app before\n")
    path.write_text("---\ntaiwa: 1\ntools: [tops.py:highest, tops.py:lowest]\nflow: tops.py:highest\n---\nSell.\n")
    assert [problem.line for problem in check(path)] == [3]

    for file in own_code(path):
        confirm_file(file)

    first, second = (problem.format("a.md") for problem in check(path))
    assert first == "a.md:3: tops.py:highest is not a tool; write @taiwa.tool above the function"
    assert second == "a.md:3: tops.py does not define 'lowest'"


def test_a_tool_of_a_file_has_no_name_that_is_listed_before(write: Callable[..., Path]) -> None:
    path = write(code="import taiwa\n\n@taiwa.tool\ndef calculator(x: str) -> str:\n    'Work out.'\n    return x\n")
    path.write_text("---\ntaiwa: 1\ntools: [calculator, tops.py:calculator]\n---\nSell.\n")

    with pytest.raises(ConfigError, match=r"scores\.md:3: the tool calculator is listed twice"):
        confirmed(path)


def test_answers_have_a_type_of_a_file_whose_annotations_are_read_late(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    code = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    path = write(code=f"{code}@dataclass\nclass Item:\n    n: int | None = None\n")
    path.write_text("---\ntaiwa: 1\nanswer: tops.py:Item\n---\nSell.\n")
    assert [problem.hint for problem in check(path)] == [""]

    app = confirmed(path)

    assert app.output_type is not None
    assert app.output_type.parse('{"n": 3}').value.n == 3
    assert load_source(app.source).answer_code == app.answer_code != ""


def test_a_copy_that_was_changed_does_not_run(write: Callable[..., Path], tmp_path: Path) -> None:
    path = write(code=CODE + "# another\n")
    (file,) = own_code(path)
    confirm_file(file)
    (tmp_path / "config" / "code" / f"{file.hash}.py").write_text("raise SystemExit\n")

    with pytest.raises(ConfigError, match="was not confirmed here"):
        load(path)


def test_a_copy_that_other_users_can_replace_does_not_run(write: Callable[..., Path], tmp_path: Path) -> None:
    path = write(code=CODE + "# of a shared folder\n")
    (file,) = own_code(path)
    confirm_file(file)
    (tmp_path / "config" / "code").chmod(0o777)

    for attempt in (lambda: load(path), lambda: confirm_file(file)):
        with pytest.raises(ConfigError, match="other users can change"):
            attempt()


def test_a_reducer_object_is_taken_as_it_is(write: Callable[..., Path]) -> None:
    app = confirmed(write("tops.py:joined", "str"))

    assert add_turn(add_turn(begin(app), "a", "b", {"f": "x"}), "a", "b", {"f": "y"}).state == {"f": "x1y2"}


@pytest.mark.parametrize("name", ["broken", "odd"])
def test_a_function_that_fails_leaves_the_state_and_the_turn_goes_on(write: Callable[..., Path], name: str) -> None:
    app = confirmed(write(f"tops.py:{name}", "list[int]"))
    with pytest.raises(InputError, match=f"{name} failed"):
        add_turn(begin(app), "a", "b", {"f": [1]})

    reply, after = Runtime(scripted_model('Hi.\n@@delta\n{"f": [1]}')).run(say("Hello")(begin(app)))

    assert (reply.text, after.state) == ("Hi.", {"f": None})
    assert "failed" in reply.warnings[0]


@pytest.mark.parametrize(
    ("reduce", "message"),
    [
        ("none.py:highest(3)", "the file none.py was not found"),
        ("tops.py:nothing", "does not define 'nothing'"),
        ("tops.py:Path", "tops.py defines no function or Reducer 'Path'"),
    ],
)
def test_what_is_not_there_is_an_error_with_its_line(write: Callable[..., Path], reduce: str, message: str) -> None:
    path = write(reduce)
    with suppress(ConfigError):
        confirmed(path)

    (problem,) = check(path)

    assert (problem.line, problem.level) == (4, "error")
    assert message in problem.message
