"""The wheel, installed in an empty environment without extras."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.house.source import ROOT

pytestmark = pytest.mark.slow

MAX_WHEEL_BYTES = 1_685_000
"""What pip shows as 1.7 MB."""


class WheelEnvironment:
    """An empty virtual environment with the freshly built wheel in it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.python = folder / "venv" / "bin" / "python"
        self.run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
        self.wheel = next(folder.glob("taiwa-*.whl"))
        # The pip of this environment installs into the other one; creating an environment with pip takes seconds.
        self.run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
        self.pip("install", "--no-compile", "--constraint", ROOT / "constraints.txt", self.wheel)

    def pip(self, *words: str | Path) -> str:
        return self.run(sys.executable, "-m", "pip", "--quiet", "--python", self.python, *words)

    def run(self, *words: str | Path) -> str:
        done = subprocess.run(words, check=False, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{words} failed:\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def wheel_environment(tmp_path_factory: pytest.TempPathFactory, real_environment: dict[str, str]) -> WheelEnvironment:
    return WheelEnvironment(tmp_path_factory.mktemp("wheel"), real_environment)


def test_the_wheel_holds_the_typed_package_and_its_licence_only(wheel_environment: WheelEnvironment) -> None:
    names = zipfile.ZipFile(wheel_environment.wheel).namelist()

    assert "taiwa/py.typed" in names
    assert {"taiwa/apps/handbook/en/leave.md", "taiwa/apps/handbook/ja/kyuka.md", "taiwa/apps/builtin/ask.md"} <= {
        *names
    }
    assert {f"taiwa/locale/{code}/LC_MESSAGES/{name}.mo" for code in ("ja", "zh") for name in ("cli", "dialogue")} <= {
        *names
    }
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"taiwa"}


def test_the_wheel_is_small(wheel_environment: WheelEnvironment) -> None:
    assert wheel_environment.wheel.stat().st_size <= MAX_WHEEL_BYTES


def test_the_wheel_brings_every_requirement_it_names(wheel_environment: WheelEnvironment) -> None:
    assert "No broken requirements" in wheel_environment.run(
        sys.executable, "-m", "pip", "--python", wheel_environment.python, "check"
    )


def test_the_command_prints_the_version_that_was_built(wheel_environment: WheelEnvironment) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert version in wheel_environment.run(wheel_environment.python.with_name("taiwa"), "--version")
