"""The fixtures of reports: commands in an empty home, and a server that answers as a case says."""

from tests.cli.conftest import _server, model_server, place, taiwa  # noqa: F401  (fixtures)
