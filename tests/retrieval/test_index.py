"""Indexes and libraries as a program uses them."""

import subprocess
import sys
from pathlib import Path

import pytest

from taiwa.kernel.effects import Program, Retrieve, perform
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Found, Message, Passage, user
from taiwa.kernel.runtime import Retriever, Runtime
from taiwa.retrieval import Evidence, Index, Library, ScopedRetriever
from taiwa.retrieval.document_access import SIDECAR
from tests.retrieval.measured import questions, told_apart


@pytest.fixture
def filled(index: Index, folder: Path) -> Index:
    (folder / "leave.md").write_text("# Leave\n\nTen days of holiday every year.\n\n# Sick leave\n\nTell your lead.")
    (folder / "gym.md").write_text("# Gym\n\nThe gym opens at seven. The fee is small.")
    (folder / "fees.md").write_text("# Fees\n\nThe fee of the car park is high.")
    (folder / "pay.md").write_text("salary table")
    (folder / SIDECAR).write_text("pay.md: [group:hr]")
    index.refresh()
    return index


def test_it_is_a_retriever(filled: Index, library: Library) -> None:
    assert isinstance(ScopedRetriever([filled]), Retriever)
    assert (
        ScopedRetriever([filled]).find("holidays", 1)
        == filled.find("holidays", 1)
        == library.scoped().find("holidays", 1)
    )


def test_what_was_said_before_decides_between_equals(filled: Index) -> None:
    assert filled.find("what is the fee?", 1, history=[user("I want to use the gym")])[0].source == "gym.md"
    assert filled.find("what is the fee?", 1, history=[user("where do I park my car?")])[0].source == "fees.md"


def test_several_indexes_are_found_together_and_named(library: Library, filled: Index, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.txt").write_text("holiday holiday")
    library.create(tmp_path / "more").refresh()

    found = library.scoped().find("holiday", 5)

    assert sorted(passage.source for passage in found) == ["docs/leave.md", "more/a.txt"]
    assert found[0].score >= found[1].score
    assert [each.source for each in library.scoped(["more"]).find("holiday")] == ["a.txt"]


def test_an_id_names_one_passage_of_all_indexes(library: Library, filled: Index, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.txt").write_text("holiday holiday")
    library.create(tmp_path / "more").refresh()

    found = library.scoped().find("holiday", 5)
    opened = [library.scoped().passage(passage.id) for passage in found]

    assert len({passage.id for passage in found}) == len(found)
    assert [each and each.text for each in opened] == [passage.text for passage in found]


def test_an_index_of_no_folder_is_not_brought_up_to_date_with_the_current_one(library: Library) -> None:
    with pytest.raises(InputError, match="has no folder"):
        library.create_empty("loose").refresh()


def test_a_library_in_memory_is_refused() -> None:
    with pytest.raises(InputError, match="a library must be a file"):
        Library.open(":memory:")


def test_evidence_is_high_where_the_answer_is_and_low_where_it_is_not(filled: Index) -> None:
    there, partly, nowhere = (filled.evidence(text) for text in ("sick leave", "sick parrots", "quantum gravity"))

    assert there.coverage == 1.0 > partly.coverage > nowhere.coverage == 0.0
    assert there.top > partly.top > nowhere.top == 0.0
    assert partly.unknown == ("parrot",)
    assert (nowhere.found, nowhere.unknown) == (0, ("quantum", "graviti"))
    assert all(0 <= each.nqc <= 1 for each in (there, partly, nowhere))


def test_pairs_across_the_words_of_a_japanese_question_are_not_missing(library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "leave.md").write_text("結婚休暇は五日です。", encoding="utf-8")
    index = library.create(folder)
    index.refresh()

    whole, asked, other = (
        index.evidence(text).coverage for text in ("結婚休暇", "結婚休暇はいつまでですか", "結婚指輪はいつまでですか")
    )

    assert whole == asked == 1.0 > other


def test_evidence_says_nothing_of_what_may_not_be_seen(filled: Index) -> None:
    nobody, hr = filled.evidence("salary"), filled.evidence("salary", ["group:hr"])

    assert nobody == Evidence(passages=hr.passages - 1, unknown=("salari",))
    assert hr.coverage == 1.0


def test_evidence_names_what_points_at_nothing(filled: Index) -> None:
    assert filled.evidence("how much is it?").unresolved_references == ("it",)
    assert filled.evidence("how much is it?", history=[user("the gym")]).unresolved_references == ()
    assert ScopedRetriever([filled], history=[user("the gym")]).find_with_evidence(
        "how much is it?"
    ).evidence == filled.evidence("how much is it?", history=[user("the gym")])
    assert ScopedRetriever([]).find_with_evidence("anything") == Found((), Evidence())


@pytest.mark.parametrize("name", ["", " ", "a/b", "a\nb", "x" * 101])
def test_a_name_is_one_line_without_slashes(library: Library, folder: Path, name: str) -> None:
    with pytest.raises(InputError):
        library.create_empty(name)


def test_a_folder_is_named_after_itself_and_known_again(library: Library, folder: Path) -> None:
    made = library.create(folder)

    again = library.find_by_folder(folder / ".." / folder.name)

    assert again is not None
    assert again.name == made.name == folder.name
    assert library.find_by_folder(folder.parent) is None
    with pytest.raises(InputError, match=r"folder .* not found"):
        library.create(folder / "nowhere")


def test_a_passage_is_opened_by_its_id_only_by_who_may(filled: Index) -> None:
    (passage,) = filled.find("salary", 1, ["group:hr"])

    assert filled.passage(passage.id) is None
    opened = filled.passage(passage.id, ["group:hr"])
    assert opened is not None
    assert opened.text == "salary table"


def test_searching_in_memory_loads_no_search_engine() -> None:
    script = (
        "import sys, taiwa.retrieval; print([name for name in ('tantivy', 'sqlite3', 'yaml') if name in sys.modules])"
    )

    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert said.stdout == "[]\n"


@pytest.mark.parametrize(("name", "least"), [("jsquad", 0.93), ("jaquad", 0.88)])
def test_japanese_questions_find_their_passages(shared_data: Path, tmp_path: Path, name: str, least: float) -> None:
    assert questions(shared_data / "rag", tmp_path, name) >= least


@pytest.mark.parametrize(("name", "least"), [("jsquad", 0.88), ("jaquad", 0.78)])
def test_coverage_tells_whether_the_answer_is_there(shared_data: Path, tmp_path: Path, name: str, least: float) -> None:
    assert told_apart(shared_data / "rag", tmp_path, name) >= least


def test_what_was_said_before_reaches_an_index_through_a_program(library: Library, filled: Index) -> None:
    def program(history: tuple[Message, ...]) -> Program[tuple[Passage, ...]]:
        return (yield from perform(Retrieve("what is the fee?", 1, history))).passages

    within = library.scoped([filled.name], principals={"user:ann"})
    said = (user("I want to use the gym"),)

    for runtime in (
        Runtime(retriever=within),
        Runtime(retriever=library.scoped([filled.name], history=[user("where do I park?")])),
    ):
        assert runtime.run(program(said)) == filled.find("what is the fee?", 1, history=said)
        assert runtime.run(program(said)) != runtime.run(program(()))
    kept = library.scoped([filled.name], history=said)
    assert Runtime(retriever=kept).run(program(())) == filled.find("what is the fee?", 1, history=said)
