"""What the page offers to begin with: examples that show what is special, and the models that were found on this machine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from taiwa.i18n import gettext_noop
from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.serialization import Json
from taiwa.models.providers import FoundModel, find_by_keys, find_servers
from taiwa.models.weights.fetch import FetchEvent
from taiwa.models.weights.model_files import FIRST_MODEL, MODEL_FILES, format_size
from taiwa.operations.model_files import fetched_models, list_models, pull_model
from taiwa.sessions.ask_resources import BUNDLED_HANDBOOK
from taiwa.settings import Settings


@dataclass(frozen=True, slots=True)
class Example:
    """A first message that shows something special: with an app and options of its answers, and the panel that shows it."""

    app: str
    title: str
    text: str
    panel: str
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    params: Mapping[str, Json] = field(default_factory=dict[str, Json])
    needs_model: bool = True


EXAMPLES = (
    Example(
        "order",
        gettext_noop("An order, and why each value is there"),
        gettext_noop("Two lattes and a blueberry muffin, please."),
        "state",
    ),
    Example(
        "solve",
        gettext_noop("A problem solved with a calculator"),
        gettext_noop(
            "A car needs 6.4 litres for 100 km. What does it need for 385 km, and what is that at 1.79 a litre?"
        ),
        "turn",
    ),
    Example(
        "ask",
        gettext_noop("A question to documents, answered with its sources"),
        gettext_noop("How many days of annual leave are there?"),
        "turn",
        params={"in": [BUNDLED_HANDBOOK]},
        needs_model=False,
    ),
    Example(
        "plain",
        gettext_noop("An answer of a type, token by token"),
        gettext_noop("Invent a tea: its name, where it grows, and for how many seconds it steeps."),
        "turn",
        {"type": "name, origin, seconds int"},
    ),
)


class Fetching:
    """The fetch of the small model that is offered where none is set, and how far it is; `problem` says why it failed."""

    def __init__(self, settings: Settings, use: Callable[[str], None]) -> None:
        self.done, self.total, self.problem, self.ended = 0, MODEL_FILES[FIRST_MODEL].size, "", False
        self._settings = settings
        self._use = use

    def run(self) -> None:
        """Fetch the model and use it."""
        try:
            self._use(pull_model(FIRST_MODEL, self._settings, self._listen).model)
        except TaiwaError as error:
            self.problem = error.message
        finally:
            self.ended = True

    def _listen(self, event: FetchEvent) -> None:
        self.done = event.done or self.done


def offered_model() -> str:
    """Return the name and the size of the model that can be fetched; "" if it is here."""
    return "" if FIRST_MODEL in fetched_models() else f"{FIRST_MODEL}, {format_size(MODEL_FILES[FIRST_MODEL].size)}"


def found_models(settings: Settings) -> tuple[FoundModel, ...]:
    """Find the models within reach: of providers whose key is set, of servers on this machine, and in files here."""
    fetched = (FoundModel(name, "") for name in fetched_models())
    others = (FoundModel(each.model, each.program) for each in list_models().found)
    return (*find_by_keys(settings), *find_servers(settings), *fetched, *others)
