"""JSON Patch (RFC 6902): the operations that turn one value into another."""

from taiwa.json_schema import join_pointer
from taiwa.kernel.records import Json


def json_patch(before: Json, after: Json, pointer: str = "") -> list[Json]:
    """Return the operations that turn a value into another; none for equal values.

    Items of a list are compared by their place, and what a list has more or less is added or removed at its end.

    >>> json_patch({"a": [1, 2], "b": 1}, {"a": [1], "c": None})
    [{'op': 'remove', 'path': '/a/1'}, {'op': 'remove', 'path': '/b'}, {'op': 'add', 'path': '/c', 'value': None}]
    """
    operations: list[Json] = []
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            path = join_pointer(pointer, key)
            operations.extend(json_patch(value, after[key], path) if key in after else (_remove(path),))
        operations.extend(_add(join_pointer(pointer, key), value) for key, value in after.items() if key not in before)
    elif isinstance(before, list) and isinstance(after, list):
        for at, (old, new) in enumerate(zip(before, after, strict=False)):
            operations.extend(json_patch(old, new, join_pointer(pointer, at)))
        operations.extend(_remove(join_pointer(pointer, at)) for at in reversed(range(len(after), len(before))))
        operations.extend(_add(join_pointer(pointer, at), after[at]) for at in range(len(before), len(after)))
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        operations.append({"op": "replace", "path": pointer, "value": after})
    return operations


def _add(path: str, value: Json) -> Json:
    return {"op": "add", "path": path, "value": value}


def _remove(path: str) -> Json:
    return {"op": "remove", "path": path}
