"""Reading a key: what a person may write, and one line for whatever cannot be used."""

import json
from pathlib import Path

import pytest

from taiwa.kernel.errors import InputError
from taiwa.lab.ordering.dishes import Dish
from taiwa.lab.ordering.key import MOST_BYTES, read_key

WRITTEN = """\
version: 1
requests:
  a-1:
    items:
      - { name: latte, size: grande, quantity: 2, options: [oat milk, iced] }
      - { name: [scone, plain scone] }
    also:
      - items: [{ name: latte, quantity: 2 }]
    missing: [crumpet]
  small-talk: { items: [] }
  noted:
    items: [{ name: tea, size: , options: to go }]
  a-2: { duplicate: a-1 }
"""


def test_lines_stand_under_the_ids_of_requests(tmp_path: Path) -> None:
    path = tmp_path / "key.yaml"
    path.write_text(WRITTEN)

    key = read_key(path)

    assert key.orders == {
        "a-1": (
            (Dish(("latte",), 2, "grande", ("oat milk", "iced")), Dish(("scone", "plain scone"))),
            (Dish(("latte",), 2),),
        ),
        "small-talk": ((),),
        "noted": ((Dish(("tea",), options=("to go",)),),),
    }
    assert key.duplicates == {"a-2": "a-1"}
    assert len(key.digest) == 64


def test_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    path.write_text(json.dumps({"requests": {"7": {"items": [{"name": "tea", "quantity": 3}]}}}, indent=1))
    assert read_key(path).orders == {"7": ((Dish(("tea",), 3),),)}


def of(request: str) -> str:
    return f"requests:\n  a: {request}"


def line(fields: str) -> str:
    return of(f"{{ items: [{fields}] }}")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "key.yaml holds no order"),
        ("requests: {}", "key.yaml holds no order"),
        ("- a", "key.yaml:1: a key has 'requests'"),
        ("a: []", "key.yaml:1: a key has 'requests'"),
        ("a: 1\nrequests: 3", "key.yaml:2: a key has 'requests'"),
        (of("3"), "key.yaml:2: below 'a' stand 'items'"),
        (of("{ why: x }"), "key.yaml:2: no field is called 'why'"),
        (of("{ missing: [x] }"), "key.yaml:2: the request 'a' has no list of 'items'"),
        (of("{ items: 3 }"), "key.yaml:2: the request 'a' has no list of 'items'"),
        (of("{ items: [], also: 3 }"), "key.yaml:2: 'also' is a list of at most 20 tables"),
        (of("{ items: [], also: [3] }"), "key.yaml:2: another reading is a table with 'items'"),
        (of("{ items: [], also: [{ item: [] }] }"), "no field is called 'item'; did you mean 'items'?"),
        (of("{ duplicate: [] }"), "the field 'duplicate' is no text"),
        (of("\n    items:\n      - latte"), "key.yaml:4: a line of an order is a table"),
        (line("{ size: tall }"), "key.yaml:2: a line of an order has a name"),
        (line("{ name: }"), "key.yaml:2: the field 'name' is no text"),
        (line("{ name: [] }"), "key.yaml:2: a line of an order has a name"),
        (line("{ name: tea, quantity: 0 }"), "key.yaml:2: the quantity is a whole number from 1 to 999"),
        (line("{ name: tea, quantity: true }"), "the quantity is a whole number"),
        (line("{ name: tea, option: x }"), "no field is called 'option'; did you mean 'options'?"),
        (line("{ name: tea, options: [{}] }"), "the field 'options' is no text"),
        (line(", ".join(["{ name: tea }"] * 101)), "an order of 101 lines; at most 100 are compared"),
        ("requests:\n  a: {}\n  a: {}", "key.yaml:3: 'a' is set twice (first in line 2); keep one"),
        ("a: [", "key.yaml:1: not YAML"),
        ("a: *b", "key.yaml:1: the alias '*b'"),
    ],
)
def test_what_cannot_be_used_is_one_line_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "key.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_key(path)
    assert complaint in caught.value.message
    assert "\n" not in caught.value.message


def test_files_that_are_no_text_or_far_too_large_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "key.yaml"
    path.write_bytes(b"a: []\nb: \xff")
    with pytest.raises(InputError, match=r"key.yaml:2: not UTF-8"):
        read_key(path)
    path.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(InputError, match="larger than 4 MB"):
        read_key(path)
    with pytest.raises(InputError, match="No such file"):
        read_key(tmp_path / "none.yaml")
