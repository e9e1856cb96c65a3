"""Fixtures of the command line for `python -m evals`."""

import contextlib
import io
from typing import cast

import pytest

from evals.__main__ import evals as group
from taiwa.cli.main import main
from tests.cli.conftest import Place, Result, _server, model_server, place

__all__ = ["Evals", "_server", "evals", "model_server", "place"]


class Evals:
    """Runs a command in this process, as `python -m evals ARGUMENTS` would."""

    def __call__(self, *arguments: str) -> Result:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
            main(arguments, group, "python -m evals")
        printed = [stream.buffer.getvalue().decode() for stream in (out, err)]
        return Result(cast("int", end.value.code or 0), *printed)

    def ok(self, *arguments: str) -> Result:
        """Run a command that must succeed."""
        result = self(*arguments)
        assert result.code == 0, f"{arguments}: {result.err}"
        return result


@pytest.fixture
def evals(place: Place) -> Evals:
    """Runs commands."""
    return Evals()
