"""The format on disk is tags and field names, independent of class and module names; it only grows."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from taiwa.kernel.errors import RateLimitError, restore_error
from taiwa.kernel.serialization import digest, record, registry, restore, value

TAGS = Path(__file__).with_name("tags.json")
LIST = """
import json, pkgutil, importlib
from dataclasses import MISSING
import taiwa
for module in pkgutil.walk_packages(taiwa.__path__, "taiwa."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert (error.name or "").partition(".")[0] != "taiwa", error
from taiwa.kernel.errors import TaiwaError, error_classes
from taiwa.kernel.serialization import recorded_fields, registry
def derived(cls):
    return [cls, *(each for below in cls.__subclasses__() for each in derived(below))]
tags = [cls.tag for cls in derived(TaiwaError) if "tag" in vars(cls)]
assert len(tags) == len(set(tags)), sorted(tags)
values = {tag: {name: default is MISSING for name, _, default in recorded_fields(cls)} for tag, cls in registry.items()}
print(json.dumps({"values": values, "errors": {tag: cls.details for tag, cls in error_classes().items() if cls is not TaiwaError}}))
"""


@cache
def present() -> dict[str, dict[str, dict[str, bool] | list[str]]]:
    """The tags of the whole package, each value's with its fields and whether they must be given."""
    listed = subprocess.run([sys.executable, "-c", LIST], check=True, capture_output=True, text=True)
    found: dict[str, dict[str, dict[str, bool] | list[str]]] = json.loads(listed.stdout)
    return found


def kept() -> dict[str, dict[str, list[str]]]:
    """The tags that were ever written, with their fields."""
    held: dict[str, dict[str, list[str]]] = json.loads(TAGS.read_text("utf-8"))
    return held


@pytest.mark.parametrize("kind", ["values", "errors"])
def test_every_tag_is_listed_and_none_is_lost(kind: str) -> None:
    listed = kept()[kind]

    assert list(listed) == sorted(listed)
    assert list(listed) == sorted(present()[kind])
    assert all(tag == tag.lower() and tag.replace("-", "").isalnum() for tag in listed)


@pytest.mark.parametrize("kind", ["values", "errors"])
def test_a_field_may_be_added_but_none_removed_or_renamed(kind: str) -> None:
    fields = {tag: list(found) for tag, found in present()[kind].items()}

    assert fields == kept()[kind]


def test_a_field_that_was_added_has_a_default() -> None:
    first = json.loads(TAGS.read_text("utf-8"))["needed"]
    needed = {
        tag: [name for name, bare in found.items() if bare]
        for tag, found in present()["values"].items()
        if isinstance(found, dict)
    }

    assert needed == first


def test_a_renamed_class_reads_the_records_of_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    @value(tag="scratch")
    class Before:
        name: str
        parts: tuple[str, ...] = ()

    written, named = record(Before("a", ("b",))), digest(Before("a"))
    monkeypatch.delitem(registry, "scratch")

    @value(tag="scratch")
    class After:
        name: str
        parts: tuple[str, ...] = ()

    assert restore(written) == After("a", ("b",))
    assert record(After("a", ("b",))) == written
    assert digest(After("a")) == named
    registry.pop("scratch")


def test_a_value_without_a_tag_is_not_recorded() -> None:
    @value
    class Untold:
        name: str

    with pytest.raises(TypeError, match=r"Untold has no tag and cannot be recorded"):
        record({"held": (Untold("a"),)})


def test_an_error_is_recorded_by_its_tag_and_not_by_its_name() -> None:
    class SlowDownError(RateLimitError):
        """A subclass without a tag of its own."""

    written = SlowDownError("slow down", retry_after=2.0).record()

    assert written["type"] == "rate-limit"
    assert type(restore_error(written)) is RateLimitError
