"""The package of docs/library.md#plug-ins, installed as a person would, and used by the names of its plug-ins."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import taiwa
from taiwa import plugins, settings
from taiwa.conversation.reducers import KNOWN, reducer
from taiwa.kernel.errors import ConfigError, InputError, ModelError
from taiwa.kernel.messages import Chunk, Request, user
from taiwa.models import providers
from taiwa.models.providers import open_model, resolve
from taiwa.retrieval import readers
from tests.cli.conftest import Place, Taiwa

PAGE = (Path(__file__).parents[1] / "docs" / "library.md").read_text(encoding="utf-8").partition("\n## Plug-ins\n")[2]
BLOCK = re.compile(
    r"(?:^`(?P<file>taiwa_tea/[\w.]+)`[^`]*(?:`[^`\n]+`[^`]*)*?\n)?```(?P<kind>python|toml|markdown)\n(?P<text>.*?)```",
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, real_environment: dict[str, str]) -> Path:
    """The folder in which pip has installed the package of the page."""
    project, target = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("target")
    (project / "taiwa_tea").mkdir()
    (project / "taiwa_tea" / "__init__.py").touch()
    description = ""
    for block in BLOCK.finditer(PAGE):
        if block["kind"] == "toml":
            description += block["text"] + "\n"
        else:
            (project / block["file"]).write_text(block["text"], encoding="utf-8")
    (project / "pyproject.toml").write_text(description, encoding="utf-8")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run([*command, "--target", str(target), str(project)], check=True, env=real_environment)
    return target


@pytest.fixture
def tea(target: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package can be imported, here and in processes started from here."""
    monkeypatch.syspath_prepend(str(target))
    monkeypatch.setenv("PYTHONPATH", str(target), prepend=":")
    monkeypatch.setattr("taiwa.conversation.reducers.KNOWN", dict(KNOWN))
    monkeypatch.setattr("taiwa.models.providers._plugins", dict(providers._plugins))
    yield target
    for cached in (readers._plugin_suffixes, readers.reader_name):
        cached.cache_clear()


@pytest.fixture
def run(tea: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Taiwa:
    """Run a command in a home of its own."""
    place = Place(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TAIWA_STORE", str(place.store))
    monkeypatch.chdir(tmp_path)
    return Taiwa(place)


def test_every_kind_of_the_page_is_listed_and_works(run: Taiwa) -> None:
    rows = [(each["kind"], each["name"], each["state"], each["problem"]) for each in run.ok("plugins", "--json").json]
    assert rows == [
        ("apps", "haiku", "on", None),
        ("models", "shout", "on", None),
        ("readers", "srt", "on", None),
        ("reducers", "longest", "on", None),
        ("retrievers", "menu", "on", None),
        ("tools", "price", "on", None),
    ]
    assert "taiwa-tea 1.0" in run.ok("plugins").out


def test_nothing_is_imported_until_it_is_named(run: Taiwa) -> None:
    for name in [name for name in sys.modules if name.startswith("taiwa_tea")]:
        del sys.modules[name]
    assert plugins.plugin_names("tools") == ("price",)
    run.ok("apps", "list")
    assert not [name for name in sys.modules if name.startswith("taiwa_tea")]


def test_a_tool_of_a_package_is_called_by_its_name(run: Taiwa) -> None:
    assert run.ok("tools", "call", "price", "tea").out.strip() == "3.5"
    assert "price" in run.ok("tools", "list").out
    client = taiwa.Client(taiwa.scripted_model("It costs <<price: tea>>", " So the answer is 3.5."), tools=["price"])
    assert client.solve("What does a tea cost?").answer == "3.5"


def test_a_reducer_of_a_package_is_used_by_an_app(run: Taiwa, tmp_path: Path) -> None:
    assert reducer("longest").step("tea", "oolong", 1) == "oolong"
    text = "---\ntaiwa: 1\nstate:\n  word: {type: str, reduce: longest}\n---\nTalk.\n"
    (tmp_path / "words.md").write_text(text, encoding="utf-8")
    assert run.ok("apps", "check", "words.md").code == 0


def test_an_app_and_a_model_of_a_package_hold_a_conversation(run: Taiwa) -> None:
    assert "Write a haiku" in run.ok("apps", "list").out
    said = run.ok("say", "haiku", "-p", "season=spring", "-m", "shout:loud", "the moon")
    assert said.out.strip() == "THE MOON"
    assert run.ok("say", "-c", "and the sun").out.strip() == "AND THE SUN"


def test_a_file_is_read_by_the_reader_of_its_suffix(run: Taiwa, tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    subtitles = "1\n00:00:01,000 --> 00:00:02,000\nThe last train leaves at ten.\n"
    (tmp_path / "films" / "night.srt").write_text(subtitles, encoding="utf-8")
    run.ok("index", "films")
    found = run.ok("find", "the last train").out
    assert "leaves at ten" in found
    assert "-->" not in found


def test_a_retriever_of_a_package_answers(tea: Path) -> None:
    with taiwa.Client(retriever="menu", store=":memory:") as client:
        assert client.ask("What does a tea cost?").answer_text == "A tea costs 3.50 euros."
    with pytest.raises(ConfigError, match=r"no package offers the retriever 'menue' \(installed: menu\)"):
        taiwa.Client(retriever="menue")


def test_an_app_and_a_command_search_by_the_retriever_of_a_package(run: Taiwa, tmp_path: Path) -> None:
    (tmp_path / "shop.md").write_text("---\ntaiwa: 1\ndocuments: [menu]\n---\nSell.\n")
    asked = ("What does a tea cost?", "-m", "shout:loud")

    for words in (("ask", "--in", "menu"), ("say", "shop.md")):
        assert "A tea costs 3.50 euros." in run.ok(*words, *asked).out
    assert "'menu' is neither an index" in run("ask", "--in", "menu", "--as", "user:ann", *asked).err
    (tmp_path / "menu").mkdir()
    assert "menu" in run("ask", "--in", "menu", *asked).err


def test_a_package_is_switched_off_in_the_settings(run: Taiwa) -> None:
    run.ok("config", "set", "plugins.Taiwa_Tea", "off")
    assert {each["state"] for each in run.ok("plugins", "--json").json} == {"off"}
    assert run("tools", "call", "price", "tea").code == 2
    with pytest.raises(InputError, match="unknown tool 'price'"):
        taiwa.Client(tools=["price"])


OTHER = """\
[taiwa.tools]
price = taiwa_tea.tools:price
calculator = taiwa_tea.tools:price
cheap = taiwa_tea.tools:price
missing = taiwa_teapot:price
number = taiwa_tea.tools:__doc__
[taiwa.reducers]
mean = taiwa_tea.tools:price
[taiwa.apps]
sonnet = taiwa_tea
[taiwa.models]
quiet = taiwa_tea.retrievers:Menu
"""


@pytest.fixture
def other(run: Taiwa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Taiwa:
    """A second package, with a fault in each of its plug-ins."""
    info = tmp_path / "others" / "rival-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text(OTHER)
    monkeypatch.syspath_prepend(str(info.parent))
    return run


def test_what_is_wrong_with_a_package_is_one_line_that_names_it(other: Taiwa) -> None:
    listed = {(each["name"], each["package"]): each for each in other.ok("plugins", "--json").json}
    clash = "rival and taiwa-tea both offer the tool 'price'; switch one off: taiwa config set plugins.taiwa-tea off"
    wanted = {
        ("price", "rival"): ("hidden", clash),
        ("price", "taiwa-tea"): ("hidden", clash),
        ("calculator", "rival"): (
            "hidden",
            "the tool 'calculator' of rival 2.0 is hidden by an existing one",
        ),
        ("cheap", "rival"): ("broken", "the tool 'cheap' of rival 2.0 must be a tool named 'cheap', not 'price'"),
        ("missing", "rival"): (
            "broken",
            "the tool 'missing' of rival 2.0 cannot be loaded: ModuleNotFoundError: No module named 'taiwa_teapot'",
        ),
        ("number", "rival"): (
            "broken",
            "the tool 'number' of rival 2.0 must be a function with @taiwa.tool above it, not taiwa_tea.tools:__doc__ "
            "(NoneType)",
        ),
        ("mean", "rival"): (
            "broken",
            "the reducer 'mean' of rival 2.0 must be a Reducer named 'mean', not taiwa_tea.tools:price (FunctionTool)",
        ),
        ("sonnet", "rival"): (
            "broken",
            "the app 'sonnet' of rival 2.0 has no file sonnet.md beside the module taiwa_tea",
        ),
        ("quiet", "rival"): ("on", None),
        ("haiku", "taiwa-tea"): ("on", None),
    }
    assert {key: (listed[key]["state"], listed[key]["problem"]) for key in wanted} == wanted


def test_the_rest_works_beside_a_broken_plug_in(other: Taiwa) -> None:
    tools = other.ok("tools", "list")
    assert "calculator" in tools.out
    assert "the tool 'missing' of rival 2.0 cannot be loaded" in tools.err
    assert other("tools", "call", "price", "tea").err.startswith("taiwa: rival and taiwa-tea both offer")
    assert "haiku" in other.ok("apps", "list").out
    failed = other("say", "-m", "quiet:x", "hello")
    assert failed.code == 2
    assert "the model 'quiet' of rival 2.0 failed: TypeError" in failed.err
    other.ok("config", "set", "plugins.rival", "off")
    assert other.ok("tools", "call", "price", "tea").out.strip() == "3.5"


FAULTY = """
import sys
from asyncio import CancelledError, sleep
from taiwa.conversation.reducers import Reducer
from taiwa.kernel.messages import StreamEnd, TextDelta

print("imported")

class Odd(BaseException):
    pass

class Model:
    capabilities = frozenset()

    def __init__(self, name):
        self.name = name

    def stream(self, request):
        if self.name == "faulty:exit":
            sys.exit(3)
        if self.name == "faulty:odd":
            raise Odd("no\\nway")
        if self.name in ("faulty:closed", "faulty:cancelled"):
            yield TextDelta("Hi")
            raise {"closed": GeneratorExit, "cancelled": CancelledError}[self.name.partition(":")[2]]("no\\nway")
        yield {"text": "hello", "delta": TextDelta('Hi.\\n@@delta\\n{"word": "tea"}')}[self.name.partition(":")[2]]
        yield StreamEnd("stop", None, None, self.name)

    async def astream(self, request):
        if self.name == "faulty:slow":
            await sleep(3600)
        for chunk in self.stream(request):
            yield chunk

class Shelf:
    def find(self, query, k):
        raise Odd("no\\nway")

def divide(*_):
    return 1 / 0

def leave(*_):
    sys.exit("two\\nlines")

inverse, last = Reducer("inverse", divide), Reducer("leave", leave)

def read(raw):
    return 17
"""
FAULTY_POINTS = """\
[taiwa.tools]
script = faulty_script
skipped = faulty_skipped
[taiwa.models]
faulty = faulty:Model
[taiwa.reducers]
inverse = faulty:inverse
leave = faulty:last
[taiwa.readers]
num = faulty:read
[taiwa.retrievers]
shelf = faulty:Shelf
"""


@pytest.fixture
def faulty(run: Taiwa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Taiwa:
    """A package whose plug-ins fail when they are used."""
    folder = tmp_path / "faulty"
    info = folder / "faulty-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(FAULTY_POINTS)
    (folder / "faulty.py").write_text(FAULTY)
    (folder / "faulty_script.py").write_text("import sys\nsys.exit(3)\n")
    (folder / "faulty_skipped.py").write_text("class Skipped(BaseException): pass\nraise Skipped('no server')\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")
    return run


def test_a_package_that_ends_the_process_prints_or_has_lost_its_metadata_harms_no_other(
    faulty: Taiwa, tmp_path: Path
) -> None:
    (tmp_path / "faulty" / "faulty-1.0.dist-info" / "METADATA").unlink()

    listed = faulty.ok("plugins", "--json").json

    problems = {each["name"]: each["problem"] for each in listed}
    assert problems["script"] == "the tool 'script' of ? ? cannot be loaded: SystemExit: 3"
    assert problems["skipped"] == "the tool 'skipped' of ? ? cannot be loaded: Skipped: no server"
    assert faulty.ok("tools", "call", "price", "tea").out.strip() == "3.5"


def test_what_a_plug_in_returns_in_a_wrong_type_is_one_line(faulty: Taiwa, tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "one.num").write_text("1")

    said = faulty("say", "-m", "faulty:text", "hello")

    assert said.code == 1
    assert said.err == "taiwa: the model yielded an object of type str; expected TextDelta or StreamEnd\n"
    assert "broken: its reader returned no text (int)" in faulty.ok("index", "films").out


@pytest.mark.parametrize(
    ("name", "kind"), [("odd", "Odd"), ("closed", "GeneratorExit"), ("cancelled", "CancelledError")]
)
def test_whatever_a_model_raises_is_one_line_of_a_turn_and_of_a_row(
    faulty: Taiwa, tmp_path: Path, name: str, kind: str
) -> None:
    (tmp_path / "rows.txt").write_text("one\ntwo\n")

    said = faulty("say", "-m", f"faulty:{name}", "hello")
    batch = faulty("batch", "plain", str(tmp_path / "rows.txt"), "-m", f"faulty:{name}")

    failed = f"the model 'faulty' of faulty 1.0 failed: {kind}: no way"
    assert (said.code, said.err) == (1, f"taiwa: {failed}\n")
    assert batch.code == 1
    assert [row["error"]["message"] for row in batch.rows] == [failed] * 2


def test_a_cancelled_answer_of_a_model_is_no_failure(faulty: Taiwa) -> None:
    model = open_model(resolve("faulty:slow"), settings.load())

    async def ask() -> None:
        async with asyncio.timeout(0.01):
            await anext(model.astream(Request((user("hello"),))))

    with pytest.raises(TimeoutError):
        asyncio.run(ask())


def test_a_model_that_ends_the_process_ends_only_its_answer(faulty: Taiwa) -> None:
    model = open_model(resolve("faulty:exit"), settings.load())
    request = Request((user("hello"),))

    async def ask() -> list[Chunk]:
        return [chunk async for chunk in model.astream(request)]

    for answer in (lambda: list(model.stream(request)), lambda: asyncio.run(ask())):
        with pytest.raises(ModelError, match=r"the model 'faulty' of faulty 1\.0 failed: SystemExit: 3"):
            answer()


@pytest.mark.parametrize(
    ("name", "reason"), [("inverse", "ZeroDivisionError: division by zero"), ("leave", "SystemExit: two lines")]
)
def test_a_reducer_that_fails_or_ends_the_process_ends_only_its_turn(
    faulty: Taiwa, tmp_path: Path, name: str, reason: str
) -> None:
    text = f"---\ntaiwa: 1\nstate:\n  word: {{type: str, reduce: {name}}}\n---\nTalk.\n"
    (tmp_path / "words.md").write_text(text, encoding="utf-8")

    failed = faulty("say", "words.md", "-m", "faulty:delta", "hello")

    assert (failed.code, failed.err) == (2, f"taiwa: the reducer {name!r} of faulty 1.0 failed: {reason}\n")


def test_an_error_in_the_code_of_a_package_names_the_package(faulty: Taiwa) -> None:
    with faulty.start("ask", "--in", "shelf", "hello", "-m", "faulty:delta") as started:
        _, errors = started.communicate()

    last = "taiwa: the package faulty 1.0 failed: Odd: no way; --debug shows the traceback"
    assert errors.decode().splitlines() == ["imported", last]
