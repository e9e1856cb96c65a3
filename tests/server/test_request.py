"""What the endpoints read of a request."""

import pytest
from starlette.requests import Request

from taiwa.server.http_responses import ApiError
from taiwa.server.request import Fields, query_number


def number(query: bytes) -> int:
    return query_number(Request({"type": "http", "query_string": query, "headers": []}), "back", 7, 0, 1_000)


def test_a_number_of_the_query_is_within_its_bounds() -> None:
    assert [number(query) for query in (b"", b"back=0", b"back=1000", b"back=0001000")] == [7, 0, 1_000, 1_000]


@pytest.mark.parametrize(
    "text", [b"", b"-1", b"1001", b"1.5", b"%D9%A1", b"0" * 20 + b"9" * 30, b"0" * 20 + b"9" * 5_000]
)
def test_another_number_of_the_query_is_refused(text: bytes) -> None:
    with pytest.raises(ApiError, match="back must be from 0 to 1000"):
        number(b"back=" + text)


def test_a_text_stands_for_an_array_only_where_a_protocol_allows_it() -> None:
    body = Fields({"tags": "tea"})

    assert body.texts("tags", or_one=True) == ("tea",)
    with pytest.raises(ApiError, match="tags must be an array, got a string"):
        body.texts("tags")
