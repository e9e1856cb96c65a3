"""How values lie in rows."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.conversation.history import AnsweredBy, Node, TurnParts
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.messages import Message
from taiwa.kernel.serialization import Json, canonical
from taiwa.store.nodes import COMPRESS_FROM, check_json, hash_to_bytes, node_body, node_texts, pack, unpack
from tests import strategies

texts = st.text(st.characters(codec="utf-8"))
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
jsons = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20)


@given(jsons)
def test_what_is_packed_is_unpacked(data: Json) -> None:
    assert canonical(unpack(pack(check_json(data)))) == canonical(data)


def test_a_long_body_is_compressed_and_a_short_one_can_be_read_in_the_file() -> None:
    short, long = pack("a" * (COMPRESS_FROM - 2)), pack("a" * COMPRESS_FROM)

    assert short == b'"' + b"a" * (COMPRESS_FROM - 2) + b'"'
    assert len(long) < 50
    assert unpack(long) == "a" * COMPRESS_FROM


@given(strategies.texts | st.none(), strategies.texts, st.none() | jsons, st.lists(strategies.messages), st.booleans())
def test_the_body_of_a_node_is_that_of_its_texts(
    asked: str | None, answer: str, delta: Json, said: list[Message], has_more: bool
) -> None:
    photo = Attachment.from_bytes(b"%PDF-1.4", "a.pdf")
    parts = TurnParts(messages=tuple(said))
    node = Node(None, "root", "", asked, answer, delta, parts=parts)
    if has_more:
        more = replace(parts, prefix="a", attachments=(photo,), findings={"b": delta})
        node = replace(node, parts=more, by=AnsweredBy("m"))

    assert node_body(node) == pack(node_texts(node))


@given(st.binary(max_size=100))
def test_a_damaged_body_raises_corrupt_error(body: bytes) -> None:
    try:
        found = unpack(body)
    except CorruptError:
        return
    assert found is None or isinstance(found, (bool, int, float, str, list, dict))


@pytest.mark.parametrize("data", [("a",), {1: "a"}, {"a": [{"b": {"c"}}]}, [object()], b"bytes"])
def test_values_that_json_would_not_give_back_equal_are_refused(data: Json) -> None:
    with pytest.raises(InputError):
        check_json(data)


@pytest.mark.parametrize("name", ["", "ab", "g" * 32, "A" * 32, "a" * 31, "a" * 33, "aa " * 10 + "aa"])
def test_only_32_hexadecimal_characters_are_a_hash(name: str) -> None:
    with pytest.raises(InputError, match="32 hexadecimal characters"):
        hash_to_bytes(name)
