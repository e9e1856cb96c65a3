"""From samples to tokens: where weights fall, that every exchange is gone through once and whole, and that nothing forbidden enters."""

from collections import Counter
from itertools import islice
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.builtin.tokenizer import END, Tokens
from training.builtin import check
from training.builtin.corpus import DOMAINS, LONGEST, SCORED, WHOLE, Corpus, laid_out, samples
from training.builtin.overlap import Overlap
from training.builtin.samples import Sample, Span
from training.builtin.vocabulary import ANSWER, SPECIAL

TOKENS = Tokens(SPECIAL, ("Na", "Cl", " mol", " is", " the", " NaCl", "the", "ラテ", " g"))
SALT = Sample(
    "solve", "molar", "the NaCl", (Span("the <<molar_mass: NaCl>>"), Span(" 58.44", 0.2), Span("\nTherefore: 58.44 g."))
)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.draw(TOKENS, 3, 60)


def test_an_exchange_is_task_prompt_answer_and_end() -> None:
    ids, weights = laid_out(SALT, TOKENS)

    here = ids.index(TOKENS.special[ANSWER])
    assert (ids[0], ids[-1]) == (TOKENS.special["<solve>"], TOKENS.special[END])
    assert TOKENS.decode(ids[1:here]) == SALT.prompt
    assert TOKENS.decode(ids[here + 1 : -1]) == SALT.text
    assert len(ids) == len(weights)


def test_only_the_answer_counts_and_a_tool_s_result_little() -> None:
    ids, weights = laid_out(SALT, TOKENS)

    here = ids.index(TOKENS.special[ANSWER])
    assert set(weights[: here + 1]) == {0}
    by_weight = dict.fromkeys(weights[here + 1 : -1], "")
    for token, weight in zip(ids[here + 1 : -1], weights[here + 1 : -1], strict=True):
        by_weight[weight] += TOKENS.decode([token])
    assert by_weight == {WHOLE: SALT.answer[0].text + SALT.answer[2].text, round(WHOLE * 0.2): SALT.answer[1].text}
    assert weights[-1] == WHOLE


def test_a_score_is_asked_by_its_own_mark_and_its_end_does_not_count() -> None:
    ids, weights = laid_out(Sample("assess.clarity", "clarity", "the", (Span("3"),)), TOKENS)
    special = TOKENS.special
    assert [ids[0], *ids[-3:]] == [special["<assess>"], special["<clarity>"], ord("3"), special[END]]
    assert weights == [0, 0, 0, SCORED, 0]


@given(st.integers(0, 999))
def test_other_pieces_of_a_prompt_change_nothing_else(seed: int) -> None:
    ids, weights = laid_out(SALT, TOKENS, Random(seed))
    plain, plainly = laid_out(SALT, TOKENS)
    here, there = (each.index(TOKENS.special[ANSWER]) for each in (ids, plain))
    assert ids[here:] == plain[there:]
    assert weights[here:] == plainly[there:]
    assert TOKENS.decode(ids[1:here]) == SALT.prompt


def test_a_seed_draws_the_same_again_and_another_seed_does_not(corpus: Corpus) -> None:
    again, other = Corpus.draw(TOKENS, 3, 60), Corpus.draw(TOKENS, 4, 60)
    assert np.array_equal(corpus.ids, again.ids)
    assert not np.array_equal(corpus.ids[:500], other.ids[:500])


def test_every_exchange_is_gone_through_once_and_whole(corpus: Corpus) -> None:
    wanted = Counter(
        (tuple(corpus.ids[start:end]), tuple(corpus.weights[start:end]))
        for start, end in zip(corpus.starts, corpus.starts[1:], strict=False)
    )
    found: Counter[object] = Counter()
    for ids, weights in corpus.batches(1_024, 0):
        assert ids.shape == weights.shape
        assert ids.shape[0] == 1 or ids.size <= 1_024
        for row, counts in zip(ids, weights, strict=True):
            size = max(np.flatnonzero(row == TOKENS.special[END]), default=-1) + 1
            assert not row[size:].any()
            assert not counts[size:].any()
            found[tuple(row[:size]), tuple(np.rint(counts[:size] * WHOLE).astype(int))] += 1
    assert found == wanted
    assert sum(found.values()) == len(corpus) == 60


def test_another_seed_goes_through_in_another_order(corpus: Corpus) -> None:
    first, again, other = ([ids.shape for ids, _ in corpus.batches(1_024, seed)] for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_no_exchange_is_longer_than_the_longest(corpus: Corpus) -> None:
    assert max(np.diff(corpus.starts)) <= LONGEST


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_domain_alone_can_be_drawn(domain: str) -> None:
    drawn = list(islice(samples(5, domain), 3))
    assert {name for name, _ in drawn} == {domain}


def test_what_shares_a_run_with_a_forbidden_text_is_drawn_and_left_out() -> None:
    drawn = [sample for _, sample in islice(samples(3), 40)]
    kept = next(sample for sample in drawn if Overlap([sample.prompt]).shared(sample))
    forbidden = Overlap([f"It says: {kept.prompt}"])

    without = Corpus.draw(TOKENS, 3, 40, forbidden)

    assert without.dropped >= 1
    assert check.entered(TOKENS, forbidden, 40, seed=3) == ()
    assert check.entered(TOKENS, Overlap([]), 40, seed=3) == ()
    found = check.look(forbidden, 40, seed=3)
    assert found.shared.total() >= 1
    assert not found.passed
    assert any(f"{kept.task}: {kept.kind}" in line for line in found.told())


def test_a_text_that_did_enter_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = next(s for _, s in islice(samples(3), 40) if Overlap([s.prompt]).shared(s))
    forbidden = Overlap([kept.prompt])
    drawn = Corpus.draw(TOKENS, 3, 40)
    monkeypatch.setattr(check.Corpus, "draw", lambda *_: drawn)
    assert check.entered(TOKENS, forbidden, 40, seed=3)
