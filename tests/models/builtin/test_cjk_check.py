"""What rules out a calculation for a question in Japanese or Chinese: numbers that it leaves out, and what its result counts."""

import pytest

from taiwa.models.builtin.cjk_check import has_other_kind, is_told_otherwise, misuses
from taiwa.models.builtin.line_check import is_doubtful


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
