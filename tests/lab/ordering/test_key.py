"""Reading a key: what a person may write, and one line for whatever cannot be used."""

import json
from pathlib import Path

import pytest

from taiwa.kernel.errors import InputError
from taiwa.lab.ordering.dishes import Dish
from taiwa.lab.ordering.key import MOST_BYTES, read_key

WRITTEN = """\
# what each of them orders
a-1:
  - { name: latte, size: grande, quantity: 2, options: [oat milk, iced] }
  - { name: [scone, plain scone] }
small-talk: []
noted:
  why: the size was not said
  items: [{ name: tea, size: , options: to go }]
"""


def test_lines_stand_under_the_ids_of_requests(tmp_path: Path) -> None:
    path = tmp_path / "key.yaml"
    path.write_text(WRITTEN)

    key = read_key(path)

    assert key.orders == {
        "a-1": (Dish(("latte",), 2, "grande", ("oat milk", "iced")), Dish(("scone", "plain scone"))),
        "small-talk": (),
        "noted": (Dish(("tea",), options=("to go",)),),
    }
    assert len(key.digest) == 64


def test_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    path.write_text(json.dumps({"7": [{"name": "tea", "quantity": 3}]}, indent=1))
    assert read_key(path).orders == {"7": (Dish(("tea",), 3),)}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "key.yaml holds no order"),
        ("- a", "key.yaml:1: a key is a table"),
        ("a: 3", "key.yaml:1: the request 'a' has no list of lines"),
        ("a: {why: x}", "key.yaml:1: the request 'a' has no 'items'"),
        ("\na:\n  - latte", "key.yaml:3: a line of an order is a table"),
        ("a: [{size: tall}]", "key.yaml:1: a line of an order has a name"),
        ("a: [{name: }]", "key.yaml:1: the field 'name' is no text"),
        ("a: [{name: []}]", "key.yaml:1: a line of an order has a name"),
        ("a: [{name: tea, quantity: 0}]", "key.yaml:1: the quantity is a whole number from 1 to 999"),
        ("a: [{name: tea, quantity: true}]", "the quantity is a whole number"),
        ("a: [{name: tea, option: x}]", "no field is called 'option'; did you mean 'options'?"),
        ("a: [{name: tea, options: [{}]}]", "the field 'options' is no text"),
        ("a: []\na: []", "key.yaml:2: 'a' is there twice (first in line 1); keep one"),
        ("a: [", "key.yaml:1: not YAML"),
        ("a: *b", "key.yaml:1: the alias '*b'"),
        (f"a: [{', '.join(['{name: tea}'] * 101)}]", "an order of 101 lines; at most 100 are compared"),
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
