"""The network in onnxruntime against the one in numpy: with 32 bits the same, with 8 bits near enough."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.values import fold
from taiwa.models.builtin.loading import Loaded
from taiwa.models.builtin.model import BuiltinModel
from taiwa.models.builtin.network import Network
from taiwa.models.builtin.onnx.graph import BLOCK, Precision, eight_bits
from taiwa.models.builtin.track import CHUNK
from taiwa.models.builtin.weights import Config
from tests.models.builtin.making import SMALL, tokens, vocabulary, weights
from tests.models.builtin.test_model import QUESTION, solving

pytest.importorskip("onnxruntime", reason="needs the extra onnx")

from taiwa.models.builtin.onnx.network import OnnxNetwork

PRECISIONS: Sequence[Precision] = ("float32", "int8")
NUMPY = Network(weights(), vocabulary())
ONNX = {precision: OnnxNetwork(weights(), vocabulary(), precision) for precision in PRECISIONS}
WIDE = Config(96, 2, 4, 160, 200, 300, 10_000.0, 1e-6)
TOKEN = st.integers(0, SMALL.vocab - 1)
LEAST_SAME = 0.9
"""Of the likeliest tokens of a network of chance numbers, whose logits lie closer to each other than those of a trained one."""
FURTHEST = 0.3
"""By how many times the spread of the logits one of them may be off."""


@settings(max_examples=10)
@given(
    st.sampled_from(
        [
            Config(4, 1, 1, 3, 5, 50, 10_000.0, 1e-6),
            Config(12, 3, 2, 5, 33, 50, 500.0, 1e-3),
            Config(24, 2, 6, 40, 70, 50, 10_000.0, 1e-6),
        ]
    ),
    st.integers(0, 9),
    st.data(),
)
def test_reckons_with_32_bits_what_numpy_does(config: Config, seed: int, data: st.DataObject) -> None:
    model, known = weights(config, seed), vocabulary(config.vocab)
    text = data.draw(st.lists(st.integers(0, config.vocab - 1), min_size=1, max_size=20))

    found = OnnxNetwork(model, known, "float32").start().read(text)

    assert found.dtype == np.float32
    assert np.allclose(found, Network(model, known).start().read(text), rtol=1e-3, atol=1e-3)


def test_reckons_with_8_bits_nearly_the_same() -> None:
    model, known = weights(WIDE, 1), vocabulary(WIDE.vocab)
    exact, near = Network(model, known).start(), OnnxNetwork(model, known).start()
    text = [number * 37 % WIDE.vocab for number in range(200)]

    pairs = [(exact.read([token]), near.read([token])) for token in text]

    same = sum(one.argmax() == other.argmax() for one, other in pairs)
    assert same >= LEAST_SAME * len(text)
    assert max(np.abs(one - other).max() / one.std() for one, other in pairs) < FURTHEST


@pytest.mark.parametrize("precision", PRECISIONS)
@settings(max_examples=20)
@given(data=st.data())
def test_it_makes_no_difference_how_a_text_was_read(precision: Precision, data: st.DataObject) -> None:
    network = ONNX[precision]
    track, text = network.start(), list[int]()
    for _ in range(data.draw(st.integers(1, 6))):
        step = data.draw(st.sampled_from(["read", "back", "fork"]))
        if step == "back":
            count = data.draw(st.integers(0, len(text)))
            track.rollback(count)
            text = text[: len(text) - count]
        elif step == "fork":
            other, track = track, track.fork()
            other.read(data.draw(st.lists(TOKEN, min_size=1, max_size=3)))
        else:
            more = data.draw(st.lists(TOKEN, min_size=1, max_size=90))
            track.read(more)
            text += more
    text.append(1)
    assert np.allclose(
        track.read([1]), network.start().read(text), rtol=1e-2, atol=0.2 if precision == "int8" else 1e-3
    )
    assert track.tokens == text


def test_a_text_longer_than_one_reading_is_read_in_parts() -> None:
    text = [number * 7 % SMALL.vocab for number in range(2 * CHUNK + 3)]
    found, exact = (network.start().read(text) for network in (ONNX["float32"], NUMPY))
    assert np.allclose(found, exact, rtol=1e-3, atol=1e-3)


@given(st.lists(TOKEN, min_size=1, max_size=SMALL.vocab, unique=True))
def test_rows_are_those_of_the_whole_head(rows: list[int]) -> None:
    whole, wanted = ONNX["int8"].start().read([3, 1, 2]), np.array(rows, dtype=np.intp)
    assert (ONNX["int8"].start().read([3, 1, 2], wanted) == whole[wanted]).all()


@given(st.integers(1, 5), st.integers(1, 3 * BLOCK), st.floats(1e-6, 1e4), st.integers(0, 99))
def test_eight_bits_are_off_by_half_a_step_at_most(rows: int, columns: int, size: float, seed: int) -> None:
    matrix = (np.random.default_rng(seed).normal(size=(rows, columns)) * size).astype(np.float32)
    numbers, scales = eight_bits(matrix)
    again = ((numbers.astype(np.float32) - 128) * scales[..., None]).reshape(rows, -1)
    assert (again[:, columns:] == 0).all()
    steps = np.repeat(scales, BLOCK, 1)[:, :columns]
    assert (np.abs(again[:, :columns] - matrix) <= 0.501 * steps).all()


def test_eight_bits_of_nothing_are_nothing() -> None:
    numbers, scales = eight_bits(np.zeros((2, BLOCK), np.float32))
    assert (numbers == 128).all()
    assert np.isfinite(scales).all()


def test_refuses_more_than_it_can_read_and_the_vocabulary_of_another() -> None:
    track = ONNX["int8"].start()
    track.read([1] * (SMALL.context - 1))
    with pytest.raises(InputError, match="601 tokens"):
        track.read([1, 2])
    assert track.read([1]).shape == (SMALL.vocab,)
    with pytest.raises(ConfigError, match="40 tokens, and its vocabulary 41"):
        OnnxNetwork(weights(), vocabulary(41))


class Small(BuiltinModel):
    """The model of `?runtime=onnx` with chance numbers."""

    def load(self) -> Loaded:
        made = tokens()
        config = replace(SMALL, vocab=len(made))
        return Loaded(OnnxNetwork(weights(config, 3), made.vocabulary, self.way.precision), made)


def test_answers_as_the_network_in_numpy_does() -> None:
    class Plain(Small):
        def load(self) -> Loaded:
            made = tokens()
            return Loaded(Network(weights(replace(SMALL, vocab=len(made)), 3), made.vocabulary), made)

    request = solving(QUESTION, "calculator")
    request = replace(request, sampling=replace(request.sampling, temperature=None))
    model = Small("builtin?runtime=onnx&precision=float32")
    assert fold(model.stream(request)).text == fold(Plain().stream(request)).text != ""
    assert model.scribe().loaded.network.start().bundle(2) is None


def test_without_the_extra_it_says_which_one_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match=r"^runtime=onnx needs an extra: pip install 'taiwa\[onnx\]'$"):
        OnnxNetwork(weights(), vocabulary())
