"""A claim is supported if it restates a sentence: the rates on claims of our own, right and false, in three languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.ask.ask_result import safe_line
from taiwa.flows.ask.quote import supports
from tests.flows.ask.claims import measure
from tests.flows.ask.support_pairs import PAIRS


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_cleaning_is_idempotent(text: str) -> None:
    shown = safe_line(text, "")

    assert safe_line(shown, "") == shown
    assert "\n" not in shown
    assert "\x1b" not in shown


def test_claims_with_one_thing_changed_are_not_supported_and_right_ones_are() -> None:
    counts = measure()
    shares = {kind: refused / total for kind, (refused, total) in counts.items()}

    assert all(total > 400 for _, total in counts.values())
    assert shares.pop("right") <= 0.05  # measured: 0.002
    assert all(share >= 0.98 for share in shares.values())  # measured: 1.0, 0.999 for numbers


def test_false_claims_by_words_subjects_numbers_units_and_dates_are_not_supported() -> None:
    supported = [claim for pair in PAIRS for claim in pair.false if supports(claim, pair.sentence, pair.heading)]

    assert sum(len(pair.false) for pair in PAIRS) >= 80
    assert supported == []


def test_right_claims_in_other_spellings_numbers_and_inflections_are_supported() -> None:
    refused = [claim for pair in PAIRS for claim in pair.right if not supports(claim, pair.sentence, pair.heading)]

    assert sum(len(pair.right) for pair in PAIRS) >= 30
    assert refused == []


def test_right_claims_in_other_words_are_left_to_the_reader() -> None:
    assert not any(supports(claim, pair.sentence, pair.heading) for pair in PAIRS for claim in pair.reworded)


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
def test_a_sentence_does_not_support_what_it_does_not_say(claim: str, quotation: str) -> None:
    assert not supports(claim, quotation)


@pytest.mark.parametrize(
    ("claim", "sentence", "heading"),
    [
        ("Annual leave is 28 days.", "Twenty-eight days.", "Annual leave"),
        ("There are ten days of annual leave.", "ten days of annual leave, or twelve in Leith", ""),
        ("20日まで繰り越せます。", "繰り越せるのは二十日までです", ""),
        ("上限は百万円です。", "上限は100万円です", ""),
        ("The fee is 5 dollars.", "The fee is $5", ""),
        ("费用为3万元。", "费用是为30,000元", ""),
        ("Der Urlaub wird bezahlt.", "Der Urlaub wird bezahlt, auf Antrag", ""),
        ("연차는 15일입니다", "연차는 15일입니다.", ""),
        ("Leave is 12.50 euro at 9:05", "Leave is 12.5 euro at 09:05.", ""),
    ],
)
def test_spelling_inflection_order_and_a_subject_in_the_heading_make_no_difference(
    claim: str, sentence: str, heading: str
) -> None:
    assert supports(claim, sentence, heading)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Members pay 5 euro.", "Members pay 5 euro per visit."),
        ("Dogs may enter.", "On Sundays dogs may enter."),
        ("The head approves it.", "The deputy head approves it."),
        ("部長が承認します。", "副部長が承認します。"),
        ("Bob reports to Ann.", "Ann reports to Bob."),
        ("28 in Galway and 26 in Leith.", "Leith 28, Galway 26."),
        ("20 cents", "The late fee is 20 cents."),
        ("1980年代", "1980年代には、二つの党が一緒に選挙をすることはなくなった。"),
        ("12日", "子が二人以上 · 日数: 12日"),
        ("12 days", "12 days"),
        ("190 pounds", "Hotel, a night | London: 190 pounds |"),
        ("In 1980", "In 1980, the two parties stood apart in every election."),
        ("", "Ten days."),
        ("The.", "Ten days."),
    ],
)
def test_a_claim_that_leaves_out_a_condition_or_swaps_two_things_is_not_supported(claim: str, sentence: str) -> None:
    assert not supports(claim, sentence)
