"""Sessions of the flow `ask`: what they open, close and store, and how an interrupted turn resumes."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import taiwa
from hatch_build import compile_catalogues
from taiwa import i18n
from taiwa.apps.catalog import load_text
from taiwa.flows.ask.types import UserProfile
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.messages import Capability, Chunk, Notice, Request
from taiwa.kernel.serialization import Json
from taiwa.models.scripted import scripted_model
from taiwa.retrieval import Library
from taiwa.sessions.ask_resources import BUNDLED_HANDBOOK, NoModel
from taiwa.sessions.replay import replay_history
from taiwa.sessions.users import UserProfiles
from taiwa.store import Store

NONE: frozenset[Capability] = frozenset()
SCORES = json.dumps({"clarity": 1, "is_question": 1, "is_consultation": 5, "in_internal_docs": 1, "ask_person": 5})
ANSWER = "Everybody has 10 days of leave. [1]"
QUESTION = "how many days of leave does everybody have"


class Failing:
    """A model that answers once, and then takes the process with it."""

    name = "failing"
    capabilities = NONE

    def __init__(self) -> None:
        self.answered = 0

    def stream(self, request: Request) -> Iterator[Chunk]:
        if self.answered:
            raise KeyboardInterrupt
        self.answered += 1
        yield from scripted_model(SCORES, capabilities=NONE).stream(request)

    astream = scripted_model().astream


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "rules"
    made.mkdir()
    (made / "leave.md").write_text("# Leave\n\nEverybody has ten days of leave.\n")
    return made


@pytest.mark.parametrize("names", ["{0}", "[{0}, {0}/../empty]"])
def test_a_folder_without_documents_is_an_error_and_leaves_no_index(tmp_path: Path, names: str) -> None:
    empty, place = tmp_path / "empty", tmp_path / "store.db"
    empty.mkdir()
    app = f"---\ntaiwa: 1\nstate: {{ city: str }}\ndocuments: {{ in: {names.format(empty)} }}\n---\nHelp.\n"
    talk = taiwa.open(app=load_text(app, "a.md", "a"), model=NoModel(), store=place)

    with pytest.raises(InputError, match=r"empty holds no documents \(0 files read\)"):
        talk.say(QUESTION)

    with Library.open(tmp_path / "store-library.db") as library:
        assert library.names() == ()


def test_an_index_that_is_empty_already_has_nothing_to_find(tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    with Library.open(tmp_path / "store-library.db") as library:
        library.create_empty("uploads")
    talk = taiwa.open("ask", model=NoModel(), store=place, params={"in": ["uploads"]})

    assert "nothing about" in talk.say(QUESTION).text


def test_a_conversation_is_opened_and_looked_into_by_its_parameters(tmp_path: Path, folder: Path) -> None:
    store = Store.open(tmp_path / "store.db")
    talk = taiwa.open("ask", model=NoModel(), store=store, params={"in": [str(folder)]})

    said = talk.say(QUESTION)

    assert said.text.startswith("Everybody has ten days of leave. [1]")
    assert (tmp_path / "store-library.db").exists()
    assert talk.spent.requests == 0
    talk.undo()
    assert talk.conversation.count == 0


@pytest.mark.parametrize(("params", "calls"), [({}, 0), ({"assess_by": "documents"}, 1), ({"quote": True}, 1)])
def test_a_small_model_writes_no_answers_unless_it_is_told_to(
    tmp_path: Path, folder: Path, params: dict[str, Json], calls: int
) -> None:
    model = scripted_model("Everybody has ten days of leave. [1]", capabilities=frozenset({"small"}))
    talk = taiwa.open(
        "ask", model=model, store=Store.open(tmp_path / "store.db"), params={"in": [str(folder)], **params}
    )

    events = list(talk.stream(QUESTION))

    notes = [event.text for event in events if isinstance(event, Notice)]
    assert talk.turns[-1].answer.startswith("Everybody has ten days of leave.")  # type: ignore[union-attr]
    assert len(model.requests) == calls
    assert any("less than a billion parameters" in note for note in notes) == (calls == 0)


def test_little_evidence_is_stated_in_the_answer_and_recorded(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store.db")
    talk = taiwa.open("ask", model=NoModel(), store=store)

    little = talk.say("How do I breed penguins with many hats in a laboratory?")
    much = talk.say("How many days of annual leave do I have in Galway?")

    assert little.text.startswith("The documents may not cover this. The closest passages are:")
    assert [each.ask is not None and each.ask.is_uncertain for each in (little, much)] == [True, False]


def test_folders_of_one_name_are_told_apart_by_the_folder_that_they_are_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, text in (("one", "Cats sleep all day."), ("two", "Dogs bark at night.")):
        (tmp_path / place / "docs").mkdir(parents=True)
        (tmp_path / place / "docs" / "a.txt").write_text(text)

    monkeypatch.chdir(tmp_path / "one")
    talk = taiwa.open("ask", model=NoModel(), store=tmp_path / "store.db", params={"in": ["docs"]})
    cats = talk.say("What do cats do?")
    monkeypatch.chdir(tmp_path / "two")
    other = taiwa.open("ask", model=NoModel(), store=tmp_path / "store.db", params={"in": ["docs"]})

    assert cats.text.startswith("Cats sleep all day. [1]")
    assert other.say("What do dogs do?").text.startswith("Dogs bark at night. [1]")
    assert talk.say("What do cats do?").text.startswith("Cats sleep all day. [1]")


FOLDERS = {
    "en": {
        "pets": "# Pets\nCats are allowed without asking. Dogs need the written consent of the landlord.\n",
        "lease": "# Notice\nThe tenant may give notice with three months' notice to the end of a month.\n",
        "yard": "# Parking\nEach flat has one parking place in the yard.\n",
    },
    "ja": {
        "pets": "# ペット\n猫は許可なく飼えます。犬を飼うには大家の書面による同意が必要です。\n",
        "lease": "# 解約\n借主は三か月前に通知して解約することができます。\n",
        "yard": "# 駐車場\n各戸に一台分の場所があります。\n",
    },
    "zh": {
        "pets": "# 宠物\n可以养猫，不用询问。养狗需要房东的书面同意。\n",
        "lease": "# 解约\n租户可以提前三个月通知解约。\n",
        "yard": "# 停车\n每户有一个车位。\n",
    },
}


def said_of(language: str, question: str, tmp_path: Path) -> "tuple[str, bool]":
    """The text without a model, and whether it is an answer."""
    folder = tmp_path / language
    folder.mkdir()
    for name, text in FOLDERS[language].items():
        (folder / f"{name}.md").write_text(text, "utf-8")
    store = Store.open(tmp_path / "store.db")
    turn = taiwa.open("ask", model=NoModel(), store=store, params={"in": [str(folder)]}).say(question)
    assert turn.ask is not None
    return turn.text, turn.ask.is_answered


@pytest.mark.parametrize(
    ("language", "question", "answer"),
    [
        ("en", "Tell me about pets", "Cats are allowed without asking. Dogs need"),
        ("en", "pets", "Cats are allowed without asking. Dogs need"),
        ("en", "May I have a dog?", "Dogs need the written consent"),
        ("en", "What is the notice period?", "The tenant may give notice"),
        ("ja", "ペットについて", "猫は許可なく飼えます。"),
        ("ja", "犬を飼えますか", "猫は許可なく飼えます。犬を飼うには"),
        ("zh", "关于宠物", "可以养猫，不用询问。"),
        ("zh", "可以养狗吗", "可以养猫，不用询问。养狗需要"),
    ],
)
def test_a_small_folder_answers_what_a_heading_or_a_sentence_says(
    language: str, question: str, answer: str, tmp_path: Path
) -> None:
    text, is_answered = said_of(language, question, tmp_path)

    assert is_answered
    assert text.startswith(answer)


@pytest.mark.parametrize(
    ("language", "question", "refusal"),
    [
        ("en", "May I keep a snake?", "The documents do not say."),
        ("en", "May I paint the walls?", "The documents do not say."),
        ("en", "Is smoking allowed?", "The documents do not say."),
        ("ja", "蛇を飼ってもいいですか", "文書には書かれていません。"),
        ("ja", "喫煙は許可されていますか", "文書には書かれていません。"),
        ("zh", "可以养蛇吗", "文档中没有说明。"),
        ("zh", "可以粉刷墙壁吗", "文档中没有说明。"),
    ],
)
def test_words_that_fit_any_subject_do_not_make_an_answer(
    language: str, question: str, refusal: str, tmp_path: Path
) -> None:
    text, is_answered = said_of(language, question, tmp_path)

    assert not is_answered
    assert text == refusal


def test_a_small_folder_that_holds_little_of_the_question_is_uncertain(tmp_path: Path) -> None:
    text, is_answered = said_of("en", "Which parking fee do electric scooters pay?", tmp_path)

    assert not is_answered
    assert text.startswith(
        "The documents may not cover this. The closest passages are:\n\nEach flat has one parking place"
    )


def test_a_turn_that_was_cut_off_goes_on_without_judging_or_looking_again(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "store.db"
    talk = taiwa.open(
        "ask", model=Failing(), store=path, session="s", params={"in": [str(folder)], "assess_by": "typed"}
    )
    with pytest.raises(KeyboardInterrupt):
        talk.say(QUESTION)
    again = scripted_model(ANSWER, capabilities=NONE)

    later = taiwa.open("ask", model=again, store=path, session="s")
    resumed = later.stream_resume()

    assert [getattr(event, "text", "") for event in resumed][-1].startswith("Everybody has 10 days of leave. [1]")
    assert len(again.requests) == 1


@pytest.fixture
def catalogues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the catalogues, which may be changed."""
    copied = tmp_path / "locale"
    shutil.copytree(i18n.LOCALE, copied)
    monkeypatch.setattr(i18n, "LOCALE", copied)
    i18n.dialogue_catalogue.cache_clear()
    yield copied
    i18n.dialogue_catalogue.cache_clear()


def reword(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Change a Japanese sentence, as a release does: the old wording stays as that of the version before."""
    changed = i18n.LOCALE.with_name("reworded")  # gettext keeps what it read of a path
    shutil.copytree(i18n.LOCALE, changed)
    folder = changed / "ja" / "LC_MESSAGES"
    whole = (folder / "dialogue.po").read_text(encoding="utf-8")
    header, *entries = whole.split("\n\n")
    before = [entry for entry in entries if f'msgstr "{old}"' in entry]
    assert before
    (folder / "dialogue.po").write_text(whole.replace(old, new), encoding="utf-8")
    (folder / "dialogue-1.po").write_text("\n\n".join((header, *before)), encoding="utf-8")
    compile_catalogues(changed)
    monkeypatch.setattr(i18n, "LOCALE", changed)
    i18n.dialogue_catalogue.cache_clear()


@pytest.mark.usefixtures("catalogues")
def test_a_turn_is_replayed_in_the_words_of_the_catalogue_that_it_was_committed_with(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = taiwa.open("ask", model=NoModel(), store=tmp_path / "store.db", session="s", params={"in": [str(folder)]})
    assert talk.say("ありがとう").text == "どういたしまして。"

    reword(monkeypatch, "どういたしまして。", "お役に立てて何よりです。")
    unversioned = [node.difference for node in replay_history(talk.repository, "s")]
    monkeypatch.setattr(i18n, "DIALOGUE_VERSION", 2)
    i18n.dialogue_catalogue.cache_clear()

    assert [fault[:11] for fault in unversioned] == ["", "it ends in "]
    assert [node.difference for node in replay_history(talk.repository, "s")] == ["", ""]
    later = taiwa.open("ask", model=NoModel(), store=tmp_path / "store.db", session="s")
    assert later.say("ありがとう").text == "お役に立てて何よりです。"
    assert [node.difference for node in replay_history(later.repository, "s")] == ["", "", ""]


def test_a_turn_of_a_newer_catalogue_names_the_version_that_it_needs(
    tmp_path: Path, folder: Path, catalogues: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = taiwa.open("ask", model=NoModel(), store=tmp_path / "store.db", session="s", params={"in": [str(folder)]})
    with monkeypatch.context() as newer:
        newer.setattr(i18n, "DIALOGUE_VERSION", 2)
        talk.say("ありがとう")

    fault = "version 2 of the dialogue catalogue worded it, which is not installed here"
    assert [node.difference for node in replay_history(talk.repository, "s")] == ["", fault]

    (catalogues / "ja" / "LC_MESSAGES" / "dialogue.mo").unlink()
    i18n.dialogue_catalogue.cache_clear()
    assert later_said(tmp_path) == "You are welcome."
    assert [node.difference for node in replay_history(talk.repository, "t")] == ["", ""]
    compile_catalogues(catalogues)
    i18n.dialogue_catalogue.cache_clear()
    assert [node.difference for node in replay_history(talk.repository, "t")] == ["", ""]


def later_said(tmp_path: Path) -> str:
    return taiwa.open("ask", model=NoModel(), store=tmp_path / "store.db", session="t").say("ありがとう").text


@pytest.mark.parametrize(
    ("locale", "words", "language"),
    [("en", "予約", "ja"), ("ja", "休暇", "ja"), ("zh", "休暇", "zh"), ("zh", "予約", "zh"), ("ja", "预约", "zh")],
)
def test_a_word_in_chinese_characters_is_answered_in_its_language_or_the_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locale: str, words: str, language: str
) -> None:
    monkeypatch.setenv("TAIWA_LANG", locale)
    talk = taiwa.open("ask", model=NoModel(), store=Store.open(tmp_path / "store.db"))

    result = talk.say(words).ask

    assert result is not None
    assert result.language == language


def test_every_turn_can_be_done_again_from_its_record(tmp_path: Path, folder: Path) -> None:
    model = scripted_model(SCORES, ANSWER, capabilities=NONE)
    params = {"in": [str(folder)], "assess_by": "typed"}
    talk = taiwa.open("ask", model=model, store=tmp_path / "store.db", session="s", params=params)
    talk.say(QUESTION)
    talk.say("thanks")
    (folder / "leave.md").write_text("# Leave\n\nEverybody has eleven days of leave.\n")

    done = [*replay_history(talk.repository, "s")]

    assert [(each.kind, each.calls, each.difference) for each in done] == [
        ("root", 0, ""),
        ("turn", 2, ""),
        ("turn", 0, ""),
    ]


def test_in_memory_the_handbook_is_indexed_for_the_turn_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    talk = taiwa.open("ask", model=NoModel(), store=":memory:", params={"in": [BUNDLED_HANDBOOK]})

    assert "[1] en/facilities.md › Buildings and daily life › Dogs" in talk.say("may I bring my dog?").text
    assert not [*tmp_path.iterdir()]


def test_the_handbook_of_another_place_is_let_go(tmp_path: Path) -> None:
    with Library.open(tmp_path / "store-handbook.db") as library:
        library.create(tmp_path, "old")
    talk = taiwa.open("ask", model=NoModel(), store=tmp_path / "store.db")
    talk.say("dogs")

    with Library.open(tmp_path / "store-handbook.db") as library:
        assert library.names() == (BUNDLED_HANDBOOK,)


def test_a_conversation_is_that_of_the_person_who_asks(tmp_path: Path, folder: Path) -> None:
    store = Store.open(tmp_path / "store.db")
    UserProfiles(store).put(UserProfile("ann", (("office", "Leith"),)))

    talk = taiwa.open("ask", model=NoModel(), store=store, session="s", params={"in": [str(folder)], "user": "ann"})
    talk.say(QUESTION)

    assert store.users.sessions("ann") == ("s",)


@pytest.mark.parametrize(
    ("params", "error", "said"),
    [
        ({"policy": "wisdom"}, InputError, "unknown policy"),
        ({"policy": "functions"}, ConfigError, "scores of a model"),
        ({"assess_by": "dice"}, InputError, "unknown method of assessment"),
        ({"user": "nobody"}, InputError, "is not a user of the store"),
        ({"in": ["nowhere"]}, InputError, "neither an index nor a folder"),
    ],
)
def test_what_cannot_be_opened_leaves_no_turn_behind(
    tmp_path: Path, params: dict[str, Json], error: type[Exception], said: str
) -> None:
    talk = taiwa.open("ask", model=NoModel(), store=tmp_path / "store.db", params=params)

    with pytest.raises(error, match=said):
        talk.say(QUESTION)
    assert talk.repository.store.runs.open_runs() == ()
    assert not talk.repository.store.refs.list()


def test_without_a_model_nothing_can_be_asked_of_one(tmp_path: Path) -> None:
    talk = taiwa.open("chat", model=NoModel(), store=tmp_path / "store.db")

    with pytest.raises(ConfigError, match="no model is set"):
        talk.say("hello")
