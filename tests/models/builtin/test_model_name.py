from pathlib import Path

import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.models.builtin.model import BuiltinModel
from taiwa.models.providers import open_model, resolve
from taiwa.settings import Settings

SETTINGS = Settings(Path("store"), Path("config"))


def test_its_name_opens_it() -> None:
    model = open_model(resolve("builtin"), SETTINGS)

    assert isinstance(model, BuiltinModel)
    assert model.name == "builtin"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "builtin?runtime=onnx",
            r"does not take options; use 'builtin' instead of 'builtin\?runtime=onnx'$",
        ),
        ("builtin?precision=int8", "does not take options"),
        ("builtin:onnx", "is called 'builtin', and nothing follows its name$"),
    ],
)
def test_an_option_or_a_part_behind_its_name_is_refused(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        open_model(resolve(name), SETTINGS)
