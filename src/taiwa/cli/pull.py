"""Fetching a model with its progress shown, for every command that fetches one."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from taiwa.cli.output import download_bar, errors, print_notice
from taiwa.i18n import _
from taiwa.models.weights.model_files import format_size

if TYPE_CHECKING:
    from taiwa.models.weights.fetch import FetchEvent
    from taiwa.operations.model_files import PulledFile
    from taiwa.settings import Settings


def pull_with_display(name: str, settings: "Settings", *, mirror: str = "", is_shown: bool = True) -> "PulledFile":
    """Fetch a model and show the progress; see `pull_model`.

    Raises:
        InputError, ConfigError: see `pull_model`.
        KeyboardInterrupt: the user interrupted it; the message says how to continue.
    """
    from taiwa.operations.model_files import pull_model

    try:
        with download_bar(is_shown=is_shown) as update:
            return pull_model(name, settings, PullDisplay(name, update), mirror=mirror)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_("interrupted; to continue: taiwa models pull {name}", name=name)) from None


class PullDisplay:
    """Shows what happens while a model is fetched: a bar on a terminal, a line for each quarter elsewhere."""

    def __init__(self, name: str, update: Callable[[int, int], None]) -> None:
        self._name = name
        self._update = update
        self._quarter: int | None = None
        self._has_bar = errors().is_terminal

    def __call__(self, event: "FetchEvent") -> None:
        """Show an event."""
        if event.kind == "progress":
            self._update(event.done, event.total)
            quarter = 4 * event.done // event.total
            if self._quarter is not None and quarter > self._quarter and not self._has_bar:
                print_notice(f"{self._name}: {25 * quarter} % ({format_size(event.total)})")
            self._quarter = quarter
        else:
            print_notice(self._words(event))

    def _words(self, event: "FetchEvent") -> str:
        match event.kind:
            case "source":
                return _("{name} from {source}", name=self._name, source=event.source)
            case "failed":
                return f"{event.source} {event.reason}"
            case "waiting":
                return _("another process is fetching {name}; waiting for it", name=self._name)
            case _:
                return _("the file of {name} on this machine is damaged; it is fetched again", name=self._name)
