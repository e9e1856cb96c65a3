"""The demonstration in the page: conversations by the built-in model, in a folder that is deleted afterwards."""

import io
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from threading import Timer

from taiwa.cli.empty_home import at_home, run_command
from taiwa.cli.options import CommonOptions
from taiwa.cli.output import print_line
from taiwa.cli.serve import check_installed
from taiwa.cli.ui import has_browser, opener, page_server, print_page
from taiwa.i18n import _

CONVERSATIONS: tuple[tuple[str, ...], ...] = (
    ("ask", "-s", "handbook", "How many days of annual leave do I have in Galway?"),
    ("ask", "-s", "question-back", "I have a question about leave."),
    ("say", "order", "-s", "注文", "抹茶ラテを二つと、チーズケーキを一つください。"),
    ("say", "-s", "注文", "あと、コーヒーを一つお願いします。"),
    ("edit", "2", "-s", "注文", "あと、クロワッサンを一つください。"),
    ("say", "order", "-s", "desk", "Two grande lattes with oat milk, please."),
    ("say", "-s", "desk", "Make that three, please."),
    ("fork", "desk", "finished"),
    ("say", "-s", "finished", "That's everything, thank you."),
    ("say", "-s", "desk", "And a blueberry muffin, please."),
    ("edit", "3", "-s", "desk", "And two croissants, please."),
)
"""Commands that prepare conversations with a state, branches, a fork, citations and a question back."""


def show_page(minutes: int, *, no_browser: bool = False) -> None:
    """Prepare the conversations and serve them until Ctrl-C, or for some minutes."""
    check_installed()
    with tempfile.TemporaryDirectory(prefix="taiwa-") as folder, at_home(Path(folder)):
        print_line(_("The built-in model prepares some conversations …"))
        prepare()
        common = CommonOptions()
        settings = common.settings()
        server = page_server(common.repository(settings), settings, 0)
        print_page(server, opens=not no_browser and has_browser())
        print_line(_("The demonstration ends after {n} minutes, and what it stored is deleted.", n=minutes))
        timer = Timer(minutes * 60, server.stop)
        timer.daemon = True
        timer.start()
        try:
            server.run(None if no_browser else opener(server))
        finally:
            timer.cancel()


def prepare() -> None:
    """Make the conversations by ordinary commands."""
    for command in CONVERSATIONS:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            run_command(command)
