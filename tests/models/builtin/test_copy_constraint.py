"""What the guide of `solve` lets through, and that it never leaves a text without a way on."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taiwa.constraints.guide import Guide, GuideState, count_allowed, empty_mask
from taiwa.kernel.errors import InputError
from taiwa.models.builtin.copy_constraint import CopyGuide
from taiwa.models.builtin.prompts import TOOLS
from tests.models.builtin.small_model import tokens

TOKENS = tokens()
VOCABULARY = TOKENS.vocabulary
QUESTION = "What is the mass of 8 mol of citric acid, and of 12.5 mol?"
CITRIC = """Citric acid is C6H8O7.
<<molar_mass: C6H8O7>> 192.123 g/mol
<<calculator: 8*192.123>> 1536.984
Therefore, the answer is 1536.984 g."""


def taken(text: str, question: str = QUESTION, names: tuple[str, ...] = TOOLS) -> tuple[GuideState, str]:
    """The state behind as much of a text as may be written, and the rest."""
    state: GuideState = CopyGuide.for_question(question, names, VOCABULARY).start()
    mask = empty_mask(len(VOCABULARY))
    ids = TOKENS.encode(text)
    for place, token in enumerate(ids):
        state.mask(mask)
        let = bool(int(mask[token >> 5]) >> (token & 31) & 1)
        try:
            state = state.advance(token)
        except InputError:
            assert not let
            return state, TOKENS.decode(ids[place:])
        assert let, f"the mask has {TOKENS.decode([token])!r} not, behind {TOKENS.decode(ids[:place])!r}"
    return state, ""


@pytest.mark.parametrize(
    "text",
    [
        CITRIC,
        "I do not know the formula of ブルー酸.",
        "I can only work out quantities and chemistry.",
        "<<stoichiometry: Fe + O2 -> Fe2O3>> 4 Fe + 3 O2 → 2 Fe2O3\nTherefore, the answer is 4.",
        "<<stoichiometry: Na2CO3·10H2O = Na2CO3 + H2O>> 1",
        "<<calculator: round(min(3*1/1, 8/2)*100, 2)>> 300\nTherefore, the answer is 300 %.",
        "<<calculator: -(8 + 12.5)*-2^2 / 50%>> -3\nTherefore, the answer is -3.",
        "<<molar_mass: He>> 4.0026",
        "<<stoichiometry: 1.5 CH4(g) + ?O2(aq) -> C(s) + H2O(l)>> 3",
        "<<stoichiometry: Al^3+ + e^- -> Al>> Al^3+ + 3 e^- → Al",
        "<<stoichiometry: I2 + S2O3^2- -> I^- + S4O6^2->> I2",
        "Therefore, the answer is NH3 + HCl -> NH4Cl.",
        "<<molar_mass: Ca(OH)2>> 74.09 g/mol",
        "<<calculator: 2*pi*8>> 50.2654824574367\nTherefore, the answer is 50.2654824574367.",
        "They want 2 < 3 of".replace("<", "than"),
        "Therefore, the answer is $12.5.\nThat is all.",
    ],
)
def test_lets_whole_answers_through(text: str) -> None:
    state, rest = taken(text)
    assert rest == ""
    assert state.is_final


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<<calculator: 37*192.123>>", "7*192.123>>"),
        ("<<calculator: 12.55", "5"),
        ("<<calculator: 12.>>", ">>"),
        ("<<calculator: 8*>>", ">>"),
        ("<<calculator: (8>>", ">>"),
        ("<<calculator: 8)>>", ")>>"),
        ("<<calculator: >>", ">>"),
        ("<<calculator: 8 8", "8"),
        ("<<calculator: median(8)>>", "edian(8)>>"),
        ("<<molar_mass: water>>", "water>>"),
        ("<<molar_mass: XyO>>", "yO>>"),
        ("<<molar_mass: Na(Cl>>", ">>"),
        ("<<molar_mass: Na(s)>>", "s)>>"),
        ("<<stoichiometry: Na(a) -> Na>>", ") -> Na>>"),
        ("<<stoichiometry: Na(sl) -> Na>>", "l) -> Na>>"),
        ("<<molar_mass: NaCl + HCl>>", " + HCl>>"),
        ("<<stoichiometry: H2 + O2 ->>>", ">>"),
        ("<<search: x>>", "earch: x>>"),
        ("<calculator", "calculator"),
        ("Therefore, the answer is 99.", "9."),
        ("Therefore, the answer is about 8.", "about 8."),
        ("Therefore, the answer is 8.7", "7"),
        ("\x00", "\x00"),
        ("molar_mass: H2O>> 18.015", ">> 18.015"),
        ("H2 -> 2H>>", ">>"),
        ("Add them.\n\nThen", "\n\nThen"),
        ("\n8", "\n8"),
    ],
)
def test_stops_where_a_call_or_a_number_is_made_up(text: str, rest: str) -> None:
    found = taken(text)[1]
    assert found.strip() == rest.strip()


def test_knows_the_numbers_that_the_answer_has_brought() -> None:
    assert taken("Half of it weighs 73.21 g.\n<<calculator: 73.21*2>>")[1] == ""
    assert taken("<<calculator: 73.21*2>>")[1] != ""


def test_the_answer_is_a_number_of_a_result_where_there_is_one() -> None:
    text = "<<calculator: 8*12.5>> 100 g\nTherefore, the answer is "
    assert taken(f"{text}100 g.")[1] == ""
    assert taken(f"{text}12.5 g.")[1] == "2.5 g."
    assert taken("<<stoichiometry: H2 + O2 -> H2O>> 2 H2 + O2 → 2 H2O\nTherefore, the answer is 1.")[1] == ""


def test_behind_a_result_comes_a_new_line() -> None:
    begun = "<<calculator: 8*12.5>> 100"
    state = CopyGuide.for_question(QUESTION, TOOLS, VOCABULARY, begun).start()
    for token in TOKENS.encode(begun):
        state = state.advance(token)
    assert not state.is_final
    assert {TOKENS.decode([token])[0] for token in state.allowed() or ()} == {"\n"}


def test_no_number_goes_on_for_ever() -> None:
    assert taken("So it is " + "1" * 60)[1] == "1" * 35


def test_writes_only_calls_that_may_be_called() -> None:
    assert taken("<<molar_mass: H2>>", names=("molar_mass",))[1] == ""
    assert taken("<<molar_mass: H2>>", names=("calculator",))[1] == "molar_mass: H2>>"
    assert taken("<<", names=())[1] == "<<"


def test_the_rest_of_a_name_is_forced() -> None:
    state = taken("<<molar")[0]
    assert TOKENS.decode(state.forced()) == "_mass:"
    for token in state.forced():
        state = state.advance(token)
    assert state.forced() == ()
    assert taken("<<")[0].forced() == ()


def test_never_lets_half_a_character_end_a_text() -> None:
    state = taken("x")[0].advance(0xE3)
    assert not state.is_final
    with pytest.raises(InputError):
        state.advance(ord("x"))
    assert state.advance(0x83).advance(0x96).is_final


@pytest.mark.parametrize(("tool", "sign"), [("molar_mass", "·"), ("stoichiometry", "→"), ("stoichiometry", "·")])
def test_a_sign_of_a_formula_is_whole(tool: str, sign: str) -> None:
    state = taken(f"<<{tool}: Na")[0]
    for byte in sign.encode():
        for other in b"C>\xb7\x86\x92".replace(bytes([byte]), b""):
            if byte != sign.encode()[0]:  # at the first byte, much else may come
                with pytest.raises(InputError):
                    state.advance(other)
        state = state.advance(byte)
    assert state.advance(ord("C"))
    with pytest.raises(InputError):
        taken(f"<<{tool}: Na")[0].advance(0xB7)


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from([QUESTION, "", "数 3", "2 1/2"]), st.sets(st.sampled_from(TOOLS)))
def test_every_text_can_go_on_and_be_read(seed: int, question: str, names: set[str]) -> None:
    random = Random(seed)
    guide: Guide = CopyGuide.for_question(question, names, VOCABULARY)
    state = guide.start()
    favoured = [TOKENS.encode(text)[0] for text in ("<<", "calculator", "molar", ":", " ", "8", ">>", "C", "(", "*")]
    for _ in range(30):
        assert not state.is_dead
        tokens = state.allowed(len(VOCABULARY)) or ()
        liked = [token for token in tokens if token in favoured]
        token = random.choice(liked if liked and random.random() < 0.7 else tokens)
        after = state.advance(token)
        if token in VOCABULARY.end:
            VOCABULARY.decode(state.tokens).decode()
            assert after.is_ended
            return
        assert after.rollback(1) == state
        state = after


def test_refuses_what_is_no_token_and_what_follows_the_end() -> None:
    state = taken("x")[0]
    with pytest.raises(InputError, match="unknown token"):
        state.advance(len(VOCABULARY))
    with pytest.raises(InputError):
        state.advance(TOKENS.special["<solve>"])
    ended = state.advance(VOCABULARY.end[0])
    mask = np.ones_like(empty_mask(len(VOCABULARY)))
    ended.mask(mask)
    assert count_allowed(mask) == 0
    with pytest.raises(InputError, match="ended"):
        ended.advance(0)


def test_says_what_is_expected() -> None:
    assert "numbers of the question" in taken("<<calculator: 3")[0].explain(ord("7")).why
    assert taken("<<molar_mass: ")[0].explain().expected == "a chemical formula"


def test_constants_of_the_training_may_be_written() -> None:
    quantities = pytest.importorskip("training.builtin.quantities")
    for number in quantities.CONSTANTS:
        assert taken(f"<<calculator: {number}>>", question="")[1] == "", number


@pytest.mark.parametrize("domain", ["chemistry", "quantities"])
def test_what_the_model_learns_to_write_may_be_written(domain: str) -> None:
    shares = pytest.importorskip(f"training.builtin.{domain}").SHARES
    for kind, share in shares.items():
        random = Random(kind)
        for sample in (share.draw(random) for _ in range(3)):
            if sample.task == "solve":
                state, rest = taken(sample.text, sample.prompt)
                assert (rest, state.is_final) == ("", True), sample
