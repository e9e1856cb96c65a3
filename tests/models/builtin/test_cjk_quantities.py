"""The numbers of questions in Japanese and Chinese, what they count, and what is asked for."""

import pytest

from taiwa.models.builtin.cjk_quantities import asked_names, read_counted


def values(text: str) -> list[str]:
    return [str(each.value) for each in read_counted(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("家賃が8万円から8万4千円に上がりました", ["80000", "84000"]),
        ("一個八十円の卵を六個買って、千円出しました", ["1", "80", "6", "1000"]),
        ("八千克大米,三千五百米", ["8", "3500"]),
        ("53,263と16,209人", ["53263", "16209"]),
        ("3時間半と3个半小时", ["7/2", "7/2"]),
        ("行驶140千米用了半小时", ["140", "1/2"]),
        ("花掉了三分之一,百分之52.4", ["1/3", "262/5"]),
        ("3割引き、八折、7割5分", ["30", "80", "75"]),
        ("二十四割る六は?", ["24", "6"]),
        ("二酸化炭素44gとH2SO4を2mol", ["44", "2"]),
        ("15g10%的盐水,58mx16m", ["15", "10", "58", "16"]),
        ("ひとつ80円を五つ", ["1", "80", "5"]),
        ("三次考试得了85分", ["3", "85"]),
    ],
)
def test_numbers_are_read_in_digits_and_numerals(text: str, found: list[str]) -> None:
    assert values(text) == found


@pytest.mark.parametrize(
    ("text", "at", "names"),
    [
        ("1分間に8リットル", 1, {("L", ""), ("L", "min")}),
        ("每支12元", 0, {("yuan", ""), ("yuan", "支")}),
        ("時速60kmで", 0, {("km", "h")}),
        ("每天看25页", 0, {("页", "days")}),
        ("油耗17L/100km", 0, {("L", "km")}),
        ("1ユーロ=160円", 1, {("yen", ""), ("yen", "euro")}),
        ("2mol/Lの食塩水", 0, {("mol/L", "")}),
    ],
)
def test_a_number_counts_what_stands_behind_it_and_may_be_by_what_stands_before_it(
    text: str, at: int, names: set[tuple[str, str]]
) -> None:
    assert read_counted(text)[at].names == names


def test_times_of_the_day_are_read_as_hours_and_minutes() -> None:
    early, late = read_counted("从上午8点到下午5点半一共几个小时?")

    assert early.is_clock
    assert {8} in early.uses
    assert {17, 30} in late.uses


@pytest.mark.parametrize(
    ("text", "names", "is_share"),
    [
        ("一共多少分钟?", {("min", "")}, False),
        ("りんごを3個180円で買うといくらですか", {("yen", "")}, False),
        ("何パーセントの値上がりですか", set(), True),
        ("今何時ですか", set(), False),
    ],
)
def test_what_is_asked_for(text: str, names: set[tuple[str, str]], is_share: bool) -> None:
    asked = asked_names(text)

    assert names <= asked.names
    assert asked.is_share == is_share
