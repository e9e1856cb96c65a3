"""Fusion of rankings."""

from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.ask.dialogue import retrieve_fused
from taiwa.kernel.effects import Retrieve
from taiwa.kernel.messages import Passage, fuse_rankings
from taiwa.retrieval import InMemoryRetriever
from tests.flows.driving import Drive

NAMES = st.lists(st.sampled_from("abcdef"), unique=True).map(lambda names: tuple(Passage(n, n, 1.0) for n in names))


def test_each_query_is_looked_up_once_and_what_both_find_comes_first(drive: Drive) -> None:
    shelf = InMemoryRetriever((Passage("a", "leave nursing"), Passage("b", "leave paid"), Passage("c", "nursing")))

    done = drive(lambda: retrieve_fused(("leave", "nursing"), 2), retriever=shelf)

    assert done.value[0].source == "a"
    assert [entry.effect for entry in done.journal.entries] == [Retrieve("leave", 2), Retrieve("nursing", 2)]


@given(NAMES)
def test_a_single_ranking_stays_as_it_is(ranking: tuple[Passage, ...]) -> None:
    assert fuse_rankings((ranking, ()), 3) == ranking[:3]


@given(st.lists(NAMES, max_size=4), st.integers(0, 6))
def test_fusing_keeps_every_passage_once_best_first(rankings: list[tuple[Passage, ...]], k: int) -> None:
    fused = fuse_rankings(rankings, k)
    known = {passage.source for ranking in rankings for passage in ranking}

    assert len(fused) == min(k, len(known))
    assert len({passage.source for passage in fused}) == len(fused)
    assert [each.score for each in fused] == sorted((each.score for each in fused), reverse=True)


@given(NAMES, NAMES)
def test_a_bad_rewriting_cannot_push_the_originals_best_down_by_more_than_its_own_best(
    raw: tuple[Passage, ...], bad: tuple[Passage, ...]
) -> None:
    order = [each.source for each in fuse_rankings((bad, raw), 9)]
    both = {each.source for each in raw} | {each.source for each in bad[:1]}

    assert not raw or set(order[: order.index(raw[0].source)]) <= both
