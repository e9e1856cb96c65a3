"""The app that options of `say` and `chat` make."""

from dataclasses import replace
from typing import TYPE_CHECKING

from taiwa.cli.options import CommonOptions
from taiwa.kernel.errors import InputError

if TYPE_CHECKING:
    from taiwa.conversation.app import App


def app_of_options(common: CommonOptions, app: str) -> "tuple[CommonOptions, str | App]":
    """Return the other options, and the app that `--in` and `--state` make; without these two, what was given.

    Raises:
        InputError: an app or an existing conversation is named too, the fields are invalid, or the documents are not found.
    """
    if not (common.indexes or common.state):
        return common, app
    if app or common.continues:
        what = f"the app {app!r}" if app else "the conversation"
        raise InputError(
            f"--in and --state set up a new conversation, and {what} has its own documents and state; leave them out"
        )
    from taiwa.cli.index import reporter
    from taiwa.operations.documents import index_documents
    from taiwa.operations.made_app import make_app

    made = make_app(common.indexes, common.state, common.system or "")
    if common.indexes:
        index_documents(common.settings(), common.indexes, reporter())
    return replace(common, system=None), made
