"""Faults as lines that a model and a person can act on: `$.items[0].size = "huge": must be "small" or "large"`.

Values and keys are data. They are cut, quoted as JSON and kept on their line, so nothing in them reads as an instruction of
its own.
"""

from taiwa.kernel import Json
from taiwa.shape.faults import Fault, Path, branch_name, faults, node_at
from taiwa.shape.faults import branch as meant_by
from taiwa.shape.form import Form
from taiwa.shape.judges import Complaint
from taiwa.shape.wording import BREAKS, cut, described, literal

__all__ = ["MOST_LINES", "diagnostics", "pointer"]

MOST_LINES = 12
VALUE_CHARS = 60
TEXT_CHARS = 200
CUSTOM = ("value_error", "assertion_error", "validator")


def diagnostics(form: Form, data: Json, complaints: tuple[Complaint, ...] = ()) -> tuple[str, ...]:
    """Say what is wrong with data, at most twelve lines and a count of the rest.

    The form's own walk comes first; what only the judge can know (patterns, formats, validators) follows.
    """
    found = faults(form, data)
    lines = [_line(fault) for fault in found]
    lines += _from_judge(form, data, complaints, {fault.path for fault in found})
    lines = list(dict.fromkeys(lines))
    if len(lines) > MOST_LINES:
        return (*lines[:MOST_LINES], f"… and {len(lines) - MOST_LINES} more")
    return tuple(lines)


def pointer(path: Path) -> str:
    """Write a path: `$.items[0]["odd key"]`."""
    parts = [
        f"[{part}]" if isinstance(part, int) else f".{part}" if _plain(part) else f"[{cut(literal(part), VALUE_CHARS)}]"
        for part in path
    ]
    return "$" + "".join(parts)


def _plain(key: str) -> bool:
    return key.isidentifier() and len(key) <= VALUE_CHARS


def _line(fault: Fault) -> str:
    branch = f" (read as {cut(fault.branch, VALUE_CHARS)})" if fault.branch else ""
    where = pointer(fault.path)
    if fault.code == "missing":
        return f"{where}: missing ({cut(fault.expected, TEXT_CHARS)}){branch}"
    if fault.code == "size":
        return f"{where}: has {fault.got}, must be {cut(fault.expected, TEXT_CHARS)}{branch}"
    verb = "" if fault.code == "unknown" else "must be "
    return f"{where} = {_shown(fault.got)}: {verb}{cut(fault.expected, TEXT_CHARS)}{branch}"


def _shown(value: Json) -> str:
    if isinstance(value, list) and value:
        return f"[…] ({len(value)} items)"
    if isinstance(value, dict) and value:
        return f"{{…}} ({', '.join(cut(literal(key), 20) for key in list(value)[:3])}{', …' if len(value) > 3 else ''})"
    if isinstance(value, str):
        return cut(literal(value[: VALUE_CHARS + 1]), VALUE_CHARS)
    return cut(literal(value), VALUE_CHARS)


def _from_judge(form: Form, data: Json, complaints: tuple[Complaint, ...], known: set[Path]) -> list[str]:
    """Word what the judge says about paths of which the walk says nothing."""
    lines: list[str] = []
    strange: list[str] = []
    above = {path[:depth] for path in known for depth in range(len(path) + 1)}
    for complaint in complaints:
        path, meant = _data_path(form, data, complaint.path)
        told = path in above or any(path[:depth] in known for depth in range(len(path)))
        if told or (known and not meant):
            continue
        node = node_at(form, data, path)
        here = _at(data, path)
        text = complaint.text
        if complaint.code not in CUSTOM and node is not None:
            text = f"must be {described(meant_by(form, node, here), branch_name(form, node, here))}"
        line = f"{pointer(path)} = {_shown(here)}: {cut(BREAKS.sub(' ', text), TEXT_CHARS)}"
        (lines if meant and node is not None else strange).append(line)
    return lines or strange


def _data_path(form: Form, data: Json, path: Path) -> tuple[Path, bool]:
    """Leave out what only names a branch of a union; tell whether the branches named are the ones that were meant."""
    kept: list[str | int] = []
    meant = True
    for part in path:
        here = _at(data, tuple(kept))
        if _has(here, part):
            kept.append(part)
        else:
            node = node_at(form, data, tuple(kept))
            told = isinstance(here, dict) and part in here.values()
            meant = meant and node is not None and (told or branch_name(form, node, here) == part)
    return tuple(kept), meant


def _has(data: Json, part: str | int) -> bool:
    if isinstance(data, dict):
        return isinstance(part, str) and part in data
    return isinstance(data, list) and isinstance(part, int) and part < len(data)


def _at(data: Json, path: Path) -> Json:
    for part in path:
        if isinstance(data, dict):
            data = data[str(part)]
        elif isinstance(data, list):
            data = data[int(part)]
    return data
