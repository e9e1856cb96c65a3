"""The address of a server may hold a password; nothing that is shown does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.sql import PostgresUrl, is_postgres_url
from taiwa.sql.base import hide_password

SECRET = "zeugma"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:zeugma@db:5433/talks", "postgresql://ann@db:5433/talks"),
        ("postgres://ann@db/talks", "postgres://ann@db/talks"),
        ("postgresql:///talks?host=/run/postgresql&password=zeugma", "postgresql:///talks?host=/run/postgresql"),
        ("postgresql://a:zeugma@one:1,two:2/x?sslmode=require&sslpassword=zeugma", "postgresql://a@one:1,two:2/x?sslmode=require"),
        ("postgresql://ann:zeugma@[::1]:5432/x", "postgresql://ann@[::1]:5432/x"),
        ("postgresql://ann:zeugma%40%2F%3F%23@db/x", "postgresql://ann@db/x"),
        ("postgresql://:zeugma@db/x", "postgresql://@db/x"),
        ("  postgresql://ann:zeugma@db/x ", "postgresql://ann@db/x"),
        ("postgresql://", "postgresql://"),
    ],
)  # fmt: skip
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    server = PostgresUrl.parse(url)

    assert str(server) == hide_password(url) == shown
    assert repr(server) == f"PostgresUrl({shown!r})"
    assert server.url == url.strip()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:zeugma/@db/x",
        "postgresql://ann:zeu#gma@db/x",
        "postgresql://ann:zeu?gma@db/x",
        "postgresql://ann:zeugma%@db/x",
        "postgresql://ann:zeugma",
        "postgresql://[zeugma@db/x",
        "postgresql://ann:zeug ma@db/x",
        "postgresql://ann:zeugma\n@db/x",
        "mysql://ann:zeugma@db/x",
    ],
)
def test_an_invalid_url_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="is not a PostgreSQL URL; expected") as caught:
        PostgresUrl.parse(url)

    assert not any(part in str(caught.value) for part in ("zeu", "gma"))


@given(st.text(), st.text(min_size=1))
def test_no_password_is_shown_however_it_is_written(before: str, after: str) -> None:
    text = f"postgresql://ann:{before}{SECRET}{after}@db/x"
    try:
        said = f"{PostgresUrl.parse(text)}{PostgresUrl.parse(text)!r}"
    except ValueError as error:
        said = str(error)

    assert SECRET not in said


@pytest.mark.parametrize("text", ["store.db", "/a/postgresql", "postgresql.db", "", None, "./postgresql://x"])
def test_a_path_is_not_a_url(text: object) -> None:
    assert not is_postgres_url(text)
