import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json, to_json

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(ANY_JSON)
def test_what_is_written_reads_back_with_every_key_in_its_place(data: Json) -> None:
    body = to_json(data)

    assert json.dumps(json.loads(body)) == json.dumps(data)


def test_what_is_written_is_compact_utf8() -> None:
    assert to_json({"b": "対話", "a": [1, None]}) == '{"b":"対話","a":[1,null]}'.encode()


@pytest.mark.parametrize(
    ("data", "said"), [("a\ud83d", r"half a character \(U\+D83D\)"), (float("nan"), "not a JSON value")]
)
def test_what_json_cannot_say_is_an_input_error(data: Json, said: str) -> None:
    with pytest.raises(InputError, match=said):
        to_json({"text": data})
