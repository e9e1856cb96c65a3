"""What a person finds who types `taiwa.` in an editor or at a prompt, and what a wrong argument says."""

import inspect
import pkgutil
import pydoc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import taiwa
from taiwa import Client, InputError, user


@pytest.mark.parametrize("name", taiwa.__all__)
def test_a_public_name_is_listed_and_shows_its_parameters(name: str) -> None:
    assert name in dir(taiwa)
    found = getattr(taiwa, name)
    if callable(found) and name != "Program":
        assert inspect.getdoc(found)
        parameters = inspect.signature(found).parameters.values()
        assert not [each for each in parameters if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)] or name in (
            "Api", "Choice", "gather", "scripted_model", "route", *(each for each in taiwa.__all__ if each.endswith("Error")),
        )  # fmt: skip


def test_every_public_name_of_a_release_is_still_there() -> None:
    """A name may be added to the list with a release; one that leaves it breaks the promise of docs/stability.md."""
    released = set(Path(__file__).with_name("public_names.txt").read_text("utf-8").split())

    assert released <= {*taiwa.__all__, *(f"programs.{name}" for name in taiwa.programs.__all__)}


def test_no_public_name_is_hidden_by_a_module() -> None:
    """Importing `taiwa.NAME` would bind the module over the function of that name."""
    modules = {module.name for module in pkgutil.iter_modules(taiwa.__path__)}

    assert modules & set(taiwa.__all__) == {"programs"}


def test_help_shows_every_public_name() -> None:
    shown = pydoc.plain(pydoc.render_doc(taiwa))
    assert [name for name in taiwa.__all__ if name not in shown] == []
    assert "generate(text: 'Prompt', constraint: 'object' = None" in shown or "generate(text: str |" in shown


@pytest.fixture
def client() -> Client:
    return Client(taiwa.scripted_model(), store=":memory:")


class Plain:
    """A class without fields."""


def program() -> taiwa.Program[None]:
    yield from ()


Call = Callable[[Any], object]
WRONG: list[tuple[Call, str]] = [
    (lambda c: c.run(program), r"expected a program .*, got the function program; call it: program\(…\)"),
    (lambda c: c.stream_run(program), "got the function program"),
    (lambda c: taiwa.replay(program, taiwa.Journal()), "got the function program"),
    (lambda c: taiwa.Runtime(c.model).run(program), "got the function program"),
    (lambda c: taiwa.Prices("two", "8"), "input must be a number, zero or more, got 'two'"),
    (lambda c: taiwa.Prices("2", ""), "output must be a number, zero or more, got ''"),
    (lambda c: taiwa.Prices("2", "8", cache_read="-1"), "cache_read must be a number, zero or more, got '-1'"),
    (lambda c: c.extract(Iterable[int], "text"), r"cannot be an output type: use list\[…\], not an Iterable"),
    (lambda c: c.extract("Two teas", Plain), "got the class Plain; the type comes first"),
    (lambda c: c.extract("Plain", "text"), "a str cannot be an output type: use a dataclass"),
    (lambda c: c.extract(Plain, "text"), "the class Plain cannot be an output type"),
    (lambda c: c.extract(int, "text", repair=3), "repair must be taiwa.RepairPolicy"),
    (lambda c: c.generate("x", "[a-z]"), r"a constraint must be Regex\(…\).* or a type, got a str"),
    (lambda c: c.generate("x", ["a", "b"]), "or a type, got a list"),
    (lambda c: c.generate("x", taiwa.Regex(3)), "Regex must be made of a text, got an int"),
    (lambda c: c.generate("x", taiwa.Choice(c)), r"texts must be a list of texts, got a Client; write texts=\[…\]"),
    (lambda c: c.generate("x", stop="END"), "stop must be a list of texts"),
    (lambda c: c.generate("x", system=3), "system must be a text, got an int"),
    (lambda c: c.generate("x", temperature="hot"), "temperature must be a number"),
    (lambda c: c.generate("x", max_tokens=True), "max_tokens must be a whole number, got a bool"),
    (lambda c: c.generate("x", max_tokens=0), "max_tokens must be at least 1, got 0"),
    (lambda c: c.session(temperature=2.5), r"temperature must be from 0 to 2, got 2\.5"),
    (lambda c: c.extract("name str", "x", temperature=float("nan")), "temperature must be from 0 to 2, got nan"),
    (
        lambda c: c.generate([{"role": "usr", "content": "x"}]),
        "message 1: unknown role 'usr'; choose one of system, devel",
    ),
    (
        lambda c: c.generate([user("x"), {"role": "tool", "content": "x"}]),
        "message 2: unknown role 'tool'; choose one of",
    ),
    (lambda c: c.generate([{"content": "x"}]), "message 1: unknown role None; choose one of"),
    (lambda c: c.generate([{"role": ["user"], "content": "x"}]), "message 1: unknown role .'user'.; choose one of"),
    (
        lambda c: c.generate([{"role": "user", "content": [{"type": "image_url"}]}]),
        "message 1: content of type 'image_url' cannot be read; only text and calls of tools can",
    ),
    (lambda c: c.extract(int, [{"role": "user"}]), "message 1: content must be a str, got None$"),
    (
        lambda c: c.generate([{"role": "user", "content": "x", "name": "ann"}]),
        "message 1: unknown key 'name'; choose one of role, content",
    ),
    (
        lambda c: c.generate(["x"]),
        r"got a list whose message 1 is a str; write taiwa.user\(…\), or {'role': …, 'content': …}",
    ),
    (lambda c: c.generate({"role": "user", "content": "x"}), "got a dict; put it into a list"),
    (lambda c: c.generate([]), "the text must be a str, or a list of messages, got a list$"),
    (lambda c: c.solve(3), "question must be a text"),
    (lambda c: c.solve("x", options={"votes": 3}), "options must be taiwa.SolveOptions"),
    (lambda c: c.find(3), "query must be a text"),
    (lambda c: c.find("x", documents="handbook"), r"documents must be a list .*, got a str; write documents=\[…\]"),
    (lambda c: c.ask("x", documents="handbook"), "documents must be a list"),
    (lambda c: c.ask("x", audience="user:ann"), "audience must be a list"),
    (lambda c: c.session(5), "app must be the name or the path of an app, or an App, got an int"),
    (lambda c: c.session(taiwa.App), "got the class App"),
    (lambda c: c.session("chat", 5), "name must be a text"),
    (lambda c: c.session("chat", params=["a"]), "params must be a dict, got a list"),
    (lambda c: c.session("chat", options={"strict": True}), "options must be taiwa.TurnOptions"),
    (lambda c: c.session().say(3), "the text must be a str, got an int"),
    (lambda c: c.session().edit("x", turn="2"), "turn must be the number of a turn, got a str"),
    (lambda c: c.session().undo("2"), "turns must be a whole number"),
    (lambda c: c.session().fork(3), "name must be a name"),
    (lambda c: c.session().why(3), "path must be a path such as items.1"),
    (lambda c: c.session().diff(3), "other must be a session or a revision"),
    (lambda c: Client(c.model, store=Client), "store must be a path, a URL or a Store, got the class Client"),
    (lambda c: Client(c.model, prices={"input": 1}), r"prices must be taiwa.Prices\(…\), got a dict"),
    (lambda c: Client(c.model, handlers=[1]), "handlers must be a dict"),
    (lambda c: Client(c.model, observers=len), "observers must be a list of functions, got the function len"),
    (lambda c: taiwa.load_app(3), "the app must be a name or a path"),
    (
        lambda c: taiwa.scripted_model(3),
        "each of answers must be texts, tool calls, responses, errors or functions, got an int",
    ),
    (lambda c: taiwa.function_model("x"), "answer must be a function of the request, got a str"),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_a_wrong_argument_fails_at_once_with_a_sentence(client: Client, call: Call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(client)
    assert client.spent.requests == 0


def test_an_unknown_keyword_is_named(client: Client) -> None:
    generate: Any = client.generate
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_token'"):
        generate("x", max_token=3)
