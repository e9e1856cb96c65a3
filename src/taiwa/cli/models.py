"""Models and servers, and probes of what a server enforces: models, probe."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, get_args

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.output import emit, say_line, table, tell
from taiwa.i18n import ngettext
from taiwa.kernel.errors import ProtocolError
from taiwa.kernel.messages import Capability
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.models.http_api.provider_interface import Target
    from taiwa.models.registry import Provider

__all__ = ["models", "probe"]

PLACES = {
    "builtin": "built in, in this process",
    "local": "in this process",
    "gguf": "a llama.cpp server of our own",
}
OURS = ("local", "builtin")
"""Base URLs of models that our own decode loop runs."""


@click.group()
def models() -> None:
    """Show the known providers, and the capabilities of a model's server.

    \b
    taiwa models list
    taiwa models show openai:gpt-4.1-mini
    taiwa models remote http://127.0.0.1:8080/v1#qwen     the models that the server itself lists
    """


@models.command("list")
@flags("json")
def list_(shared: Flags) -> None:
    """List the providers: model names, addresses, and required keys."""
    from taiwa.models.http_api.api_keys import list_keys
    from taiwa.models.registry import INSIDE, PROVIDERS
    from taiwa.settings import BUILTIN

    chosen = shared.settings()
    there = {row.name for row in list_keys(chosen)}
    rows = [
        (f"{name}:MODEL", chosen.base_urls.get(name, provider.base_url), _key(provider, there))
        for name, provider in PROVIDERS.items()
    ]
    rows += [(f"{name}:MODEL", what, "none") for name, what in INSIDE.items()]
    rows.append((BUILTIN, "the built-in small model: `taiwa models show builtin`", "none"))
    if shared.as_json:
        emit([{"name": name, "base_url": address, "key": key} for name, address, key in rows])
        return
    table(("name", "address", "key"), rows)
    tell(
        f"any other server: http://HOST:PORT/v1#MODEL; none is set, so {BUILTIN} answers"
        if chosen.model is None
        else f"the model is set to {chosen.model}"
    )


def _key(provider: "Provider", there: set[str]) -> str:
    if provider.key_name in there:
        return f"{provider.key_name} (set)"
    return "as the server requires" if provider.own else f"{provider.key_name} (not set)"


@models.command()
@click.argument("name", required=False)
@flags("json")
def show(shared: Flags, name: str | None) -> None:
    """Show the capabilities of a model's server: from the table, corrected by a probe and by your settings."""
    from taiwa.models.http_api.probe_server import kept, probed

    chosen = shared.settings()
    target = probed(name or chosen.chosen_model(), chosen)
    found = kept(chosen, target)
    able: dict[str, bool] = {capability: capability in target.capabilities for capability in get_args(Capability)}
    if shared.as_json:
        emit(_record(target, able, None if found is None else found.day))
        return
    say_line(f"{target.name}  {PLACES.get(target.base_url, target.base_url)}", "bold")
    table(("capability", "supported"), [(capability, "yes" if can else "no") for capability, can in able.items()])
    if target.base_url == "builtin":
        _card()
    known = "our own decode loop" if target.base_url in OURS else "from the table; `taiwa probe` measures them"
    tell(known if found is None else f"probed on {found.day}")


def _record(target: "Target", able: dict[str, bool], day: str | None) -> dict[str, Json]:
    from taiwa.models.builtin.model import read_card

    capabilities: dict[str, Json] = {**able}
    told: dict[str, Json] = {
        "name": target.name, "base_url": target.base_url, "model": target.model, "capabilities": capabilities, "probed": day,
    }  # fmt: skip
    if target.base_url == "builtin":
        told["card"] = dict(read_card())
    return told


def _card() -> None:
    """Print the tasks of the built-in model, its figures, and its limits."""
    from taiwa.models.builtin.model import SKILLS, card_rows, read_card

    told = read_card()
    say_line("")
    table(("task", "description"), SKILLS)
    say_line("")
    if rows := list(card_rows(told)):
        table(("figure", "value"), rows)
        say_line("")
    limits = told.get("limits")
    for limit in limits if isinstance(limits, list) else ():
        say_line(f"- {limit}")


@models.command()
@click.argument("name", required=False)
@flags("json")
def remote(shared: Flags, name: str | None) -> None:
    """List the models that a server lists."""
    from taiwa.models.http_api.probe_server import probed
    from taiwa.models.open_model import speaking

    chosen = shared.settings()
    target = probed(name or chosen.chosen_model(), chosen)
    body = speaking(target, chosen).fetch("/models")
    try:
        said = json.loads(body)
        names = sorted(str(item["id"]) for item in said["data"])
    except (ValueError, KeyError, TypeError):
        raise ProtocolError(f"{target.base_url} returned an unknown list of models") from None
    if shared.as_json:
        emit(list[Json](names))
    else:
        for one in names:
            say_line(one)


@click.command()
@click.argument("name", required=False)
@flags("json", "verbose")
def probe(shared: Flags, name: str | None) -> None:
    """Measure what a server enforces: schema keywords, stop strings, prefixes, log probabilities …

    About thirty short requests show which rules are obeyed; the result is stored and corrects the table of
    capabilities. NAME defaults to the configured model.

    \b
    taiwa probe
    taiwa probe http://127.0.0.1:8080/v1#qwen --json
    """
    from taiwa.models.http_api.probe_server import keep, resolve_permissive
    from taiwa.models.http_api.probe_server import probe as probe_model
    from taiwa.models.open_model import speaking

    chosen = shared.settings()
    target = resolve_permissive(name or chosen.chosen_model(), chosen)
    report = probe_model(speaking(target, chosen), tell if shared.verbose else lambda _: None)
    report = replace(report, base_url=target.base_url)  # a server of our own has another port each time
    keep(chosen, report, datetime.now(UTC).date().isoformat())
    if shared.as_json:
        findings: dict[str, Json] = {one.name: {"verdict": one.verdict, "note": one.note} for one in report.findings}
        emit({"model": report.model, "base_url": report.base_url, "server": report.server, "requests": report.requests,
              "findings": findings})  # fmt: skip
        return
    table(("check", "verdict", "reason"), [(one.name, one.verdict, one.note) for one in report.findings])
    served = f" on {report.server}" if report.server else ""
    tell(
        f"{report.model}{served}: "
        + ngettext(
            "{n} request; saved, and used from now on", "{n} requests; saved, and used from now on", report.requests
        )
    )
