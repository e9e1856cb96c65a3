"""Every error can be written in a journal and raised again from it."""

import json

import pytest
from hypothesis import given

from taiwa.kernel import errors
from taiwa.kernel.errors import (
    LimitError,
    ModelError,
    RateLimitError,
    TaiwaError,
    ToolError,
    UnknownToolError,
    error_classes,
    restore_error,
)
from taiwa.kernel.serialization import canonical, record, restore
from tests.strategies import raised_errors


@given(raised_errors())
def test_an_error_survives_its_record(error: TaiwaError) -> None:
    written = json.loads(canonical(record(error.record())))

    revived = restore_error(restore(written))

    assert type(revived) is type(error)
    assert str(revived) == str(error)
    assert {name: getattr(revived, name) for name in error.details} == {
        name: getattr(error, name) for name in error.details
    }


ERRORS = sorted(
    (each for each in error_classes().values() if each.__module__ == errors.__name__), key=lambda each: each.__name__
)


@pytest.mark.parametrize("cls", ERRORS)
def test_every_error_has_a_docstring_and_a_place_in_the_tree(cls: type[TaiwaError]) -> None:
    assert cls.__doc__
    assert cls.__name__ in (errors.__doc__ or "")


def test_an_unknown_error_comes_back_as_the_root_with_its_message() -> None:
    revived = restore_error({"type": "old", "message": "it was so", "detail": 1})

    assert type(revived) is TaiwaError
    assert revived.message == "it was so"


def test_a_limit_says_what_was_spent_of_what() -> None:
    assert str(LimitError("output_tokens", 1200, 1000)) == "the limit on output tokens is reached: 1200 of 1000"


def test_errors_are_caught_by_their_kind() -> None:
    assert issubclass(RateLimitError, ModelError)
    assert issubclass(UnknownToolError, ToolError)


def test_a_detail_that_an_old_record_lacks_is_none() -> None:
    revived = restore_error({"type": "rate-limit", "message": "slow down"})

    assert isinstance(revived, RateLimitError)
    assert revived.retry_after is None
