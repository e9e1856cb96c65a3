"""The check of the lines of a solution: what the question decides is put right, what cannot be is doubted."""

import pytest

from taiwa.models.builtin.line_check import (
    check_line,
    check_step,
    count_atoms,
    decided_spans,
    is_checkable,
    is_step_doubtful,
    lines_of,
    next_piece,
    next_step,
    steps_of,
)

MIXED = "How many moles of HF come out of 36 moles of F2 with 12 moles NH3?"
BALANCED = "<<stoichiometry: F2 + NH3 -> NF3 + HF>> 3F2 + NH3 -> NF3 + 3HF\n"
YIELD = "UF4 + 2 Mg -> U + 2 MgF2. 48 g of Mg gave 90 g of U. What is the percent yield?"


@pytest.mark.parametrize(
    ("question", "before", "written", "checked"),
    [
        (MIXED, BALANCED, "<<calculator: min(36*1/3, 12*1/3)>>", "<<calculator: min(36*3/3, 12*3/1)>>"),
        (MIXED, BALANCED, "<<calculator: min(7*1/3, 12*1/3)>>", "<<calculator: min(7*1/3, 12*1/3)>>"),
        (YIELD, "", "<<stoichiometry: UF4 + Mg -> U + MgF2>>", "<<stoichiometry: UF4 + 2 Mg -> U + 2 MgF2>>"),
        (
            YIELD,
            "<<stoichiometry: UF4 + 2 Mg -> U + 2 MgF2>> UF4 + 2Mg -> U + 2MgF2\n<<molar_mass: Mg>> 24.305 g/mol\n",
            "<<molar_mass: MgF2>>",
            "<<molar_mass: U>>",
        ),
        (
            "A molecule of two carbon atoms, 6 atoms of hydrogen and an oxigen atom: its mass?",
            "",
            "<<molar_mass: C2H6>>",
            "<<molar_mass: C2H6O>>",
        ),
        (
            "Percent of H in Na2CO3·10H2O?",
            "<<molar_mass: Na2CO3·10H2O>> 286 g/mol\n<<molar_mass: H>> 1 g/mol\n",
            "<<calculator: round(2*1/286*100, 2)>>",
            "<<calculator: round(10*2*1/286*100, 2)>>",
        ),
        ("What is [7+5]*4?", "", "<<calculator: 7+5*4>>", "<<calculator: (7+5)*4>>"),
        ("Compute (7/.7*.8)*.09!", "", "<<calculator: (7/.7*.09)*.09>>", "<<calculator: (7/.7*.8)*.09>>"),
        (
            "How many moles of CaO come out?",
            "Lime is CaO.\n<<stoichiometry: 2.5 Ca + 0.5 V2O5 -> V + ?CaO>> 5/2 Ca + 1/2 V2O5 -> V + 5/2 CaO\n",
            "Therefore, the answer is 5 mol.",
            "<<calculator: 5/2>>",
        ),
        (
            "What do 3 mol of H2O and 1 mol of SO2Cl2 give?",
            "<<stoichiometry: SO2Cl2 + H2O -> H2SO4 + SO2>> impossible: Cl is only on the left\n",
            "O of H2SO4 is from H2O.",
            "H of H2SO4 is from H2O.",
        ),
        (
            "8 moles of CH3NH2 and O2 give 20 moles of H2O and 8 moles of CO2. How many moles of O2?",
            "",
            "<<stoichiometry: ?O2 + 8CH3NH2 -> 20H2O + 4CO2 + 4N2>>",
            "<<stoichiometry: ?O2 + 8CH3NH2 -> 20H2O + 8CO2 + 4N2>>",
        ),
        (
            "Seven guests share 84 custoplurbers.",
            "<<calculator: 84/7>> 12\n",
            "Therefore, the answer is 12 custests.",
            "Therefore, the answer is 12 custoplurbers.",
        ),
        (
            "Eve sets 48 figs in rows of 6. How many rows are there, and how long are the rows?",
            "Divide.\n<<calculator: 48/6>> 8\n",
            "Therefore, the answer is 8 figs.",
            "Therefore, the answer is 8 rows.",
        ),
        (
            "A bun costs 3 euros. How many can Eve buy for 21 euros?",
            "Divide by the price.\n<<calculator: 21/3>> 7\n",
            "Therefore, the answer is 7 euros.",
            "Therefore, the answer is 7 buns.",
        ),
        ("How fast is a train that goes 30 km in 2 hours?", "", "Divide.", "Divide."),
        ("How fast is a train that goes 30 km in 2 hours?", "Divide.\n", "<<calculator: 30/2>>", "<<calculator: 30/2>>"),
    ],
)  # fmt: skip
def test_what_the_question_decides_is_put_right(question: str, before: str, written: str, checked: str) -> None:
    assert check_line(question, before, written) == checked
    assert check_line(question, before, checked) == checked


@pytest.mark.parametrize(
    ("question", "before", "right", "wrong"),
    [
        ("What do 2 mol of AsCl3 and H2O give?", "", "<<stoichiometry: AsCl3 + H2O -> H3AsO3 + HCl>>", "<<stoichiometry: AsCl3 + H2O -> H3AsO3>>"),
        ("How much HBr gives 1 mol of Br2 and 1 mol of H2?", "", "<<stoichiometry: ?HBr -> Br2 + H2>>", "<<stoichiometry: ?HBr + Br2 -> Br2 + H2>>"),
        ("How much H2O do 2 mol of HNO3 and NaOH give?", "", "<<stoichiometry: HNO3 + NaOH -> NaNO3 + H2O>>", "<<stoichiometry: HCl + NaOH -> NaCl + H2O>>"),
        ("What do nine moles of NH4Cl weigh?", "<<molar_mass: NH4Cl>> 53.49 g/mol\n", "<<calculator: 9*53.49>>", "Therefore, the answer is 53.49 g."),
        ("The mass percent of O in cresol?", "", "Cresol is CH3C6H4OH.", "<<molar_mass: Sb>>"),
        ("A man has 309 pens, gets 254 and sells 301 pens. How many pens has he?", "It changes.\n", "<<calculator: 309+254-301>>", "<<calculator: 309+254>>"),
        ("97 minus 5 x 8 minus 6", "Work it out.\n", "<<calculator: 97-5*8-6>>", "<<calculator: 97-5*6-8>>"),
        ("What is a rent of 400 pounds after it rises by 5 %?", "", "Add the share.", "Take the share off."),
        ("A meal is 60 dollars, the tip 12 percent. How much is the tip?", "", "The share of the price.", "The rest of the hundred."),
        ("Tom is 41 and Ann 12. How many years older is Tom?", "", "The difference is asked for.", "Add the years."),
        ("Count these: 12", "", "Multiply.", "A power."),
        ("How many mL are half a litre?", "Convert.\n", "<<unit_conversion: 0.5 L to mL>>", "<<unit_conversion: 0.5 mL to mL>>"),
        ("3,000円の靴が3割引です。いくら払いますか", "", "Take the share off.", "The share of the price."),
        ("By how much does a rent of 400 pounds that rises by 5 % change?", "", "The share of the price.", "Add the share."),
        ("A flat of 900 dollars gets 4 % dearer. What is to be paid?", "", "Add the share.", "The share of the price."),
        ("500 euros lie 3 years at 2% simple interest. What is the balance?", "Simple interest is the same every year.\n", "<<calculator: 500+500*2/100*3>>", "<<calculator: 500*2/100*3>>"),
        ("500 euros lie 3 years at 2% compound interest. How much interest is earned?", "Compound interest multiplies every year.\n", "<<calculator: 500*(1+2/100)^3-500>>", "<<calculator: 500*(1+2/100)^3>>"),
        ("How many dozen are 36 nails?", "A dozen is 12.\n", "<<calculator: 36/12>>", "<<calculator: 36*12>>"),
        ("How many nails are 3 dozen?", "A dozen is 12.\n", "<<calculator: 3*12>>", "<<calculator: 3/12>>"),
        ("Tom eats one quarter of 8 plums. How many is that?", "The part of the whole.\n", "<<calculator: 8*1/4>>", "<<calculator: 8*1/2>>"),
        ("Tom has 8 plums and eats 3/4. How many remain?", "", "The whole less the part.", "The part of the whole."),
        ("Ann has 8 plums and finds 3 more. How many has she?", "", "Add them.", "Add both."),
        ("A lawn has a length of 8 m and a width of 3 m. Its area?", "", "Area is length times width.", "The area is base times height."),
        ("Sand and lime are in the ratio 3:2. There are 9 kg of sand. How much lime?", "", "One part, times the parts asked for.", "Divide."),
        ("What change is due from 20 euros for 3 pens at 4 euros?", "", "Take the price from what is paid.", "Multiply, then add the rest."),
        ("Ann walks there at 3 km/h and back at 5 km/h. Her average speed?", "", "Equal ways: twice the product over the sum.", "Add them."),
        ("Tom fills 3 racks with 8 jars each and has 5 jars left.", "Multiply, then add the rest.\n", "<<calculator: 3*8+5>>", "<<calculator: 3*8+8>>"),
        ("A lamp has 12 V and 8 Ω. What is the current?", "", "Current is voltage divided by resistance.", "Resistance is voltage divided by current."),
        ("A cart of 8 kg goes at 3 m/s. Its kinetic energy?", "Kinetic energy is half of mass times velocity squared.\n", "<<calculator: 0.5*8*3^2>>", "<<calculator: 0.5*3*8^2>>"),
        ("A floor of 3 m by 4 m is painted; a can is enough for 6 m^2. How many cans?", "The area divided by what one covers.\n", "<<calculator: 3*4/6>>", "<<calculator: 3*1000/6>>"),
        ("A plot of 8 m by 3 m: its area?", "Area is length times width.\n", "<<calculator: 8*3>>", "<<calculator: 8+3>>"),
        ("A plot of 8 m by 3 m: its area?", "", "Area is length times width.", "Arean is long times wide."),
        ("The area of a coin with a radius of 2 cm?", "", "The area of a circle is pi times the radius squared.", "The circumference is 2 pi times the radius."),
        ("What percentage of 225 is 17?", "The share.\n", "<<calculator: 17/225*100>>", "<<calculator: 225/225*100>>"),
        ("By how much does a price fall from 407 to 289?", "", "<<calculator: 407-289>>", "<<calculator: 289-407>>"),
        ("How long do two trains going the same way take?", "", "The speeds are subtracted: same direction.", "The speeds are added: they go towards each other."),
        (
            "How many roses does one get for 544 euros at 34 euros each?",
            "<<calculator: 544/34>> 16\n",
            "Therefore, the answer is 16 roses.",
            "Therefore, the answer is 16 lessons.",
        ),
        (
            "A puck goes 90 metres in 15 minutes. How fast is it in metres a second?",
            "Speed is distance divided by time.\n",
            "<<calculator: 90/(15*60)>>",
            "<<calculator: 90/15>>",
        ),
        ("Ann has 25 nuts. She finds 8 more and sells 4 of them. How many are left?", "Work through what happens.\n", "<<calculator: 25+8-4>>", "<<calculator: 25-8+4>>"),
        ("There are 27 bells and the number triples.", "Multiply.\n", "<<calculator: 27*3>>", "<<calculator: 27*1>>"),
        ("Rita is 15 and Eva is thrice as old as Rita. How old is Eva?", "", "Triple means times 3.", "Twice means times 2."),
        ("Hana and Klaus divide 264 points in the ratio 7:1. What is Hana's share?", "The whole.\n", "<<calculator: 264/(7+1)*7>>", "<<calculator: 264/(7+1)*1>>"),
        ("Nuts and figs are mixed in the ratio 8 to 9; 54 g of figs are used. How many grams of nuts?", "One part.\n", "<<calculator: 54/9*8>>", "<<calculator: 54/8*9>>"),
        ("460 g of water and 24 g of salt are mixed. What percent of it is salt?", "The part.\n", "<<calculator: round(24/(24+460)*100, 2)>>", "<<calculator: round(460/(24+460)*100, 2)>>"),
        ("What is 9 times the sum of 174 and 55?", "Add, then multiply.\n", "<<calculator: 9*(174+55)>>", "<<calculator: 9*174+55>>"),
        ("A motor of 446 kg runs at 66 m/s. Its momentum?", "Multiply.\n", "<<calculator: 446*66>>", "<<calculator: 446*6>>"),
        ("My trousers cost 40 dollars and were reduced by 30 percent.", "Take the share off.\n", "<<calculator: 40*(100-30)/100>>", "<<calculator: 30*(100-30)/100>>"),
        ("What is 2 to the power of 10?", "A power.\n", "<<calculator: 2^10>>", "<<calculator: 10^2>>"),
        ("There are 56 gloves. How many pairs is that?", "", "A pair is 2.", "A number is missing: I cannot work this out."),
        ("A boat makes 27 km/h and the river 3 km/h. How fast is it downstream?", "", "With the stream the speeds are added.", "Against the stream its speed is taken away."),
        ("What is the extra amount if a box costs 68 pounds without tax and the tax is 30%?", "", "The share of the price.", "Add the share."),
        ("A round table has a diameter of 30 ft. How long is the way around it?", "", "The circumference is pi times the diameter.", "The circumference is 2 pi times the radius."),
        ("How many rupees are 30 pounds, at 158 pounds per rupee?", "", "Divided by the rate.\n<<calculator: 30/158>>", "Times the rate.\n<<calculator: 30*158>>"),
        (
            "A car goes 840 km at 28 km/s. How long does it take?",
            "Time is distance divided by speed.\n<<calculator: 840/28>> 30\n",
            "Therefore, the answer is 30 s.",
            "Therefore, the answer is 30 h.",
        ),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_is_doubted(question: str, before: str, right: str, wrong: str) -> None:
    assert not is_step_doubtful(question, before, right)
    assert is_step_doubtful(question, before, wrong)


def test_a_solution_falls_into_lines_and_the_rests_of_calls() -> None:
    text = "Water is H2O.\n<<molar_mass: H2O>> 18 g/mol\nTherefore, the answer is 18 g/mol."

    assert [line for _, line in lines_of(text)] == [
        "Water is H2O.", "<<molar_mass: H2O>>", "Therefore, the answer is 18 g/mol.",
    ]  # fmt: skip
    for end in range(14, len(text)):  # as it is written, nothing is taken for a line that is none yet
        piece = next_piece(text[:end], 14, is_ended=False)
        assert piece is None or not piece.is_line or piece.text == "<<molar_mass: H2O>>"


def test_what_is_decided_is_not_the_networks_own() -> None:
    solution = f"{BALANCED}<<calculator: min(36*3/3, 12*3/1)>> 36\nTherefore, the answer is 36 mol."

    assert [solution[start:end] for start, end in decided_spans(MIXED, solution)] == ["3", "3", "3", "1"]


def test_a_calculation_that_cannot_be_read_is_not_taken_from_the_question() -> None:
    assert check_line("0.1.2.3 + 4", "", "<<calculator: 1+4>>") == "<<calculator: 1+4>>"
    assert check_line("7/0 + 2", "", "<<calculator: 7/0.5>>") == "<<calculator: 7/0 + 2>>"
    assert check_line("What is 2+ 3 ?", "", "<<calculator: 2+2>>") == "<<calculator: 2+ 3>>"


def test_endless_questions_are_not_checked() -> None:
    assert not is_checkable("9" * 400 + " atoms of hydrogen")
    assert not is_checkable("1," * 40)
    assert not is_checkable("a train " * 400)
    assert is_checkable(MIXED)


def test_many_signs_do_not_hold_up_a_check() -> None:
    question = "1" * 30 + "+ (" * 600

    assert check_line(question, "", "<<calculator: 1+1>>") == "<<calculator: 1+1>>"


def test_a_bracket_that_nothing_opens_is_passed_over() -> None:
    assert count_atoms("Fe)2", "Fe") == "1*2"


def test_words_and_the_call_behind_them_are_one_step() -> None:
    text = "Divide.\n<<calculator: 6/2>> 3\nTherefore, the answer is 3."

    assert [step for _, step in steps_of(text)] == ["Divide.\n<<calculator: 6/2>>", "Therefore, the answer is 3."]
    for end in range(len(text)):  # as it is written, no step ends before it is known what follows
        step = next_step(text[:end], 0, is_ended=False)
        assert step is None or step.text == "Divide.\n<<calculator: 6/2>>"


def test_a_step_ends_in_its_first_line_that_is_changed() -> None:
    question, step = "3ガロンは何リットルですか?", "I do not know this unit: I cannot convert it."

    assert check_step(question, "", step) == "Convert."
    assert (
        check_step(question, "", "Convert.\n<<unit_conversion: 3 gallons to cm>>")
        == "Convert.\n<<unit_conversion: 3 gallons to L>>"
    )
