"""Passages by meaning: vectors are kept, closed and deleted like their passages, and fused only where that was shown to help."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taiwa.kernel.errors import InputError, ModelError
from taiwa.kernel.messages import Passage, user
from taiwa.retrieval import Index, Library, ScopedRetriever
from taiwa.retrieval.document_access import SIDECAR
from taiwa.retrieval.hybrid import HybridIndex
from taiwa.retrieval.index import reciprocal_ranks

TOPICS = {"leave": ("holiday", "vacation"), "pay": ("salary", "wage"), "trip": ("train", "journey")}


class Topics:
    """Knows which words mean the same; vectors are topics."""

    name = "topics-1"

    def embed(self, texts: Sequence[str]) -> Any:
        rows = np.array([[float(any(word in text for word in words)) for words in TOPICS.values()] for text in texts])
        rows = rows + 0.01
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def fused(index: Index, folder: Path) -> HybridIndex:
    (folder / "a.md").write_text("ten days of vacation")
    (folder / "b.md").write_text("the wage is paid in May")
    (folder / "c.md").write_text("journey by rail")
    (folder / "d.md").write_text("secret wage of the chief")
    (folder / SIDECAR).write_text("d.md: [group:hr]")
    index.refresh()
    return HybridIndex(index, Topics())


def sources(found: Sequence[Passage]) -> list[str]:
    return [passage.source for passage in found]


def test_what_means_the_same_is_found_though_no_word_is_shared(fused: HybridIndex) -> None:
    assert fused.make_vectors() == 4

    assert fused.by_words("holiday") == ()
    assert sources(fused.find("holiday", 1)) == ["a.md"]
    assert sources(fused.find("how much?", 1, history=[user("my salary")])) == ["b.md"]


def test_vectors_are_made_once_and_again_for_what_changed(fused: HybridIndex, folder: Path) -> None:
    fused.make_vectors()
    assert fused.make_vectors() == 0
    (folder / "a.md").write_text("ten days of salary")
    (folder / "c.md").unlink()
    fused.refresh()

    assert fused.make_vectors() == 1
    near = fused.backend.nearest("topics-1", fused.embedder.embed(["salary"])[0], 9, frozenset())
    assert sorted(sources(near)) == ["a.md", "b.md"]


def test_what_may_not_be_seen_is_not_near_either(fused: HybridIndex) -> None:
    fused.make_vectors()

    assert "d.md" not in sources(fused.find("salary", 9))
    assert "d.md" in sources(fused.find("salary", 9, ["group:hr"]))


def test_a_vector_in_bytes_is_near_to_what_it_was(fused: HybridIndex) -> None:
    chance = np.random.default_rng(1)
    names = [passage.id for passage in fused.backend.without_vectors("random", 9)]
    rows = chance.normal(size=(len(names), 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    fused.backend.put_vectors("random", [*zip(names, rows, strict=True), ("9-000000000000-9", rows[0])])

    for name, row in zip(names, rows, strict=True):
        near = fused.backend.nearest("random", row, 1, frozenset({"group:hr"}))
        assert near[0].id == name
        assert near[0].score == pytest.approx(1.0, abs=0.01)
    with pytest.raises(InputError, match="have 384 numbers, not 3"):
        fused.backend.nearest("random", rows[0][:3], 1, frozenset())


class Failing(Topics):
    """Fails as often as it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked += 1
        raise ModelError("it is out of order")


def test_an_embedder_that_fails_leaves_the_words_and_is_let_alone_for_a_while(fused: HybridIndex) -> None:
    fused.make_vectors()
    now = [100.0]
    broken = Failing()
    always = HybridIndex(fused, broken, clock=lambda: now[0])

    assert always.find("wage") == fused.by_words("wage")
    assert always.trouble == "docs: found by words alone, as its embedder fails: it is out of order"
    assert ScopedRetriever([always]).find("wage") == always.find("wage")
    assert ScopedRetriever([always]).troubles == (always.trouble,)
    assert broken.asked == 1
    now[0] += 31
    always.embedder = Topics()
    assert sources(always.find("holiday", 1)) == ["a.md"]
    assert always.trouble == ""


def test_vectors_that_were_made_before_a_failure_are_kept(fused: HybridIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taiwa.retrieval.hybrid.BATCH", 3)
    told: list[int] = []

    class Once(Failing):
        def embed(self, texts: Sequence[str]) -> Any:
            return super().embed(texts) if told else Topics().embed(texts)

    with pytest.raises(ModelError):
        HybridIndex(fused, Once()).make_vectors(told.append)

    assert told == [3]
    assert fused.make_vectors() == 1


def test_indexes_with_and_without_vectors_are_asked_together(
    fused: HybridIndex, library: Library, tmp_path: Path
) -> None:
    fused.make_vectors()
    other = tmp_path / "other"
    other.mkdir()
    (other / "e.md").write_text("holiday holiday holiday")
    (other / "f.md").write_text("a holiday of the chief, and many other things that nobody asks for")
    plain = library.create(other, "plain")
    plain.refresh()
    within = ScopedRetriever([HybridIndex(fused, Topics()), plain], history=[user("hello")])

    found = within.find("holiday", 9)

    assert sources(found)[:2] == ["plain/e.md", "plain/f.md"]
    assert "docs/a.md" in sources(found)
    assert len({passage.id for passage in found}) == len(found)
    assert within.find("holiday", 0) == ()
    assert sources(within.find("holiday", 1)) == ["plain/e.md"]
    assert within.troubles == ()


def test_ranks_are_fused_by_rank_alone() -> None:
    a, b, c = (Passage(name, name, score, id=name) for name, score in (("a", 9.0), ("b", 8.0), ("c", 0.1)))

    assert sources(reciprocal_ranks([[a, b], [c, b]], 9)) == ["b", "a", "c"]
    assert sources(reciprocal_ranks([[a], []], 9)) == ["a"]
    assert reciprocal_ranks([], 3) == ()
    assert sources(reciprocal_ranks([[a, b], [None, b]], 9)) == ["b", "a"]
