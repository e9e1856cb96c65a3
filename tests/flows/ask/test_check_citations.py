"""Quotations are found in spite of widths, spaces, quotation marks and emphasis, and absent words are not."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taiwa.flows.ask.check_citations import clean_untrusted, find_quotation, supports
from tests.flows.ask.claims import measure

ALPHABET = "ab 12がﾞｶ。、\n*|“\"'’—-ß①ﬁÅ\u0301\u200b"


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        ("ten days", "has **ten** days.", "ten** days"),
        ("Ten Days.", "ｔｅｎ　ｄａｙｓ、", "ｔｅｎ　ｄａｙｓ"),
        ("年に五日", "一年に\n五日です", "年に\n五日"),
        ("ガギ", "ｶﾞｷﾞ", "ｶﾞｷﾞ"),
        ("“it's” – so", '"it’s" — so', 'it’s" — so'),
        ("3年 16日", "| 3年 | 16日 |", "3年 | 16日"),
        ("Ångström", "A\u030angstro\u0308m", "A\u030angstro\u0308m"),
        ("a b", "a\u200b \u00a0\n b", "a\u200b \u00a0\n b"),
        ("straße", "STRASSE", "STRASSE"),
    ],
)
def test_words_are_found_in_spite_of_widths_and_marks(words: str, text: str, found: str) -> None:
    place = find_quotation(words, text)

    assert place is not None
    assert text[slice(*place)] == found


@pytest.mark.parametrize(
    ("words", "text"), [("ten days", "tendays"), ("days ten", "ten days"), ("", "a"), ("—", "a — b")]
)
def test_absent_words_are_not_found(words: str, text: str) -> None:
    assert find_quotation(words, text) is None


@pytest.mark.parametrize(
    ("words", "text"),
    [("\u03011", "11111\u03011"), ("\u0301a", "a1\u0301a"), ("\u0301 x", "①\u0301 x"), ("平", "㍻です")],
)
def test_words_cut_in_the_middle_of_a_combining_sequence_are_not_a_quotation(words: str, text: str) -> None:
    assert find_quotation(words, text) is None


@given(st.text(ALPHABET, max_size=30), st.integers(0, 30), st.integers(0, 30))
@example("11111\u0301", 5, 2)
@example("a1\u0301a", 2, 2)
def test_a_part_that_was_found_is_found_again(text: str, start: int, size: int) -> None:
    part = text[start : start + size]
    place = find_quotation(part, text)
    if place is not None:
        assert 0 <= place[0] < place[1] <= len(text)
        assert find_quotation(text[slice(*place)], text) is not None


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_cleaning_is_idempotent(text: str) -> None:
    shown = clean_untrusted(text, "")

    assert clean_untrusted(shown, "") == shown
    assert "\n" not in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("5 days", "There are 25 days."),
        ("500 yen", "Up to 1,500 yen."),
        ("1", "Up to 1,500 yen."),
        ("5 km", "It is 2.5 km."),
        ("you can", "You cannot carry it over."),
        ("able to", "You are unable to."),
        ("五日前", "十五日前までに申請する。"),
        ("3万円", "13万円まで。"),
    ],
)
def test_a_part_of_a_word_or_a_number_is_not_a_quotation(words: str, text: str) -> None:
    assert find_quotation(words, text) is None


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        ("5 days", "25 days, then 5 days.", "5 days"),
        ("休暇", "年次有給休暇制度", "休暇"),
        ("API鍵", "このAPI鍵は", "API鍵"),
        ("1,500", "Up to 1,500.", "1,500"),
        ("25日", "毎月25日です", "25日"),
        ("연차", "연차휴가", "연차"),
        ("500円", "料金は500円。", "500円"),
        ("day 3", "On day 3. On day 4", "day 3"),
    ],
)
def test_a_whole_word_is_a_quotation_anywhere(words: str, text: str, found: str) -> None:
    start, end = find_quotation(words, text) or (0, 0)

    assert text[start:end] == found


def test_claims_with_one_thing_changed_are_refused_and_right_ones_are_not() -> None:
    counts = measure()
    shares = {kind: refused / total for kind, (refused, total) in counts.items()}

    assert all(total > 400 for _, total in counts.values())
    assert shares["number"] >= 0.99  # measured: 0.998
    assert shares["unit"] >= 0.98  # measured: 0.983
    assert shares["negation"] >= 0.99  # measured: 1.0
    assert shares["name"] >= 0.99  # measured: 0.993
    assert shares["right"] <= 0.02  # measured: 0.011


@pytest.mark.parametrize(
    ("claim", "quotation"),
    [
        ("90 days are paid.", "a"),
        ("90 days are paid.", "a year"),
        ("Breakfast is included.", "All leave is asked for in the calendar tool"),
        ("Colleagues in Galway have 28 days.", "Full-time colleagues in Leith have 28 days of annual leave a year"),
        ("Galway has 28 days of leave.", "Full-time colleagues in Leith have 28 days of annual leave a year"),
        ("The year runs from 1 May to 31 March.", "The year of leave runs from 1 April to 31 March"),
        ("The office opens at 9:30 on Tuesday.", "On Monday the office opens at 09:30"),
        ("The desk is staffed until 4 pm.", "The desk is staffed until 4 am"),
        ("Leave can be paid out.", "Leave cannot be paid out"),
        ("You may bring a cat.", "You may not bring a cat"),
        ("年に30日休めます。", "一年に二十日休めます"),
        ("木曜日に出社します。", "火曜日に出社します"),
        ("有給休暇は買い取れます。", "有給休暇の買い取りは、できません"),
        ("员工每年有15天年假。", "员工每年有五天年假"),
        ("周三开门。", "图书馆周一至周五开放"),
        ("The limit is 200 pounds.", "上限は一泊二万円です"),
        ("犬は禁止です。", "Dogs are welcome in Leith on Mondays"),
        ("One day of leave is paid.", "Ten days of leave are paid"),
        ("One day of leave is paid.", "Ten days of leave a year are paid to an employee"),
        ("A hundred days of leave are paid.", "Ten days of leave are paid"),
        ("A thousand pounds are paid.", "Ten pounds are paid"),
        ("A million pounds are paid.", "Two million pounds are paid"),
        ("It is due on the first day.", "It is due on the second day"),
        ("It is due on the thirteenth day.", "It is due on the fourteenth day"),
        ("It is due on the twenty-first day.", "It is due on the twenty-second day"),
        ("It is due on the 31st day.", "It is due on the thirtieth day"),
        ("A dozen people may come.", "Ten people may come"),
        ("It is checked twice a year.", "It is checked three times a year"),
        ("Half of the fee is paid back.", "A quarter of the fee is paid back"),
        ("The room is kept at -5 degrees.", "The room is kept at 5 degrees"),
        ("The room is kept at 5 degrees.", "The room is kept at -5 degrees"),
        ("The room is kept at minus 5 degrees.", "The room is kept at 5 degrees"),
        ("一日休めます。", "十日休めます"),
        ("百人まで入れます。", "千人まで入れます"),
        ("费用为一百元。", "费用为一千元"),
        ("第一条に従います。", "第三条に従います"),
        ("千万円まで借りられます。", "百万円まで借りられます"),
        ("室温は零下5度です。", "室温は5度です"),
        ("Guests hardly ever pay a deposit.", "Guests pay a deposit"),
        ("Guests pay a deposit.", "Guests scarcely pay a deposit"),
        ("Guests barely pay a deposit.", "Guests pay a deposit"),
        ("Neither guest pays a deposit.", "Each guest pays a deposit"),
        ("Der Urlaub wird nicht bezahlt.", "Der Urlaub wird bezahlt"),
        ("Der Urlaub wird bezahlt.", "Es wird kein Urlaub bezahlt"),
        ("Urlaub ohne Antrag ist möglich.", "Urlaub mit Antrag ist möglich"),
        ("Hunde sind verboten.", "Hunde sind willkommen"),
        ("Es gibt dreißig Tage Urlaub.", "Es gibt fünfundzwanzig Tage Urlaub"),
        ("Es gibt 24 Tage Urlaub.", "Es gibt fünfundzwanzig Tage Urlaub"),
        ("Am dritten Tag wird gezahlt.", "Am vierten Tag wird gezahlt"),
        ("Les congés ne sont pas payés.", "Les congés sont payés"),
        ("Les congés sont payés.", "Les congés ne sont jamais payés"),
        ("Les chiens sont interdits.", "Les chiens sont admis"),
        ("Il y a vingt-cinq jours de congé.", "Il y a trente jours de congé"),
        ("Il y a quatre-vingt-dix jours.", "Il y a quatre-vingts jours"),
        ("Tanaka approves the leave.", "Suzuki approves the leave"),
        ("Galway has 28 days of leave.", "Leith has 28 days of leave"),
        ("Ann Smith approves the leave.", "Bob Smith approves the leave"),
        ("Ann is the manager.", "Bob is the manager"),
        ("Ann's desk is on the second floor.", "Bob's desk is on the second floor"),
        ("Mr Smith approves the leave. Ann pays it out.", "Mr Smith approves the leave. Bob pays it out"),
        ("AnnはLeithで働きます。", "BobはLeithで働きます"),
        ("田中が休暇を承認します。", "鈴木が休暇を承認します"),
        ("王芳批准请假。", "李伟批准请假"),
        ("The fee is $5.", "The fee is 5 euros"),
        ("The fee is £5.", "The fee is €5"),
        ("The fee is 5 dollars.", "The fee is 5 pounds"),
        ("The fee is EUR 5-10.", "The fee is $5-10"),
        ("Der Preis ist 5 Euro.", "Der Preis ist 5 Franken"),
        ("料金は5ドルです。", "料金は5円です"),
        ("费用为5元。", "费用为5美元"),
        ("It lasts 30 days.", "It lasts 30 hours"),
        ("It lasts thirty working days.", "It lasts 30 working hours"),
        ("It lasts half a day.", "It lasts half an hour"),
        ("It lasts 2 weeks.", "A second person waits for two days"),
        ("30日間有効です。", "30時間有効です"),
        ("三か月待ちます。", "三年待ちます"),
        ("午後3時間です。", "午後3時です"),
        ("有效期为30天。", "有效期为30小时"),
        ("The limit is 20 km.", "The limit is 20 miles"),
        ("The laptop has 16 GB.", "The laptop has 16 MB"),
        ("The fee is 5 % of the pay.", "The fee is 5 euro of the pay"),
        ("Each of them gets 5 euros.", "5 guests get 10 euros each of them"),
        ("The allowance is 42 pounds a month.", "The allowance is 42 pounds a day"),
    ],
)
def test_a_quotation_does_not_support_what_it_does_not_say(claim: str, quotation: str) -> None:
    assert not supports(
        claim, quotation, sources="Those in Galway have more. In Leith it rains. Suzuki approves the leave."
    )


@pytest.mark.parametrize(
    ("claim", "quotation"),
    [
        ("You get 26 days of leave a year in Galway.", "Full-time colleagues in Leith have 28 days of annual leave a year, those in Galway 26"),
        ("Annual leave is 28 days.", "have twenty-eight days of annual leave"),
        ("A dog may come on Mondays and Fridays.", "Dogs are welcome in Leith on Mondays and Fridays after a trial day"),
        ("Leave can't be paid out unless you leave.", "Leave cannot be paid out, except when you leave the company"),
        ("The deadline is 30 June.", "they must be taken by 30 June"),
        ("The limit is 1000 pounds.", "up to 1,000 pounds"),
        ("The shift starts at 9:30.", "from 09:30 in core time"),
        ("申請は前日の正午までです。", "申請は前日の正午まで、五日以上続けて休むときは一か月前までにお願いします"),
        ("20日まで繰り越せます。", "繰り越せるのは二十日までです"),
        ("買い取りはできません。", "有給休暇の買い取りは、退職のとき以外はできません"),
        ("五日は取らなければなりません。", "一年に五日は必ず取ってください"),
        ("年假为15天。", "员工每年有十五天年假"),
        ("不能养宠物。", "不允许在办公室养宠物"),
        ("一年に28日の休暇があります。", "Full-time colleagues in Leith have 28 days of annual leave a year"),
        ("Leave is counted per day, half day or hour.", "一日、半日、一時間の単位で取れます"),
        ("One day a week is free.", "You have a day a week free"),
        ("One of the managers approves the leave.", "The leave is approved by the managers"),
        ("Es gibt 25 Tage Urlaub.", "Es gibt fünfundzwanzig Tage Urlaub"),
        ("Am 3. Tag wird gezahlt.", "Am dritten Tag wird gezahlt"),
        ("Il y a 97 jours.", "Il y a quatre-vingt-dix-sept jours"),
        ("Les congés ne sont pas payés.", "Les congés ne sont pas payés par l'école"),
        ("It is due on the 21st.", "It is due on the twenty-first day"),
        ("12 people may come.", "A dozen people may come"),
        ("上限は百万円です。", "上限は100万円です"),
        ("The range is 5-10 days.", "from 5 to 10 days in range"),
        ("It is kept at -5 degrees.", "It is kept at minus 5 degrees"),
        ("The fee is 5 dollars.", "The fee is $5"),
        ("The fee is 5,000 yen.", "料金は五千円です"),
        ("30天有效。", "30日間有効です"),
        ("It lasts 30 days.", "a 30-day period that lasts"),
        ("It takes 5 days to pay.", "5 to 10 days to pay"),
        ("The limit is 195 euro in Dublin.", "up to 150 euro in Galway, Dublin 195"),
        ("Leave for your first 3 months is paid.", "Leave for your first three months is paid"),
        ("Call Ann Smith.", "Ann Smith is the one to call"),
        ("Employees may bring a dog.", "Colleagues may bring a dog"),
        ("It is checked two times a year.", "It is checked twice a year"),
    ],
)  # fmt: skip
def test_a_claim_in_other_words_or_another_language_is_supported(claim: str, quotation: str) -> None:
    assert supports(claim, quotation)
