"""Damages of a store file, and what every reading command must do with them: answer, or report one typed error.

`python -m tests.store.damage 2000 7` damages a store 2,000 times from seed 7 and prints what went wrong; a third argument bounds
the commands that each damaged store is tried with. Every other time it is the golden store, else one with what format 1 had not:
attachments, a second owner, and objects of the server.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from taiwa import open as open_conversation
from taiwa.cli.main import main
from taiwa.conversation.app import AppSource
from taiwa.kernel.attachments import Attachment
from taiwa.models.scripted import scripted_model
from taiwa.store import Store
from taiwa.store.server_records import ServedObject
from tests.files import PDF, PNG, TEXT

__all__ = ["COMMANDS", "DAMAGES", "damage", "failures", "golden_copy", "newest_copy"]

GOLDEN = Path(__file__).parents[1] / "format_1" / "data" / "store.db"
REPORTED = "internal error"
COMMANDS = (
    "log", "log --json", "log translate-1", "log --tree --json", "show translate-1", "show --json travel",
    "why dictionary translate-1", "state -s travel", "state -s translate-1 history dictionary", "search good", "search 犬",
    "diff travel translate-1", "export translate-1 --calls", "export travel --format md", "export travel --format html",
    "cost --by app", "cost --by model", "cost --by day", "cost --by session --json", "replay translate-1", "user list",
    "user export ann", "show files-1", "export files-1", "export files-1 --format html", "replay files-1", "apps trust", "fsck", "fsck --json", "gc --dry-run",
)  # fmt: skip
PAGE = 4096
NUMBERS = (0, 1, -1, 2**31, 2**63 - 1, -(2**63), 253_402_300_800_000_000, -62_135_596_800_000_001, 7)
TEXTS = ("", "x", "open", "turn", "root", "\ud800", "\x00", "a" * 1000, "1.x", "-1", "..", "complete")
LEAVES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**70,
    1e308,
    "",
    "\ud800",
    "x" * 700,
    [],
    {},
    [[]],
    {"~": "usage"},
    {"~": "no"},
)


def flip_bytes(path: Path, rng: Random) -> None:
    """Change some bytes anywhere."""
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        content[rng.randrange(len(content))] = rng.randrange(256)
    path.write_bytes(content)


def flip_bytes_of_a_page(path: Path, rng: Random) -> None:
    """Change some bytes of one page behind the first, which is where rows are."""
    content = bytearray(path.read_bytes())
    start = rng.randrange(1, len(content) // PAGE) * PAGE
    for _ in range(rng.choice((1, 4, 32))):
        content[start + rng.randrange(PAGE)] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def truncate(path: Path, rng: Random) -> None:
    """Cut the end off."""
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def overwrite(path: Path, rng: Random) -> None:
    """Overwrite a run of bytes with zeros or noise."""
    content = bytearray(path.read_bytes())
    start = rng.randrange(len(content))
    length = min(rng.choice((16, 512, PAGE, 3 * PAGE)), len(content) - start)
    content[start : start + length] = bytes(length) if rng.random() < 0.5 else rng.randbytes(length)
    path.write_bytes(content)


def swap_pages(path: Path, rng: Random) -> None:
    """Swap two pages, or write one over another."""
    content = bytearray(path.read_bytes())
    pages = len(content) // PAGE
    one, other = (rng.randrange(1, pages) * PAGE for _ in range(2))
    first, second = content[one : one + PAGE], content[other : other + PAGE]
    content[one : one + PAGE] = second
    if rng.random() < 0.5:
        content[other : other + PAGE] = first
    path.write_bytes(content)


def change_a_value(path: Path, rng: Random) -> None:
    """Set one value of one row, of the type of its column."""
    with closing(_opened(path)) as sql:
        table, column, kind, row = _any_value(sql, rng)
        new: object = rng.choice(NUMBERS)
        if kind == "TEXT":
            text = rng.choice(TEXTS).encode("utf-8", "surrogatepass")
            sql.execute(f"UPDATE OR IGNORE {table} SET {column} = CAST(? AS TEXT) WHERE rowid = ?", (text, row))
            return
        if kind == "BLOB":
            old = sql.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()[0] or b""
            new = rng.choice(
                (b"", b"x", b"\x78\x9c", rng.randbytes(16), old[:-1], bytes(reversed(old)), b"[" * 5000, b"{}")
            )
        sql.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = ?", (new, row))


def change_a_body(path: Path, rng: Random) -> None:
    """Change one part of the JSON of one row."""
    with closing(_opened(path)) as sql:
        for _ in range(50):
            table, column, kind, row = _any_value(sql, rng)
            body = sql.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()[0]
            if kind != "BLOB" or not body:
                continue
            try:
                data = json.loads(zlib.decompress(body) if body[0] == 0x78 else body)
            except (ValueError, zlib.error):
                continue
            new = json.dumps(_mutated(data, rng)).encode("utf-8", "surrogatepass")
            sql.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, row))
            return


def delete_rows(path: Path, rng: Random) -> None:
    """Delete some rows of one table, or all."""
    with closing(_opened(path)) as sql:
        table = rng.choice(_tables(sql))
        condition = "" if rng.random() < 0.2 else f" WHERE rowid % 3 = {rng.randrange(3)}"
        sql.execute(f"DELETE FROM {table}{condition}")


def change_the_schema(path: Path, rng: Random) -> None:
    """Drop a table, an index or a column, or rename a table."""
    with closing(_opened(path)) as sql:
        kinds = ("table", "index")
        names = sql.execute("SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
        kind, name = rng.choice(
            [(kind, name) for kind, name in names if kind in kinds and not name.startswith("sqlite")]
        )
        with contextlib.suppress(sqlite3.Error):
            sql.execute(
                f"DROP {kind} {name}" if rng.random() < 0.6 or kind == "index" else f"ALTER TABLE {name} RENAME TO gone"
            )


DAMAGES: tuple[Callable[[Path, Random], None], ...] = (
    flip_bytes, flip_bytes_of_a_page, truncate, overwrite, swap_pages, change_a_value, change_a_body, change_a_body,
    delete_rows, change_the_schema,
)  # fmt: skip


def golden_copy(folder: Path) -> Path:
    """A copy of the golden store in the newest format, all in one file."""
    path = folder / "golden.db"
    shutil.copy(GOLDEN, path)
    return path


def newest_copy(folder: Path) -> Path:
    """A copy of the golden store with rows in every table that came after it."""
    path = folder / "newest.db"
    golden_copy(folder).replace(path)
    with Store.open(path) as store:
        for owner, name in ((store, "files-1"), (store.owned_by("alice"), "files-2")):
            session = open_conversation("chat", session=name, model=scripted_model("犬です\n@@delta\n{}"), store=owner)
            session.say("犬ですか", attachments=[Attachment.from_bytes(each, "a") for each in (PNG, PDF, TEXT)])
            tip, run = owner.refs.tip(name), owner.runs
            owner.transcripts.put(owner.nodes.get(tip).app or session.app.hash, "ab" * 16, "cd" * 16, tip, name)
            owner.served.put(ServedObject(f"resp_{name}", "response", name, tip, {"status": "completed", "output": []}))
            owner.served.put(ServedObject(f"open_{name}", "response", name, None, {"status": "in_progress"}))
            run.begin(name, tip, session.app.hash, "weiter")
        store.nodes.put_app(
            AppSource("gift", "---\ntaiwa: 1\nname: gift\nmodel: openai:x\n---\nHi.\n", {}), untrusted=True
        )
    return path


def damage(path: Path, seed: int) -> str:
    """Damage a file in a way that follows from the seed, and name the way."""
    rng = Random(seed)
    how = rng.choice(DAMAGES)
    how(path, rng)
    return how.__name__


def failures(path: Path, seed: int, commands: int = len(COMMANDS)) -> Iterator[str]:
    """Yield those of some commands that end in anything but an answer or a typed error."""
    settings = {"TAIWA_STORE": str(path), "TAIWA_LANG": "en", "XDG_CONFIG_HOME": str(path.parent / "config")}
    os.environ.update(settings)
    pristine = path.read_bytes()
    for command in Random(seed).sample(COMMANDS, commands):
        for beside in path.parent.glob(f"{path.name}-*"):
            beside.unlink()
        path.write_bytes(pristine)
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main(command.split())
        except SystemExit:
            pass
        except BaseException as error:  # noqa: BLE001  (that is what is looked for)
            yield f"{command}: {type(error).__name__}: {error}"
        if REPORTED in err.getvalue() or err.getvalue().count("\n") > 3:
            yield f"{command}: {err.getvalue().strip()[-300:]}"


def _opened(path: Path) -> sqlite3.Connection:
    sql = sqlite3.connect(path, isolation_level=None)
    sql.execute("PRAGMA foreign_keys = OFF")
    sql.execute("PRAGMA ignore_check_constraints = ON")
    return sql


def _tables(sql: sqlite3.Connection) -> list[str]:
    select = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    names = [name for (name,) in sql.execute(f"{select} ORDER BY name")]
    return [name for name in names if sql.execute(f"SELECT count(*) FROM {name}").fetchone()[0]]


def _any_value(sql: sqlite3.Connection, rng: Random) -> tuple[str, str, str, int]:
    table = rng.choice(_tables(sql))
    column, kind = rng.choice(sql.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall())
    row = rng.choice(sql.execute(f"SELECT rowid FROM {table}").fetchall())[0]
    return table, column, kind, row


def _mutated(data: Any, rng: Random) -> Any:
    if isinstance(data, dict) and data and rng.random() < 0.85:
        key = rng.choice(sorted(data))
        if rng.random() < 0.15:
            return {name: part for name, part in data.items() if name != key}
        return data | {key: _mutated(data[key], rng)}
    if isinstance(data, list) and data and rng.random() < 0.85:
        at = rng.randrange(len(data))
        return [*data[:at], _mutated(data[at], rng), *data[at + 1 :]]
    return rng.choice(LEAVES)


def _one(golden: Path, folder: Path, seed: int, commands: int) -> list[str]:
    """Damage a copy and try every command, in a process of its own with a deadline."""
    path = folder / "taiwa.db"
    shutil.copy(golden, path)
    how = damage(path, seed)
    report = folder / "report"
    report.write_text("hangs\n")
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        lines = [f"{how} {seed}: {line}" for line in failures(path, seed, commands)]
        report.write_text("".join(f"{' '.join(line.split())}\n" for line in lines))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    found = report.read_text().splitlines()
    return [f"{how} {seed}: ended by signal {status}"] if status else found


if __name__ == "__main__":
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    commands = int(sys.argv[3]) if len(sys.argv) > 3 else len(COMMANDS)
    start, bad, ways = time.monotonic(), 0, Counter[str]()
    with tempfile.TemporaryDirectory() as made:
        copies = (newest_copy(Path(made)), golden_copy(Path(made)))
        for each in range(seed, seed + count):
            folder = Path(made) / "one"
            folder.mkdir()
            faults = _one(copies[each % 2], folder, each, commands)
            shutil.rmtree(folder)
            bad += bool(faults)
            for line in faults:
                ways[line.split(": ", 2)[-1][:60]] += 1
                print(line, flush=True)  # noqa: T201
    seconds = time.monotonic() - start
    print(f"{bad} of {count} damages ({bad / count:.2%}) in {seconds:.0f} s", *ways.most_common(20), sep="\n")  # noqa: T201
