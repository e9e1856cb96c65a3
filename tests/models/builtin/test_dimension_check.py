"""Dimensional analysis of calculations: what is asked for may not be worked out in other dimensions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.builtin.dimension_check import has_other_dimension, is_other_unit, lacks_quantity
from taiwa.models.builtin.word_problem_check import cannot_be

words = st.text("bcdfglmnprtvz", min_size=3, max_size=6).map(lambda letters: f"{letters[0]}o{letters[1:]}a")


@given(words, words, st.integers(2, 99), st.integers(100, 999))
def test_a_rate_between_made_up_units_multiplies_in_one_direction_and_divides_in_the_other(
    one: str, other: str, rate: int, number: int
) -> None:
    if one == other:
        return
    facts = f"One {one} is {rate} {other}s. "

    assert not has_other_dimension(f"{facts}How many {one}s are {number} {other}s?", "Divide.\n", f"{number}/{rate}")
    assert has_other_dimension(f"{facts}How many {one}s are {number} {other}s?", "Multiply.\n", f"{number}*{rate}")
    assert not has_other_dimension(f"{facts}How many {other}s are {number} {one}s?", "Multiply.\n", f"{number}*{rate}")
    assert has_other_dimension(f"{facts}How many {other}s are {number} {one}s?", "Divide.\n", f"{number}/{rate}")


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("An area of 4 m^2 is pressed with 690 N. What is the pressure?", "Pressure is force divided by area.\n690/4", "Pressure is force divided by area.\n4/690"),
        ("A printer prints 832 pages per week. How many pages is that in 23 weeks?", "Multiply.\n832*23", "Divide.\n832/23"),
        ("Twelve machines need 28 minutes. How many minutes do two machines need?", "It is shared.\n12*28/2", "It is shared.\n2*12/28"),
        ("A boat makes 12 km/h; the stream 2 km/h. How many hours for 98 km?", "Add.\n98/(12+2)", "Add.\n(98-2)*12"),
        ("There are 6 boxes with 8 pens each. How many pens are there?", "Multiply.\n6*8", "Divide.\n6/8"),
    ],
)  # fmt: skip
def test_a_calculation_in_other_dimensions_is_found(question: str, right: str, wrong: str) -> None:
    for text, is_wrong in ((right, False), (wrong, True)):
        saying, _, calculation = text.partition("\n")
        assert has_other_dimension(question, f"{saying}\n", calculation) is is_wrong


def test_a_quantity_that_is_not_given_cannot_be_used() -> None:
    question = "How large is the current if a bulb has a resistance of 5 ohms and a voltage of 60 V?"

    assert lacks_quantity(question, "Resistance is voltage divided by current.")
    assert not lacks_quantity(question, "Current is voltage divided by resistance.")
    assert not lacks_quantity(
        "A bulb has 5 oms and 60 V.", "Resistance is voltage divided by current."
    )  # a slip may be any unit


def test_an_answer_is_told_in_the_unit_of_its_calculation() -> None:
    before = "Concentration times volume stays the same.\n<<calculator: 676/1.3>> 520\n"
    question = "A field of 676 m^2 has a side of 1.3 m. How long is the other?"

    assert is_other_unit(question, before, "m^2")
    assert not is_other_unit(question, before, "m")
    assert is_other_unit("He has 640 coins; a mango costs 40 coins for one mango. How many mangos?", "", "coins")


@pytest.mark.parametrize(
    ("question", "saying", "right", "wrong"),
    [
        (
            "A kiosk sells 2 pens for $3 each, 4 pads for $5 each and a map for $8. What is the total?",
            "Multiply both, then add.",
            "",
            "2*3+4*5",
        ),
        (
            "If six lemons cost 4.20 dollars, what do 10 lemons cost?",
            "Price of one, times the number.",
            "4.20/6*10",
            "10*4.20/4.20",
        ),
        ("A hen lays 2 eggs every day. How many eggs are that in three weeks?", "Times the time.", "", "2*3"),
        (
            "A painter takes 50 dollars for coming and 30 dollars per hour. What are 4 hours?",
            "Pay times time, then the rest.",
            "30*4+50",
            "30*50+4",
        ),
        (
            "40 mL of 3 M salt water is diluted to 240 mL. What is the concentration?",
            "The same moles in more volume.",
            "3*40/240",
            "3*40/(40+240)",
        ),
        ("A coat is 90 dollars, 20% off. What is it now?", "Take away.", "", "90-20"),
    ],
)
def test_numbers_that_are_left_out_cancelled_or_added_to_others_are_found(
    question: str, saying: str, right: str, wrong: str
) -> None:
    before = f"{saying}\n"

    assert cannot_be(question, before, f"<<calculator: {wrong}>>")
    assert not right or not cannot_be(question, before, f"<<calculator: {right}>>")


def test_what_a_sentence_tells_of_something_else_may_be_left_out() -> None:
    question = "Our house is number 12. My sister is 31 years old. What do 4 mugs cost at 7 dollars each?"

    assert not cannot_be(question, "Multiply by the price.\n", "<<calculator: 4*7>>")


@pytest.mark.parametrize(
    "question",
    [
        "Sort 8, 2 and 5.",
        "Which number comes next: 2, 5, 8?",
        "Put 8, 2 and 5 into ascending order.",
        "What is the median of 2, 5 and 8?",
        "Is 8 even or odd, and 5 and 2?",
    ],
)
def test_no_calculation_answers_what_asks_for_an_order_or_a_property_of_numbers(question: str) -> None:
    assert cannot_be(question, "", "<<calculator: 2+5+8>>")


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("Ida is 14 and her cousin is 5 years older. How old is her cousin?", "Add the years.", "Take the years away."),
        ("Ida is 14 and her cousin is 5 years younger. How old is he?", "Take the years away.", "Add the years."),
        ("Ida is 14, 5 years older than her cousin. How old is he?", "Take the years away.", ""),
        (
            "A box of 6 mugs costs 27 dollars. What does one mug cost?",
            "Divide by the number.",
            "Multiply by the price.",
        ),
        ("A box of 6 mugs costs 27 dollars. How much are 4 boxes?", "Multiply by the price.", ""),
        ("A lamp was 40 dollars and is 10 percent cheaper. What is it now?", "Take the share off.", "Add the share."),
        ("Ida has 3 cats and Max is 9 years old. How heavy is Max?", "", "Add the years."),
        ("The sum of four numbers is 31. What is the smallest?", "", "Add."),
        ("What is the density of 12 g in 4 cm3?", "Divide.", "Multiply."),
        ("How many eggs are three and a half dozen?", "A dozen is 12.", "A half dozen is 6."),
    ],
)
def test_a_sentence_that_turns_the_question_round_is_doubted(question: str, right: str, wrong: str) -> None:
    assert not right or not cannot_be(question, "", right)
    assert not wrong or cannot_be(question, "", wrong)


def test_what_divides_by_the_one_that_is_asked_for_is_doubted() -> None:
    question = "A tin of nails costs 9 euros. How much is one nail?"

    assert cannot_be(question, "Divide by the number.\n", "<<calculator: 9/1>>")
    assert not cannot_be(
        "A car goes 9 km in 1 hour. What is its speed?", "Distance over time.\n", "<<calculator: 9/1>>"
    )


def test_an_element_is_no_share_of_itself() -> None:
    assert cannot_be("What share of blorbite is oxygen?", "", "<<calculator: round(2*15.999/31.998*100, 2)>>")
    assert not cannot_be("What share of water is oxygen?", "", "<<calculator: round(1*15.999/18.015*100, 2)>>")
