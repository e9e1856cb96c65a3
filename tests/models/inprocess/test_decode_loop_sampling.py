import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.constraints.guide import count_allowed, empty_mask, fill_mask, mask_address, mask_tokens
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.messages import Sampling
from taiwa.models.inprocess.decode_loop import MAX_GATHERED, Sampler, log_probability

SIZES = st.sampled_from([1, 31, 32, 33, 100, 5_000])


def masked(size: int, tokens: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.uint32]]":
    mask = empty_mask(size)
    fill_mask(mask, tokens)
    return mask


@st.composite
def steps(draw: st.DrawFn) -> tuple[np.ndarray, list[int]]:
    size = draw(SIZES)
    seed = draw(st.integers(0, 1_000))
    density = draw(st.sampled_from([0.001, 0.1, 0.9, 1.0]))
    random = np.random.default_rng(seed)
    allowed = np.flatnonzero(random.random(size) < density).tolist() or [int(random.integers(size))]
    return random.normal(size=size).astype(np.float32) * 5, allowed


@given(steps())
def test_a_mask_says_what_was_filled_in(step: tuple[np.ndarray, list[int]]) -> None:
    logits, allowed = step
    mask = masked(len(logits), allowed)

    found = mask_tokens(mask, len(logits))

    assert found is not None
    assert found.tolist() == allowed
    assert count_allowed(mask) == len(allowed)
    assert mask_tokens(mask, len(allowed) - 1) is None


@given(steps())
def test_the_likeliest_allowed_token_is_taken(step: tuple[np.ndarray, list[int]]) -> None:
    logits, allowed = step

    picked = Sampler().pick(logits, masked(len(logits), allowed))

    assert picked == max(allowed, key=lambda token: (logits[token], -token))


@given(steps(), st.integers(0, 5), st.sampled_from([0.1, 1.0, 3.0]), st.sampled_from([0.3, 0.9, 1.0]))
def test_only_allowed_tokens_are_drawn_and_a_seed_draws_them_again(
    step: tuple[np.ndarray, list[int]], seed: int, temperature: float, top_p: float
) -> None:
    logits, allowed = step
    before = logits.copy()
    mask = masked(len(logits), allowed)
    sampling = Sampling(temperature=temperature, top_p=top_p, seed=seed)
    one, other = Sampler(sampling), Sampler(sampling)

    drawn = [one.pick(logits, mask) for _ in range(5)]

    assert set(drawn) <= set(allowed)
    assert [other.pick(logits, mask) for _ in range(5)] == drawn
    assert (logits == before).all()


@given(steps(), st.integers(0, 3))
def test_the_scores_of_the_allowed_tokens_alone_give_the_same_draw(
    step: tuple[np.ndarray, list[int]], seed: int
) -> None:
    logits, allowed = step
    sampling = Sampling(temperature=0.7, seed=seed)
    tokens = np.array(allowed)

    alone = Sampler(sampling).choose(logits[tokens], tokens)

    assert Sampler(sampling).pick(logits, masked(len(logits), allowed)) == alone


@pytest.mark.parametrize("size", [8, MAX_GATHERED * 4])
def test_tokens_are_drawn_by_their_share(size: int) -> None:
    logits = np.full(size, -50, dtype=np.float32)
    shares = {1: 0.6, 3: 0.3, 4: 0.1}
    for token, share in shares.items():
        logits[token] = math.log(share)
    logits[2] = 9
    sampler = Sampler(Sampling(temperature=1.0, seed=7))
    mask = masked(size, [token for token in range(size) if token != 2])

    drawn = [sampler.pick(logits, mask) for _ in range(4_000)]

    assert {token: round(drawn.count(token) / len(drawn), 1) for token in sorted(set(drawn))} == shares


def test_top_p_keeps_the_fewest_tokens_that_reach_it() -> None:
    logits = np.log(np.array([0.1, 0.5, 0.3, 0.1], dtype=np.float32))
    sampler = Sampler(Sampling(temperature=1.0, top_p=0.7, seed=1))

    assert {sampler.pick(logits) for _ in range(500)} == {1, 2}
    assert {Sampler(Sampling(temperature=1.0, top_p=0.5, seed=1)).pick(logits) for _ in range(50)} == {1}


def test_without_a_temperature_unlikely_tokens_are_not_drawn() -> None:
    logits = np.log(np.array([0.5, 0.45, 0.05], dtype=np.float32))
    default, own = Sampler(Sampling(None, seed=1)), Sampler(Sampling(1.0, seed=1))

    assert {default.pick(logits) for _ in range(500)} == {0, 1}
    assert {own.pick(logits) for _ in range(500)} == {0, 1, 2}


@pytest.mark.parametrize("top_p", [0.1, 0.5, 0.99])
def test_top_p_of_many_tokens_is_the_same_as_of_all_sorted(top_p: float) -> None:
    logits = np.random.default_rng(0).normal(size=20_000).astype(np.float32)
    weights = np.exp(logits.astype(np.float64))
    order = np.argsort(-weights, kind="stable")
    kept = order[: int(np.searchsorted(np.cumsum(weights[order]), top_p * weights.sum())) + 1]
    sampler = Sampler(Sampling(temperature=1.0, top_p=top_p, seed=3))

    assert {sampler.pick(logits) for _ in range(200)} <= set(kept.tolist())


def test_what_no_token_is_left_for_is_a_dead_end() -> None:
    logits = np.zeros(40, dtype=np.float32)

    with pytest.raises(NoValidTokenError, match="allows no token"):
        Sampler().pick(logits, empty_mask(40))
    with pytest.raises(NoValidTokenError, match="gives probability 0 to every token"):
        Sampler().pick(np.where(np.arange(40) == 3, -np.inf, 0).astype(np.float32), masked(40, [3]))


@pytest.mark.parametrize(
    "sampling", [Sampling(temperature=-1), Sampling(temperature=math.inf), Sampling(top_p=0.0), Sampling(top_p=2.0)]
)
def test_a_sampling_that_means_nothing_is_refused(sampling: Sampling) -> None:
    with pytest.raises(InputError):
        Sampler(sampling)


def test_a_logit_that_is_no_number_is_told() -> None:
    with pytest.raises(InputError, match="logit is NaN"):
        Sampler().pick(np.array([0, math.nan], dtype=np.float32))


def test_a_mask_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match="do not match"):
        Sampler().pick(np.zeros(40, dtype=np.float32), empty_mask(100))
    for wrong in (np.zeros(4, dtype=np.uint8), np.zeros((1, 4), dtype=np.uint32), np.zeros(8, dtype=np.uint32)[::2]):
        with pytest.raises(InputError, match="32-bit words"):
            mask_address(wrong, 4)


def test_a_log_probability_is_the_logarithm_of_the_share() -> None:
    scores = np.log(np.array([0.2, 0.8], dtype=np.float32))

    assert log_probability(scores, 1) == pytest.approx(math.log(0.8), abs=1e-6)
