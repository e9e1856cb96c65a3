"""A text file is read in whichever of the usual encodings it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.retrieval.decoding import decode
from taiwa.retrieval.types import UnreadableError

JAPANESE = "有給休暇は、入社から半年が過ぎた社員に年に十日あたえられます。申請は前の週までに。"
CHINESE = "员工入职满一年后，每年可以享受五天的带薪年假。请在系统中提前申请，并等待主管批准。"
TAIWANESE = "員工每年可以享有十天的特休假，請提前向主管提出申請。"
KOREAN = "직원은 매년 15일의 유급 휴가를 받을 수 있습니다."
FRENCH = "Les employés ont droit à des congés payés; la période d'été est très demandée."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *((JAPANESE, name) for name in ("utf-8", "utf-8-sig", "cp932", "euc_jp", "iso2022_jp", "utf-16", "utf-16-le")),
        *((CHINESE, name) for name in ("utf-8", "gb18030", "gbk", "utf-16-be", "utf-32")),
        (TAIWANESE, "big5"),
        (KOREAN, "euc_kr"),
        (FRENCH, "cp1252"),
        ("plain words", "utf-16-le"),
        ("plain words", "utf-16-be"),
        ("Ticket, 有給休暇, 12\n" * 20, "cp932"),
        # A few Chinese characters are where Korean has its syllables.
        ("社内規程第3条　旅費", "euc_jp"),
        ("1. 目的\n2. 範囲\n", "euc_jp"),
        ("请假流程：先在系统中提交", "gb18030"),
        ("회의실", "euc_kr"),
        ("担当者は田中です。内線で確認してください。", "cp932"),
        ("会議室は三階です。", "euc_jp"),
        ("カタカナ ノ テスト", "euc_jp"),
        ("お問い合わせはこちら", "euc_jp"),
        ("會議室在三樓。", "big5"),
        ("Ключ лежит на кухне под столом.", "cp1251"),
        ("Отпуск длится 28 дней.", "koi8_r"),
        ("Il va à Paris.", "cp1252"),
    ],
)
def test_the_text_comes_back(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_utf_8_is_always_read_as_utf_8(text: str) -> None:
    assert decode(b"\xef\xbb\xbf" + text.encode()) == text


@given(st.binary(max_size=400))
def test_any_bytes_are_text_or_said_not_to_be(raw: bytes) -> None:
    try:
        text = decode(raw)
    except UnreadableError as error:
        text = error.message

    assert "\r" not in text


def test_a_large_file_in_an_old_encoding_is_read() -> None:
    text = "".join(map(chr, range(0x4E00, 0x6E00))) + JAPANESE * 1000
    raw = text.encode("cp932", "ignore")

    assert decode(raw) == raw.decode("cp932")


@pytest.mark.parametrize("encoding", ["cp932", "euc_jp", "gb18030"])
def test_what_is_not_ascii_decides_wherever_it_stands(encoding: str) -> None:
    text = "A line of a log.\n" * 5_000 + f"{JAPANESE}\n" * 3 + "end"

    assert decode(text.encode(encoding)) == text


def test_line_ends_are_one_character() -> None:
    assert decode(b"a\r\nb\rc\n") == "a\nb\nc\n"


def test_what_a_page_says_of_itself_counts_only_where_it_fits() -> None:
    assert decode(JAPANESE.encode("euc_jp"), "utf-8") == JAPANESE
    assert decode(FRENCH.encode("cp1252"), "cp1252") == FRENCH
    assert decode(FRENCH.encode("cp1252"), "no-such-encoding") == FRENCH


def test_utf_8_with_a_broken_place_stays_utf_8() -> None:
    raw = JAPANESE.encode() * 5 + b"\xff" + JAPANESE.encode() * 5

    assert decode(raw).count(JAPANESE) == 10
