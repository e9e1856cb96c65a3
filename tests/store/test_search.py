"""What was said is found again, in any language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.conversation.history import Node
from taiwa.kernel.errors import InputError
from taiwa.store import Excerpt, Store
from taiwa.store.search import BATCH, PIECE, excerpt, fold
from tests.store.turns import APP, begin, root, turn

SAID = {
    "kyoto": "京都の寺を三つ教えてください。",
    "cat": "吾輩は猫である",
    "half": "ｶﾞｲﾄﾞﾌﾞｯｸとＷｉＦｉ",
    "beijing": "我想去北京看长城",
    "english": "The quick brown Fox doesn't jump; naïve C++ über-foxes do.",
    "korean": "한국어를 배우고 싶어요",
    "thai": "ฉันชอบกินข้าวผัด",
    "long": "x" * 100 + " end",
}


@pytest.fixture
def filled(store: Store) -> Store:
    tip = begin(store, "main")
    for name, text in SAID.items():
        begin(store, f"s-{name}", text)
    assert tip
    return store


def found(store: Store, text: str) -> set[str]:
    return {ref.removeprefix("s-") for hit in store.search(text) for ref in hit.refs}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("京都", "kyoto"),
        ("寺", "kyoto"),
        ("猫", "cat"),
        ("である", "cat"),
        ("る", "cat"),
        ("ガイドブック", "half"),
        ("ｶﾞｲﾄﾞ", "half"),
        ("wifi", "half"),
        ("北京", "beijing"),
        ("长城", "beijing"),
        ("fox", "english"),
        ("FOX quick", "english"),
        ("quick 　 fox", "english"),
        ("doesn't", "english"),
        ("c++", "english"),
        ("++", "english"),
        ("ÜBER", "english"),
        ("naïve", "english"),
        ("한국", "korean"),
        ("ข้าว", "thai"),
        ("x" * 100, "long"),
        ("x" * 50, "long"),
    ],
)
def test_a_word_is_found_in_every_language(filled: Store, text: str, where: str) -> None:
    assert where in found(filled, text)


@pytest.mark.parametrize("text", ["京寺", "quick cat", "oxes", "東京", "fox 京都", "x" * 101])
def test_absent_words_are_not_found(filled: Store, text: str) -> None:
    assert found(filled, text) == set()


@pytest.mark.parametrize(
    "text", ['"', "'", "*", "fox*", "a OR b", "NEAR(a b)", "words:fox", "-fox", "(", "^fox", "fox AND", "{a}", "%", "_", "\\", "\0", "\ud800"]
)  # fmt: skip
def test_a_query_has_no_operators(filled: Store, text: str) -> None:
    for hit in filled.search(text):
        assert fold(text.split(maxsplit=1)[0]) in fold(filled.nodes.get(hit.hash).user or "")


@given(st.text(min_size=1))
def test_every_text_is_found_by_itself(text: str) -> None:
    with Store.open(":memory:") as store:
        tip = begin(store, "main")
        node = turn(tip, text.encode("utf-8", "ignore").decode("utf-8"), "")
        store.commit("main", [node], expected=tip)

        if not fold(text).split():
            with pytest.raises(InputError, match="give at least one"):
                store.search(text)
        elif text.isascii():
            assert [hit.hash for hit in store.search(text)] == [node.hash]
        else:
            store.search(text)


def test_hits_come_newest_first_up_to_the_limit(store: Store) -> None:
    tip = begin(store, "main", *(f"word {number}" for number in range(10)))

    hits = store.search("word", limit=3)

    assert [hit.hash for hit in hits] == [name for name, _ in store.nodes.path(tip)][:3]


def test_a_damaged_turn_hides_no_other_one(store: Store) -> None:
    begin(store, "main", "river one", "river two", "river three")
    store._db.run("UPDATE node SET body = ? WHERE seq = (SELECT max(seq) - 1 FROM node)", b"garbage")

    assert len(store.search("river")) == 2


@pytest.mark.parametrize(("text", "limit"), [("", 1), (" \u3000\n", 1), ("word", 0)])
def test_an_empty_query_is_refused(store: Store, text: str, limit: int) -> None:
    with pytest.raises(InputError, match=r"at least (1|one)"):
        store.search(text, limit)


def test_a_hit_names_every_session_it_belongs_to(store: Store) -> None:
    begin(store, "main", "shared 思い出", "later")
    store.refs.create("fork", store.resolve("main~1"))
    store.undo("main", 2)
    begin(store, "other", "unrelated")

    (hit,) = store.search("思い出")

    assert hit.refs == ("fork",)
    assert hit.kind == "turn"
    assert [(each.refs, each.left) for each in store.search("later")] == [((), ("main",))]
    store.redo("main")
    assert store.search("思い出")[0].refs == ("main", "fork")


def test_a_turn_after_a_search_is_found_by_the_next_search(store: Store) -> None:
    tip = begin(store, "main", "first")
    assert store.search("second") == ()

    store.commit("main", [Node(tip, "summary", APP.hash, answer="a second summary")], expected=tip)

    assert store.search("second")[0].kind == "summary"


def test_a_read_only_store_is_searched(place: str) -> None:
    with Store.open(place) as store:
        begin(store, "main", "early words")
        begin(store, "main2", "late words")

    with Store.open(place, readonly=True) as store:
        assert found(store, "words") == {"main", "main2"}


def test_turns_beyond_those_that_are_read_at_once_are_found(store: Store) -> None:
    begin(store, "main", "needle", *("hay" for _ in range(2 * BATCH)))

    assert found(store, "needle") == {"main"}


def test_an_excerpt_shows_where_it_was_found(store: Store) -> None:
    begin(store, "main", "前置き\n" * 40 + "ここに ﾃﾞｰﾀ がある。" + "後書き" * 40)

    (hit,) = store.search("データ")

    start, end = hit.excerpt.marks[0]
    assert hit.excerpt.text[start:end] == "ﾃﾞｰﾀ"
    assert hit.excerpt.text.startswith("…")
    assert hit.excerpt.text.endswith("…")
    assert "\n" not in hit.excerpt.text
    assert len(hit.excerpt.text) <= 82


@pytest.mark.parametrize("before", [0, 1, PIECE - 3, PIECE - 1, PIECE, 3 * PIECE])
def test_an_excerpt_is_found_across_the_pieces_of_a_long_text(before: int) -> None:
    cut = excerpt("a" * before + "Straße" + "b" * 100, ["strasse"])

    ((start, end),) = cut.marks
    assert cut.text[start:end] == "Straße"


def test_a_text_without_the_words_is_shown_from_its_beginning() -> None:
    assert excerpt("short", ["x"]) == Excerpt("short", ())
    assert excerpt("l" * 100, []).text == "l" * 80 + "…"


@given(st.text(max_size=60), st.text(min_size=1, max_size=8), st.text(max_size=60))
def test_marks_lie_within_the_excerpt_and_cover_the_terms(before: str, word: str, after: str) -> None:
    terms = fold(word).split()

    cut = excerpt(before + word + after, terms, width=20)

    for start, end in cut.marks:
        assert 0 <= start < end <= len(cut.text)
        # A mark covers whole characters, so it may hold a little more than was looked for ("ß" for "s").
        assert any(term[0] in fold(cut.text[start:end]) for term in terms)


def test_a_root_has_no_searchable_text(store: Store) -> None:
    store.commit("main", [root()], expected=None, apps=[APP])

    assert store.search("chat") == ()
