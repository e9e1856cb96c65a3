"""What rules out a calculation for a question in Japanese or Chinese: its numbers, what they and its result count, and what is asked for."""

import pytest

from taiwa.models.builtin.cjk_check import asked_names, has_other_kind, is_told_otherwise, misuses, read_counted
from taiwa.models.builtin.line_check import is_doubtful


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


@pytest.mark.parametrize(
    ("question", "calculation"),
    [
        ("点数は64点、72点、92点でした。平均点は何点ですか?", "(64+72)/2"),
        ("鉛筆1本110円を4本とノート1冊160円を3冊買うといくらですか?", "1*110+3*160"),
        ("买3支毛笔,每支15元,再买4本书,每本20元,一共多少元?", "4*15+4*20"),
        ("房租从1500元涨到1800元,涨了百分之多少?", "1800-100"),
        ("宿は1泊7600円です。4泊するといくらですか?", "180*4"),
    ],
)
def test_a_calculation_that_leaves_out_a_number_or_has_another_one_is_found(question: str, calculation: str) -> None:
    assert misuses(question, calculation, ())


@pytest.mark.parametrize(
    ("question", "calculation"),
    [
        ("犬を3匹飼っています。りんご1個90円を6個でいくらですか?", "6*90"),
        ("今天是31号。7小时24分一共是多少分钟?", "7*60+24"),
        ("2400円の3割引きはいくらですか", "2400*(100-30)/100"),
        ("5時50分から17時まで何分ありますか", "(17-5)*60+0-50"),
        ("72,188,195を平均すると", "(72+188+195)/3"),
    ],
)
def test_a_calculation_with_the_numbers_of_the_question_is_not(question: str, calculation: str) -> None:
    assert not misuses(question, calculation, ("60",))
    assert not has_other_kind(question, calculation)


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("200ページの本を1日に8ページずつ読むと何日かかりますか?", "200/8", "200*8"),
        ("母は45歳、娘は14歳です。何歳ちがいますか?", "45-14", "45*14"),
        ("バスに28人乗っていて9人降りました。今何人ですか?", "28-9", "9/28"),
        ("1ユーロは150円です。6000円は何ユーロですか?", "6000/150", "6000*150"),
        ("用30升油跑了420公里,每升油能跑多少公里?", "420/30", "420*30/100"),
        ("从上午9点到下午4点一共几个小时?", "16-9", "9+4"),
        ("机器每分钟做15个,3小时做多少个?", "15*3*60", "15*3"),
    ],
)
def test_a_result_counts_what_is_asked_for(question: str, right: str, wrong: str) -> None:
    assert not has_other_kind(question, right)
    assert has_other_kind(question, wrong)


def test_an_answer_is_told_in_the_unit_that_is_asked_for() -> None:
    question = "做10个蛋糕要4个鸡蛋,做25个蛋糕要几个鸡蛋?"

    assert is_told_otherwise("这辆车用30升油跑了420公里,每升跑多少公里?", "420/30", "L")
    assert not is_told_otherwise("这辆车用30升油跑了420公里,每升跑多少公里?", "420/30", "km")
    assert is_told_otherwise(question, "25/10*4", "hours")


@pytest.mark.parametrize(
    ("question", "saying", "calculation"),
    [
        ("点数は64点、72点、92点でした。平均点は何点ですか?", "The sum, divided by how many there are.", "(64+72)/2"),
        (
            "2mol/Lの食塩水50mLを水でうすめて400mLにしました。何mol/Lですか?",
            "The same moles in more volume.",
            "2*50/(50+400)",
        ),
        ("配制400毫升1mol/L的盐酸,需要8mol/L的盐酸多少毫升?", "The same moles in less volume.", "400*8/8"),
        ("小李有360元,花掉了三分之一,还剩多少元?", "Take away.", "360-3"),
    ],
)
def test_a_line_that_contradicts_its_question_is_doubtful(question: str, saying: str, calculation: str) -> None:
    assert is_doubtful(question, f"{saying}\n", f"<<calculator: {calculation}>>")


def test_a_line_that_fits_its_question_is_not_doubtful() -> None:
    question = "2mol/Lの食塩水50mLに水を350mL加えました。何mol/Lですか?"

    assert not is_doubtful(question, "The same moles in more volume.\n", "<<calculator: 2*50/(50+350)>>")


@pytest.mark.parametrize(
    ("question", "doubtful"),
    [
        ("3000円の靴が20パーセント引です。いくら払いますか?", True),
        ("3000円の靴が20%オフです。いくら払いますか?", True),
        ("チケット引換券3000円分の20%をレジで払いました。いくらですか?", False),
    ],
)
def test_a_share_of_the_price_is_doubtful_where_a_price_after_a_discount_is_asked_for(
    question: str, *, doubtful: bool
) -> None:
    assert is_doubtful(question, "", "The share of the price.") is doubtful


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("花子は本を4冊持っています。2冊もらいました。全部で何冊ですか", "<<calculator: 4*2>>"),
        ("小红有9支笔,送了4支,还剩几支", "<<calculator: 9*4>>"),
        ("部員のうち女子は12人です。男子は何人ですか", "<<calculator: 12-12>>"),
        ("3Lの水は何杯ですか", "<<unit_conversion: 3 L to cups>>"),
    ],
)
def test_a_product_of_what_comes_and_goes_and_a_number_less_itself_are_doubted(question: str, line: str) -> None:
    assert is_doubtful(question, "", line)


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("1箱に4個入った桃を2箱もらいました。全部で何個ですか", "<<calculator: 4*2>>"),
        ("毎日4個ずつ2日間食べました。全部で何個ですか", "<<calculator: 4*2>>"),
        ("花子は本を4冊持っています。2冊もらいました。全部で何冊ですか", "<<calculator: 4+2>>"),
        ("3Lの水は何カップですか", "<<unit_conversion: 3 L to cups>>"),
        ("3升水是多少杯", "<<unit_conversion: 3 L to cups>>"),
    ],
)
def test_a_product_of_groups_and_a_conversion_that_is_asked_for_are_not_doubted(question: str, line: str) -> None:
    assert not is_doubtful(question, "", line)


def test_a_percentage_that_is_asked_for_has_its_sign() -> None:
    question, before = "8分の2は何パーセントですか", "<<calculator: 8*2/2>> 8\n"

    assert is_doubtful(question, before, "Therefore, the answer is 8.")
    assert not is_doubtful("8の2分の1はいくつですか", before, "Therefore, the answer is 8.")
