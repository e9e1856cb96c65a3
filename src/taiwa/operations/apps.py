"""Apps made from options, for one conversation or written to a file from the setup of a conversation; imported apps."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin
from urllib.parse import urlsplit

from taiwa.apps.app_file import SAMPLING_KEYS
from taiwa.apps.catalog import load_source, load_text, pin_folders, split_front, write_app
from taiwa.conversation.app import TYPE, App, merge_sampling
from taiwa.conversation.code_files import IN_FILE
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.serialization import Json
from taiwa.models.providers import resolve_probed
from taiwa.operations.results import UntrustedApp
from taiwa.sessions.repository import Repository
from taiwa.settings import Settings
from taiwa.structured.type_notation import parse_fields, render_notation
from taiwa.tools.registry import tool_address
from taiwa.yamlfile import to_json, write_yaml

NAME = "custom"
"""The name of an app made of options."""
INSTRUCTIONS = "Help the user."
"""What such an app says to the model without instructions of the user: an app with state needs some."""


def make_app(documents: Sequence[str] = (), state: str = "", instructions: str = "") -> App:
    """Make an app that searches documents (folders, files or indexes) and keeps the fields of a state: `"city str, nights int"`.

    Raises:
        InputError: the fields are invalid. ConfigError: one of them has a reserved name.
    """
    front: dict[str, Any] = {"taiwa": 1, "name": NAME}
    if state:
        front["state"] = {name: _field(annotation) for name, annotation in parse_fields(state)[0].items()}
    if documents:
        front["documents"] = {"in": list(documents)}
    return load_text(pin_folders(_write(front, instructions or INSTRUCTIONS), Path.cwd()), "the options", NAME)


def save_app(app: App, path: Path) -> Path:
    """Create an app file with the source, the parameters and the options of an app; an existing file is never changed.

    Raises:
        ConfigError: the name of the file is not valid, or it exists or cannot be written.
    """
    *_, rest, tree = split_front(app.source.source)
    front = {} if tree is None else cast("dict[str, Any]", to_json(tree))
    own = rest.lstrip("\n").partition("\n")[2]
    if not app.body:
        front.pop("about", None)  # that of the app `plain`
    front |= {"taiwa": 1, "name": path.stem}
    for name, value in app.values.items():
        if value is not None:
            known = front["params"][name]
            front["params"][name] = (known if isinstance(known, dict) else {"type": known}) | {"default": value}
    options = app.answer_options
    sampled = merge_sampling(app.sampling, options.sampling)
    sampling = {key: value for key in SAMPLING_KEYS if (value := getattr(sampled, key)) is not None}
    addresses = {key.partition("@")[0]: tool_address(key) for key in options.tool_files}
    more: dict[str, Json] = {"tools": [addresses.get(name) or name for name in app.tools], "sampling": sampling}
    front |= {key: value for key, value in more.items() if value}
    if options.schema is not None:
        files = [tool_address(key) for key in options.tool_files if key.startswith(TYPE)]
        front["answer"] = next(
            filter(IN_FILE.fullmatch, files), {"title": options.schema.name, **options.schema.schema}
        )
    return write_app(path, path.stem, _write(front, own if app.body else options.system or ""))


def _field(annotation: object) -> str | dict[str, str]:
    """Write a field of the state: its type, with its description if it has one."""
    if get_origin(annotation) is not Annotated:
        return render_notation(annotation)
    kind = render_notation(annotation)
    about = next((each.description for each in get_args(annotation)[1:] if getattr(each, "description", None)), "")
    return {"type": kind, "description": about} if about else kind


def _write(front: dict[str, Any], body: str = "") -> str:
    written = "".join(write_yaml({key: value}) for key, value in front.items())
    return f"---\n{written}---\n{body.strip()}\n" if body.strip() else f"---\n{written}---\n"


def untrusted_apps(repository: Repository, settings: Settings, name: str = "") -> tuple[UntrustedApp, ...]:
    """Return the untrusted apps of a store, oldest first; with a name those of that app, session or beginning of a hash.

    Raises:
        InputError: a name is given, and no untrusted app has it.
    """
    store = repository.store
    sessions: dict[str, list[str]] = {}
    for ref in store.refs.list():
        sessions.setdefault(store.nodes.get(ref.tip).app, []).append(ref.name)
    found = tuple(
        UntrustedApp(app := load_source(source), tuple(sessions.get(source.hash, ())), _host(app.model, settings))
        for source in store.nodes.untrusted_apps()
        if name in ("", source.name, *sessions.get(source.hash, ())) or source.hash.startswith(name)
    )
    if name and not found:
        raise InputError(f"no untrusted app is named {name!r}; `taiwa apps trust` lists them")
    return found


def _host(model: str, settings: Settings) -> str:
    """Return the host of a model's server; the name of the model if it cannot be resolved."""
    try:
        return (urlsplit(resolve_probed(model, settings).base_url).hostname or "") if model else ""
    except ConfigError:
        return model
