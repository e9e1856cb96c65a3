"""What every place that keeps indexes does, whatever it is made of."""

from dataclasses import replace
from hashlib import sha256
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taiwa.kernel.errors import ConflictError, InputError, StoreError
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.backend import IndexBackend
from taiwa.retrieval.types import (
    Audience,
    Batch,
    Chunk,
    Document,
    EmbedderChoice,
    FileFacts,
    may_see,
)
from tests.retrieval.conftest import Opens

NOBODY: frozenset[str] = frozenset()
HR = frozenset({"group:hr"})
numbers = count()


def document(path: str, *texts: str, audience: Audience = (), problem: str = "", title: str = "") -> Document:
    whole = "\n\n".join(texts)
    digest = "" if problem else sha256(whole.encode(errors="replace")).hexdigest()
    starts = [sum(len(text) + 2 for text in texts[:at]) for at in range(len(texts))]
    pieces = tuple(Chunk(text, start, ("Part",), 1) for text, start in zip(texts, starts, strict=True))
    return Document(path, title, FileFacts(digest, len(whole), 7, "test-1", audience, problem), pieces)


def put(shelf: IndexBackend, *documents: Document, gone: tuple[str, ...] = ()) -> None:
    shelf.commit(Batch(documents, gone=gone))


def found(shelf: IndexBackend, query: str, who: frozenset[str] = NOBODY, k: int = 10) -> list[str]:
    weights = dict.fromkeys(shelf.analyzer.asked(query), 1.0)
    return [passage.source for passage in shelf.search(weights, k, who)]


@pytest.fixture
def shelf(opens: Opens) -> IndexBackend:
    return opens().create("docs", "/documents", Analyzer())


def test_indexes_are_kept_by_name(opens: Opens) -> None:
    place = opens()
    place.create("b", "/b", Analyzer("german"))
    place.create("a", "", Analyzer())

    other = opens()

    assert other.names() == ("a", "b")
    assert (other.open("b").root, other.open("b").analyzer.language) == ("/b", "german")
    with pytest.raises(ConflictError, match="index 'a' already exists"):
        other.create("a", "/elsewhere", Analyzer())
    with pytest.raises(InputError, match="indexes: a, b"):
        other.open("c")


def test_a_passage_comes_back_with_its_place(shelf: IndexBackend) -> None:
    put(shelf, document("leave.md", "Ten days every year.", "Tell your lead.", title="Leave"))

    (passage,) = shelf.search({"lead": 1.0}, 5, NOBODY)

    assert (passage.source, passage.text, passage.title) == ("leave.md", "Tell your lead.", "Leave")
    assert (passage.start, passage.heading, passage.page) == (22, ("Part",), 1)
    assert passage.score > 0
    assert shelf.passage(passage.id, NOBODY) == replace(passage, score=0.0)


def test_better_passages_come_first_and_none_without_a_term(shelf: IndexBackend) -> None:
    put(
        shelf,
        document("a", "leave leave days"),
        document("b", "leave of absence and much else"),
        document("c", "other"),
    )

    assert found(shelf, "leave days") == ["a", "b"]
    assert found(shelf, "leave days", k=1) == ["a"]
    assert found(shelf, "nothing") == []
    assert found(shelf, "leave", k=0) == []
    assert shelf.search({}, 5, NOBODY) == ()


def test_a_heavier_term_counts_for_more(shelf: IndexBackend) -> None:
    put(shelf, document("a", "apples are here"), document("b", "pears are here"))

    first = shelf.search({"appl": 1.0, "pear": 0.2}, 2, NOBODY)
    second = shelf.search({"appl": 0.2, "pear": 1.0}, 2, NOBODY)

    assert [passage.source for passage in first] == ["a", "b"]
    assert [passage.source for passage in second] == ["b", "a"]


@pytest.mark.parametrize("query", ["休暇", "有給休暇の申請", "暇", "ｼﾝｾｲ", "请假"])
def test_text_without_spaces_is_found_by_any_part_of_it(shelf: IndexBackend, query: str) -> None:
    put(
        shelf,
        document("ja", "有給休暇はシンセイが必要です。"),
        document("zh", "员工请假须经主管批准。"),
        document("en", "leave"),
    )

    assert found(shelf, query)[0] == ("zh" if query == "请假" else "ja")


def test_a_title_and_headings_are_found_too(shelf: IndexBackend) -> None:
    put(shelf, document("a", "Ten days.", title="Vacation"), document("b", "Ten days."))

    assert found(shelf, "vacations") == ["a"]
    assert sorted(found(shelf, "part")) == ["a", "b"]


def test_what_changed_is_found_as_it_is_now_at_once(shelf: IndexBackend) -> None:
    put(shelf, document("a", "apples"), document("b", "apples"))
    assert sorted(found(shelf, "apples")) == ["a", "b"]

    put(shelf, document("a", "pears"))
    put(shelf, gone=("b", "never there"))

    assert found(shelf, "apples") == []
    assert found(shelf, "pears") == ["a"]
    assert [each.path for each in shelf.documents(None)] == ["a"]


def test_another_opening_sees_what_was_committed(opens: Opens, shelf: IndexBackend) -> None:
    other = opens().open("docs")
    put(shelf, document("a", "apples"))
    assert found(other, "apples") == ["a"]

    put(other, document("b", "apples"))

    assert sorted(found(shelf, "apples")) == ["a", "b"]


def test_a_batch_that_fails_changes_nothing(shelf: IndexBackend) -> None:
    put(shelf, document("a", "apples"))
    broken = document("c", "half \ud800")

    with pytest.raises(InputError):
        put(shelf, document("b", "apples"), broken, gone=("a",))

    assert found(shelf, "apples") == ["a"]
    assert set(shelf.known()) == {"a"}


def test_what_is_known_of_a_file_comes_back(shelf: IndexBackend) -> None:
    known = FileFacts("ab" * 32, 10, 2**62, "pdf-1", (("group:hr", "user:李"), ("x",)), "", 0, ("x",))
    put(shelf, Document("a", "", known), document("b", problem="broken"))

    held = shelf.known()

    assert held["a"] == replace(known, at_us=held["a"].at_us)
    assert held["b"].problem == "broken"
    assert held["a"].at_us > 0


def test_facts_of_a_file_are_changed_without_its_text(shelf: IndexBackend) -> None:
    put(shelf, document("a", "apples"))
    before = shelf.known()["a"]

    shelf.commit(Batch(touched=(("a", replace(before, modified_ns=8, audience=(("group:hr",),))),)))

    assert shelf.known()["a"].modified_ns == 8
    assert found(shelf, "apples") == []
    assert found(shelf, "apples", HR) == ["a"]


def test_nobody_finds_counts_or_opens_what_they_may_not_see(shelf: IndexBackend) -> None:
    put(
        shelf,
        document("open", "salary talk"),
        document("closed", "salary table 900", audience=(("group:hr", "user:ann"),)),
    )
    (secret,) = (each for each in shelf.search({"salari": 1.0}, 5, HR) if each.source == "closed")

    assert found(shelf, "salary") == ["open"]
    assert (
        sorted(found(shelf, "salary", HR))
        == sorted(found(shelf, "salary", frozenset({"user:ann"})))
        == ["closed", "open"]
    )
    assert shelf.passage(secret.id, NOBODY) is None
    assert shelf.counts(["salari", "900", "none"], NOBODY).holders == {"salari": 1, "900": 0, "none": 0}
    assert shelf.counts(["salari", "900"], HR).holders == {"salari": 2, "900": 1}
    assert (shelf.counts([], NOBODY).passages, shelf.counts([], HR).passages) == (1, 2)
    assert [each.path for each in shelf.documents(NOBODY)] == ["open"]
    assert (shelf.summary(NOBODY).passages, shelf.summary(None).passages) == (1, 2)


def test_what_may_be_seen_fills_the_places_of_what_may_not(shelf: IndexBackend) -> None:
    hidden = [document(f"hidden{n}", "apples apples apples", audience=(("x",),)) for n in range(30)]
    put(shelf, *hidden, *(document(f"open{n}", "some apples among other fruit") for n in range(5)))

    assert len(found(shelf, "apples", k=5)) == 5


def test_what_is_closed_is_closed_at_once_for_those_who_asked_before(opens: Opens, shelf: IndexBackend) -> None:
    put(shelf, document("a", "apples"), document("b", "apples"))
    other = opens().open("docs")
    assert len(found(other, "apples")) == 2

    put(shelf, document("a", "apples", audience=(("group:hr",),)))

    assert found(other, "apples") == ["b"]
    assert len(found(other, "apples", HR)) == 2


NAMES = st.sampled_from(["a", "b", "c"])
AUDIENCES = (
    st.lists(st.lists(NAMES, max_size=2, unique=True).map(sorted).map(tuple), max_size=2, unique=True)
    .map(sorted)
    .map(tuple)
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(AUDIENCES, min_size=1, max_size=8), st.frozensets(NAMES))
def test_whoever_asks_sees_exactly_what_their_names_let_them(
    opens: Opens, audiences: list[Audience], who: frozenset[str]
) -> None:
    shelf = opens().create(f"of{next(numbers)}", "", Analyzer())
    put(shelf, *(document(f"d{at}", "apples", audience=audience) for at, audience in enumerate(audiences)))

    visible = sorted(f"d{at}" for at, audience in enumerate(audiences) if may_see(audience, who))

    assert sorted(found(shelf, "apples", who)) == visible
    assert shelf.counts(["appl"], who).holders["appl"] == len(visible)
    assert [each.path for each in shelf.documents(who)] == visible


def test_an_id_names_one_version(shelf: IndexBackend) -> None:
    put(shelf, document("a", "apples"))
    (passage,) = shelf.search({"appl": 1.0}, 1, NOBODY)

    put(shelf, document("a", "apples and pears"))

    assert shelf.passage(passage.id, NOBODY) is None


@pytest.mark.parametrize(
    "name", ["", "1", "1-2-3", "x-0123456789ab-0", "1-0123456789ab-" + "9" * 40, "²-0123456789ab-0", "1-%-0"]
)
def test_no_text_is_an_id_by_accident(shelf: IndexBackend, name: str) -> None:
    put(shelf, document("a", "apples"))

    assert shelf.passage(name, NOBODY) is None


def test_a_document_is_read_in_its_order(shelf: IndexBackend) -> None:
    put(shelf, document("a", "one", "two", "three"), document("b", "four", audience=(("group:hr",),)))

    assert [passage.text for passage in shelf.passages("a")] == ["one", "two", "three"]
    assert [passage.text for passage in shelf.passages("b")] == ["four"]
    assert shelf.passages("c") == ()


def test_it_remembers_its_embedder(opens: Opens, shelf: IndexBackend) -> None:
    assert shelf.embedder_choice() is None
    first = EmbedderChoice("/models/a", "a-1", (0.25, -1.0))
    shelf.set_embedder(EmbedderChoice("/models/b", "b-1"))
    shelf.set_embedder(first)

    other = opens().open("docs")
    assert other.embedder_choice() == first
    shelf.set_embedder(None)
    assert other.embedder_choice() is None


def test_vectors_are_counted_and_those_of_other_models_deleted(opens: Opens, shelf: IndexBackend) -> None:
    np = pytest.importorskip("numpy")
    elsewhere = opens().create("more", "", Analyzer())
    for place in (shelf, elsewhere):
        put(place, document("a", "one", "two"))
        for model in ("m-1", "m-2"):
            row = np.array([1.0, 0.0], np.float32)
            place.put_vectors(model, [(passage.id, row) for passage in place.passages("a")])
    assert (shelf.vectors("m-1"), shelf.vectors("m-2"), shelf.vectors("m-3")) == (2, 2, 0)

    shelf.keep_vectors("m-2")

    assert (shelf.vectors("m-1"), shelf.vectors("m-2")) == (0, 2)
    assert elsewhere.vectors("m-1") == 2
    assert len(shelf.without_vectors("m-1", 9)) == 2
    put(shelf, gone=("a",))
    assert shelf.vectors("m-2") == 0


def test_one_indexes_at_a_time(opens: Opens, shelf: IndexBackend) -> None:
    other = opens().open("docs")
    with (
        shelf.write_lock(0.0),
        pytest.raises(ConflictError, match="another process is indexing"),
        other.write_lock(0.1),
    ):
        pass

    with other.write_lock(0.0):
        pass


def test_a_dropped_index_is_gone_with_all_it_held(opens: Opens) -> None:
    place = opens()
    shelf = place.create("docs", "", Analyzer())
    put(shelf, document("a", "apples"))
    assert found(shelf, "apples") == ["a"]

    place.drop("docs")

    assert place.names() == ()
    with pytest.raises(StoreError, match="deleted meanwhile"):
        found(shelf, "apples")
    again = place.create("docs", "", Analyzer())
    assert found(again, "apples") == []


def test_an_index_that_is_being_made_is_not_dropped(opens: Opens, shelf: IndexBackend) -> None:
    other = opens()

    with shelf.write_lock(0.0), pytest.raises(ConflictError):
        other.drop("docs")

    assert other.names() == ("docs",)
