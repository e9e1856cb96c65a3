from pathlib import Path

import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.models.builtin.model import BuiltinModel
from taiwa.models.builtin.ways import Way, way_of
from taiwa.models.names import resolve
from taiwa.models.opening import open_model
from taiwa.settings import Settings

SETTINGS = Settings(Path("store"), Path("config"))


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("builtin", Way()),
        ("builtin?runtime=numpy", Way()),
        ("builtin?runtime=onnx", Way("onnx", "int8")),
        ("builtin?precision=float32&runtime=onnx", Way("onnx", "float32")),
    ],
)
def test_a_name_says_how_it_reckons(name: str, way: Way) -> None:
    model = open_model(resolve(name), SETTINGS)
    assert isinstance(model, BuiltinModel)
    assert (model.name, model.way, model.abilities) == (name, way, BuiltinModel().abilities)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("builtin?runtime=torch", "runtime is one of numpy, onnx, not 'torch'"),
        ("builtin?runtime=onnx&precision=int4", "precision is one of int8, float32, not 'int4'"),
        ("builtin?runtim=onnx", "did you mean 'runtime'"),
        ("builtin?precision=int8", "say builtin.runtime=onnx&precision=int8"),
        ("builtin:onnx", "nothing follows its name but options: builtin.runtime=onnx"),
    ],
)
def test_what_cannot_be_is_refused(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        open_model(resolve(name), SETTINGS)


def test_the_usual_way_has_no_options() -> None:
    assert way_of("builtin") == Way("numpy")
