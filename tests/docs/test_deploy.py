"""The files for running a server for others: they can be read, and name options and paths that there are."""

import configparser
import json
import re
import tomllib
from pathlib import Path

from taiwa.cli.serve import serve
from taiwa.server.access import PUBLIC

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
OPTIONS = {option for each in serve.params for option in each.opts}


def shown(kind: str) -> str:
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    return found


def options_of(line: str) -> set[str]:
    return set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", line))


def test_the_unit_of_systemd_starts_the_server_with_options_that_it_has() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.read_string(shown("ini"))

    assert unit.sections() == ["Unit", "Service", "Install"]
    assert options_of(unit["Service"]["ExecStart"]) <= OPTIONS
    assert unit["Service"]["KillSignal"] == "SIGINT"


def test_the_container_starts_the_server_with_options_that_it_has() -> None:
    lines = dict(line.split(" ", 1) for line in DOCKERFILE if " " in line)

    entry = json.loads(lines["ENTRYPOINT"])
    assert entry[:2] == ["taiwa", "serve"]
    assert {word for word in entry if word.startswith("-")} <= OPTIONS
    assert lines["EXPOSE"] == str(next(each for each in serve.params if each.name == "port").default)


def test_the_container_copies_what_building_the_package_reads() -> None:
    copies = (line.split()[1:-1] for line in DOCKERFILE if line.startswith("COPY ") and "--from" not in line)
    copied = {name for names in copies for name in names}

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {*project["license-files"], "pyproject.toml", "hatch_build.py", "src"} <= copied
    assert all((ROOT / name).exists() for name in copied)


def test_the_proxies_balance_their_braces_and_name_paths_that_there_are() -> None:
    for kind in ("caddy", "nginx"):
        text = shown(kind)
        assert text.count("{") == text.count("}")
        assert set(re.findall(r"(?<= )/[a-z]+\b(?= |$)", text)) - {"/etc"} <= PUBLIC | {"/"}
