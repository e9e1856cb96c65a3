"""The network against the same model reckoned number by number, in whatever order it is asked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taiwa.kernel.errors import ConfigError, InputError
from taiwa.models.builtin.network import CHUNK, CachedSequence, Config, Network
from tests.models.builtin.small_model import SMALL, slowly, vocabulary, weights

NETWORK = Network(weights(), vocabulary())
SIZES = st.sampled_from(
    [
        Config(4, 1, 1, 3, 5, 50, 10_000.0, 1e-6),
        Config(12, 3, 2, 5, 33, 50, 500.0, 1e-3),
        Config(24, 2, 6, 40, 70, 50, 10_000.0, 1e-6),
    ]
)
TOKEN = st.integers(0, SMALL.vocab - 1)


def anew(tokens: list[int]) -> np.ndarray:
    return NETWORK.start().read(tokens)


@settings(max_examples=15)
@given(SIZES, st.integers(0, 9), st.data())
def test_reckons_what_the_format_says(config: Config, seed: int, data: st.DataObject) -> None:
    model = weights(config, seed)
    tokens = data.draw(st.lists(st.integers(0, config.vocab - 1), min_size=1, max_size=8))

    found = Network(model, vocabulary(config.vocab)).start().read(tokens)

    assert found.dtype == np.float32
    assert np.allclose(found, slowly(model, tokens), rtol=1e-3, atol=1e-3)


@settings(max_examples=40)
@given(st.data())
def test_it_makes_no_difference_how_a_text_was_read(data: st.DataObject) -> None:
    track, text = NETWORK.start(), list[int]()
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
            more = data.draw(st.lists(TOKEN, min_size=1, max_size=200))
            track.read(more)
            text += more
    text.append(1)
    assert np.allclose(track.read([1]), anew(text), rtol=1e-3, atol=1e-3)
    assert track.tokens == text


def test_a_text_longer_than_one_reading_is_read_in_parts() -> None:
    tokens = [number * 7 % SMALL.vocab for number in range(2 * CHUNK + 3)]
    track = NETWORK.start()
    steps = [track.read([token]) for token in tokens]
    assert np.allclose(anew(tokens), steps[-1], rtol=1e-3, atol=1e-3)


@given(st.lists(TOKEN, min_size=1, max_size=SMALL.vocab, unique=True))
def test_rows_are_those_of_the_whole_head(rows: list[int]) -> None:
    whole, wanted = anew([3, 1, 2]), np.array(rows, dtype=np.intp)
    assert np.allclose(NETWORK.start().read([3, 1, 2], wanted), whole[wanted], rtol=1e-5, atol=1e-5)


def test_a_head_in_several_pieces_gives_all_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taiwa.models.builtin.network.PIECE", 100)
    pieces = Network(weights(), vocabulary())
    assert len(pieces.pieces) > 2
    assert np.allclose(pieces.start().read([5, 6]), anew([5, 6]), rtol=1e-5, atol=1e-5)


def test_stays_right_where_gates_are_far_from_nought() -> None:
    model = weights()
    for at in range(SMALL.layers):
        model.tensors[f"{at}.up"][:] *= 300
    with np.errstate(all="raise", under="ignore"):
        found = Network(model, vocabulary()).start().read([1, 2, 3])
    assert np.isfinite(found).all()


def test_refuses_more_than_it_can_read() -> None:
    track = NETWORK.start()
    track.read([1] * (SMALL.context - 1))
    with pytest.raises(InputError, match="601 tokens"):
        track.read([1, 2])
    track.read([1])


def test_refuses_the_vocabulary_of_another_model() -> None:
    with pytest.raises(ConfigError, match="40 tokens, and its vocabulary 41"):
        Network(weights(), vocabulary(41))


def test_is_a_track_of_the_decode_loop() -> None:
    assert isinstance(NETWORK.start(), CachedSequence)
    assert NETWORK.start().batch(2) is None


@settings(max_examples=20)
@given(st.lists(TOKEN, min_size=1, max_size=9), st.lists(TOKEN, min_size=1, max_size=CHUNK + 20))
def test_the_probabilities_of_a_text_are_those_of_its_tokens_one_by_one(known: list[int], text: list[int]) -> None:
    found = NETWORK.log_probabilities(known, text)

    sequence, expected = NETWORK.start(), []
    logits = sequence.read(known).astype(np.float64)
    for token in text:
        expected.append(logits[token] - np.log(np.exp(logits).sum()))
        logits = sequence.read([token]).astype(np.float64)
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-3)
