"""What the draws of dialogues promise: form, languages, and judgements that no words in a dialogue can change."""

import json
from collections import Counter
from importlib.resources import files
from random import Random

import pytest

from taiwa.flows.ask.types import SCORES
from taiwa.models.builtin.tokenizer import normalize_text
from training.builtin.asking import SHARES
from training.builtin.asking.scenes import Stage
from training.builtin.asking.shares import SCENES
from training.builtin.asking.wording import expand, fill, listed
from training.builtin.asking.work import injected
from training.builtin.samples import Sample, choose

LANGUAGES = ("en", "ja", "zh")


@pytest.fixture(scope="module")
def drawn() -> list[Sample]:
    random = Random(7)
    return [choose(random, SHARES) for _ in range(1_500)]


def test_prompts_are_what_the_runtime_makes_of_a_request(drawn: list[Sample]) -> None:
    assert [sample.prompt for sample in drawn if normalize_text(sample.prompt) != sample.prompt] == []
    assert max(len(sample.prompt) for sample in drawn) <= 1_200
    assert all(sample.text in set("12345") for sample in drawn)


def test_nothing_is_left_open_in_a_wording(drawn: list[Sample]) -> None:
    marks = ("{x}", "{X}", "{c}", "{p}", "{b}", "{v}", "[", "]", " ; ")
    assert [s.prompt for s in drawn if any(mark in s.prompt + s.text for mark in marks)] == []


def test_the_same_seed_draws_the_same() -> None:
    assert [choose(Random(3), SHARES) for _ in range(3)] == [choose(Random(3), SHARES) for _ in range(3)]


def test_shares_and_languages_are_as_meant(drawn: list[Sample]) -> None:
    assert sum(share.weight for share in SHARES.values()) == pytest.approx(1)
    assert SHARES.keys() == {f"assess.{name}" for name in SCORES}
    languages = Counter(sample.kind.rpartition(".")[2] for sample in drawn)
    assert 0.4 < languages["en"] / len(drawn) < 0.5
    assert 0.4 < languages["ja"] / len(drawn) < 0.5
    assert len({sample.prompt for sample in drawn}) > 0.9 * len(drawn)


def test_scores_are_digits_and_all_of_them_come(drawn: list[Sample]) -> None:
    for name in SCORES:
        digits = Counter(sample.text for sample in drawn if sample.task == f"assess.{name}")
        assert digits.keys() <= set("12345")
        assert {"1", "5"} <= digits.keys() or name == "in_internal_docs"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", sorted(SCENES))
def test_every_scene_can_be_played_in_every_language(name: str, language: str) -> None:
    for seed in range(25):
        scene = SCENES[name][0](Stage(Random(seed), language))
        assert scene.turns[-1][0] == "user"
        assert all(text for _, text in scene.turns)
        assert all(1 <= getattr(scene.scores, score) <= 5 for score in SCORES)


def test_words_that_pose_as_instructions_change_no_level() -> None:
    for seed in range(30):
        stage = Stage(Random(seed), "en")
        scene = SCENES["question"][0](stage)
        posing = injected(stage, scene)
        assert posing.turns != scene.turns
        assert posing.scores == scene.scores


def test_what_points_at_nothing_is_less_clear_than_what_names_it() -> None:
    def mean(name: str) -> float:
        return sum(SCENES[name][0](Stage(Random(seed), "ja")).scores.clarity for seed in range(40)) / 40

    assert mean("question") < 2 < mean("bare") < mean("dangling")


def test_a_place_that_is_not_named_stays() -> None:
    assert fill("{a} {b}", {"a": "{b}"}) == "{b} {b}"
    assert expand(Random(0), "[one|one] [two [three|three]|two three]") == "one two three"
    with pytest.raises(LookupError):
        listed("en", "no such section")


def test_no_question_that_judges_the_model_is_drawn(drawn: list[Sample]) -> None:
    rows = (files("taiwa.apps") / "worked" / "handbook.jsonl").read_text("utf-8").splitlines()
    judging = {_letters(turn) for row in rows for turn in json.loads(row)["turns"]}
    said = {_letters(turn) for sample in drawn for turn in sample.prompt.split("|")}
    assert said & judging == set()


def _letters(text: str) -> str:
    return "".join(sign for sign in text.casefold() if sign.isalnum())
