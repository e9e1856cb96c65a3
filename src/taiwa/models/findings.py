"""What probes found out, kept beside the config file and put under what a person sets."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast, get_args

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.records import Json
from taiwa.kernel.values import Ability
from taiwa.models.loose import item_at, parse, text_at
from taiwa.models.names import resolve
from taiwa.models.openai import ChatCompletions
from taiwa.models.probe import Finding, ProbeReport, Verdict
from taiwa.models.wire import Target
from taiwa.settings import Settings
from taiwa.yamlfile import write_private

__all__ = ["Kept", "keep", "kept", "probed"]


@dataclass(frozen=True, slots=True)
class Kept:
    """A report that was kept, and the day it is of."""

    report: ProbeReport
    day: str = ""


def keep(settings: Settings, report: ProbeReport, day: str) -> None:
    """Write a report into the file, in place of an older one about the same model on the same server.

    Raises:
        ConfigError: the file is broken or cannot be written.
    """
    path = settings.probes_path
    data = _read(path)
    data[_place(report.base_url, report.model)] = {
        "day": day,
        "requests": report.requests,
        "server": report.server,
        "findings": {finding.name: [finding.verdict, finding.note] for finding in report.findings},
    }
    write_private(path, json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def kept(settings: Settings, target: Target) -> Kept | None:
    """Find the report about a model on its server.

    Raises:
        ConfigError: the file is broken.
    """
    data = _read(settings.probes_path).get(_place(target.base_url, target.model))
    found = item_at(data, "findings")
    if not isinstance(found, dict):
        return None
    findings = tuple(
        Finding(name, cast("Verdict", verdict), note)
        for name, (verdict, note) in ((name, _pair(pair)) for name, pair in found.items())
        if verdict in get_args(Verdict)
    )
    count = item_at(data, "requests")
    requests = count if isinstance(count, int) else 0
    report = ProbeReport(target.model, target.base_url, findings, requests, server=text_at(data, "server"))
    return Kept(report, text_at(data, "day"))


def probed(name: str, settings: Settings) -> Target:
    """Find where a model's name leads; what a probe found corrects the table, what a person set corrects the probe.

    Raises:
        ConfigError: the name cannot be used, or the file is broken.
    """
    target = resolve(name, base_urls=settings.base_urls, overrides=settings.abilities)
    found = kept(settings, target)
    if found is None:
        return target
    abilities: Mapping[Ability, bool] = found.report.abilities
    wishes = {str(ability): can for ability, can in abilities.items()} | dict(settings.abilities.get(name, {}))
    return _told(resolve(name, base_urls=settings.base_urls, overrides={name: wishes}), found.report)


def _told(target: Target, report: ProbeReport) -> Target:
    """The target whose codec knows what the server was found to hold."""
    codec = target.codec
    if not isinstance(codec, ChatCompletions):
        return target
    held = tuple((each.name.removeprefix("schema."), each.verdict) for each in report.findings)
    return replace(target, codec=replace(codec, facts=replace(codec.facts, held=held)))


def _place(base_url: str, model: str) -> str:
    return f"{base_url}#{model}"


def _pair(pair: Json) -> tuple[str, str]:
    words = [word for word in pair if isinstance(word, str)] if isinstance(pair, list) else []
    return (words[0], words[1]) if len(words) > 1 else ("", "")


def _read(path: Path) -> dict[str, Json]:
    try:
        data = parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError:  # not UTF-8, or not JSON
        data = None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: not the JSON that `taiwa probe` writes; delete it and probe again")
    return data
