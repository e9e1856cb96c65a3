"""Questions to documents: the app that answers them, with its options as parameters."""

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import cast

from taiwa.apps.catalog import load_app
from taiwa.ask.prompts import read_policy
from taiwa.ask.result import AskResult
from taiwa.conversation.app import App
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Passage, passage_key
from taiwa.kernel.records import Json
from taiwa.operations.documents import SILENT, Reporter, find_indexes, open_library
from taiwa.operations.results import AskTurn
from taiwa.sessions.repository import Repository
from taiwa.sessions.stored_ask import BUNDLED_HANDBOOK
from taiwa.settings import Settings


@dataclass(frozen=True, slots=True)
class AskOptions:
    """Where a question is searched for, for whom, and when to ask back.

    - `indexes`: names of indexes, or folders, which are indexed first; all indexes without any.
    - `audience`: the principals for whom documents are searched (`user:ann`, `group:hr`).
    - `user`: a user of the store.
    - `policy`: when to ask back, by its name or the path of a policy file ("": `look_first`). `assess_by`: how a model assesses the dialogue ("": `auto`).
    - `max_questions`: the most questions back in a row (None: as the policy and the user set it).
    """

    indexes: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()
    user: str = ""
    policy: str = ""
    assess_by: str = ""
    max_questions: int | None = None


def read_policy_file(policy: str) -> str:
    """Return the text of a policy file, which the conversation keeps; a name is returned as it is.

    Raises:
        ConfigError: the file is malformed or cannot be read.
    """
    if not policy.endswith(".md"):
        return policy
    try:
        text = Path(policy).read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the policy {policy}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read the policy {policy}: it is not UTF-8") from None
    read_policy(text, policy)
    return text


def open_ask_app(settings: Settings, options: AskOptions, reporter: Reporter = SILENT) -> App:
    """Open the app `ask` with options as its parameters; folders are indexed first.

    Raises:
        InputError: an index or a parameter is not found or not valid.
    """
    own = [name for name in options.indexes if name != BUNDLED_HANDBOOK]
    names = list(options.indexes)
    if own:
        with open_library(settings) as library:
            found = [index.name for index in find_indexes(library, own, settings, reporter)]
        names = found + [BUNDLED_HANDBOOK] * (BUNDLED_HANDBOOK in options.indexes)
    values: dict[str, Json] = {
        "in": list[Json](names),
        "as": list[Json](options.audience),
        "user": options.user,
        "policy": read_policy_file(options.policy),
        "assess_by": options.assess_by,
        "max_questions": options.max_questions,
    }
    return load_app("ask").with_params({name: each for name, each in values.items() if each not in (None, "", [])})


def find_ask_turn(repository: Repository, node: str) -> AskTurn | None:
    """Return what a turn of the flow `ask` did, from its records; None for every other node."""
    result = AskResult.from_delta(repository.store.nodes.get(node).delta)
    if result is None:
        return None
    found: dict[str, Passage] = {}
    answers = (entry.answer for entry in repository.store.runs.journal_of(node))
    retrieved = (cast("tuple[object, ...]", answer) for answer in answers if isinstance(answer, tuple))
    for each in chain.from_iterable(retrieved):
        if not isinstance(each, Passage):
            continue
        key = passage_key(each)
        found[key] = max(found.get(key, each), each, key=lambda passage: passage.score)
    used = {each.id: each for each in result.passages}
    passages = tuple(replace(each, score=used[key].score) for key in used if (each := found.get(key)) is not None)
    misses = sorted((each for key, each in found.items() if key not in used), key=lambda passage: -passage.score)
    candidates = tuple(tuple(found[key] for key in option.passages if key in found) for option in result.options)
    return AskTurn(result, passages, tuple(misses), candidates)
