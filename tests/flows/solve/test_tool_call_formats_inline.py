from dataclasses import replace

import pytest

from taiwa.flows.solve.tool_call_formats import CallMatch, InlineFormat
from taiwa.kernel.messages import ToolSpec
from taiwa.kernel.serialization import Json
from tests.steps import lines_run

NAMES = ("calculator", "molar_mass", "stoichiometry", "web_search")


INLINE = InlineFormat()


def first(text: str, protocol: InlineFormat = INLINE) -> tuple[str, str] | None:
    found = protocol.scanner(NAMES).feed(text)
    return (found.name, found.input) if found else None


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("14*2/108*100 << Calculator >>", ("calculator", "14*2/108*100")),
        ("The share is 14 * 2 / 108 x 100 <<Calculator>>", ("calculator", "14 * 2 / 108 x 100")),
        ("share = 14*2/108*100 = << calculator >>", ("calculator", "14*2/108*100")),
        ("So: $24 x 365 <<CALCULATOR>>", ("calculator", "$24 x 365")),
        ("The price is $24 x 365 = $<< Calculator >>", ("calculator", "$24 x 365")),
        ("is 3 x 4 = US$ << Calculator >>", ("calculator", "3 x 4")),
        ("so we need (1 + 2) * 3 is << Calculator >>", ("calculator", "(1 + 2) * 3")),
        ("合計は、１２×３ << Calculator >>", ("calculator", "１２×３")),
        ("sqrt(2) * 3 << Calculator >>", ("calculator", "sqrt(2) * 3")),
        ("We take 3 apples * 2 << Calculator >>", ("calculator", "We take 3 apples * 2")),
        ("It is 12 km + 3 km << Calculator >>", ("calculator", "It is 12 km + 3 km")),
        ("mixed 3:2 * 4 << Calculator >>", ("calculator", "3:2 * 4")),
        ("-3 + 5 << Calculator >>", ("calculator", "-3 + 5")),
        ("It is so. .5*10 << Calculator >>", ("calculator", ".5*10")),
        ("(as said) .5*10 << Calculator >>", ("calculator", ".5*10")),
        ("2 + 3\n<< Calculator >>", ("calculator", "2 + 3")),
        ("<< Calculator >>", ("calculator", "")),
        ("The molar mass of Fe2(SO4)3 is << Molar mass list >>", ("molar_mass", "Fe2(SO4)3")),
        ("H2O <<molar_mass>>", ("molar_mass", "H2O")),
        ("Molar mass of CuSO4 · 5H2O: << molar Mass >>", ("molar_mass", "CuSO4 · 5H2O")),
        ("CO の質量は NaCl << Molar mass list >>", ("molar_mass", "NaCl")),
        ("CuSO4のモル質量は << Molar mass list >>", ("molar_mass", "CuSO4")),
        ("the mass of h2o << Molar mass list >>", ("molar_mass", "h2o")),
        ("H2 + O2\nH2O\n<< Chemical reaction predictor >>", ("stoichiometry", "H2 + O2 -> H2O")),
        ("a line\nReactants: ?H2 + ?O2\n\nProducts: 2H2O\n<<stoichiometry>>", ("stoichiometry", "?H2 + ?O2 -> 2H2O")),
        ("Reactants: ?K, 3H2O\nProducts: 3KOH, ?H2.\n<<stoichiometry>>", ("stoichiometry", "?K + 3H2O -> 3KOH + ?H2")),
        ("反応物：K、H2O\n生成物：KOH、H2\n<<stoichiometry>>", ("stoichiometry", "K + H2O -> KOH + H2")),
        ("生成物：H2O\n反応物：H2 + O2\n<<stoichiometry>>", ("stoichiometry", "H2 + O2 -> H2O")),
        ("H2 + O2 -> H2O << Stoichiometry >>", ("stoichiometry", "H2 + O2 -> H2O")),
        ("We look up: tallest tower? << Web search >>", ("web_search", "tallest tower?")),
        ('With {"query": "a: b"} <<web-search>>', ("web_search", '{"query": "a: b"}')),
        ("what now << Periodic table >>", ("Periodic table", "what now")),
        ("a << b, so 3*4 << Calculator >>", ("calculator", "3*4")),
    ],
)
def test_the_input_stands_before_the_call(text: str, call: tuple[str, str]) -> None:
    assert first(text) == call


@pytest.mark.parametrize(
    "text",
    [
        "`1 << Calculator >>`",
        "```\n1 << Calculator >>",
        "cat << EOF >> log",
        "std::cout << x >> y",
        "<<calculator: 1+1>>",
        "1 << Calculator >",
        "1 <<\nCalculator >>",
    ],
)
def test_what_only_looks_like_a_call_is_none(text: str) -> None:
    assert first(text) is None


def test_the_next_call_on_a_line_begins_behind_the_last_result() -> None:
    protocol = InlineFormat()
    scanner = protocol.scanner(NAMES)
    scanner.feed("10 / 4 << Calculator >>")
    scanner.skip(protocol.write_result("2.5"))

    assert scanner.feed("* 3 << Calculator >>") == CallMatch("calculator", "* 3", 20, 16)
    scanner.skip(protocol.write_result("error"))
    assert scanner.feed("<< Calculator >>") == CallMatch("calculator", "", 16, 16)


def test_an_unfinished_call_is_open() -> None:
    scanner = InlineFormat().scanner(NAMES)
    scanner.feed("1+1 << Calculator")

    assert scanner.open
    assert scanner.feed(" ") is None
    assert scanner.open
    scanner.feed("or not\n")
    assert not scanner.open


@pytest.mark.parametrize(
    ("name", "text", "after", "written"),
    [
        ("calculator", "14*2", "", "14*2 << Calculator >>"),
        ("calculator", "14*2", "The share is ", "14*2 << Calculator >>"),
        ("calculator", "14*2", "In units of 10 ", "\n14*2 << Calculator >>"),
        ("molar_mass", "H2O", "The mass of ", "H2O << Molar mass list >>"),
        ("stoichiometry", "H2 + O2 -> H2O", "We balance:", "\nH2 + O2\nH2O\n<< Chemical reaction predictor >>"),
        ("stoichiometry", "H2 + O2 → H2O", "We balance:\n", "H2 + O2\nH2O\n<< Chemical reaction predictor >>"),
        ("web_search", "who?", "And so ", "\nwho? << Web search >>"),
    ],
)
def test_a_call_is_written_so_that_its_input_is_read_again(name: str, text: str, after: str, written: str) -> None:
    assert InlineFormat().write_call(name, text, after) == written
    assert first(after + written) == (name, text.replace("→", "->"))


def test_titles_and_readings_can_be_given() -> None:
    protocol = InlineFormat(aliases=(("Rechner", "calculator"),), inputs=(("web_search", "expression"),))

    assert first("Es sind 3*4 << rechner >>", protocol) == ("calculator", "Es sind 3*4")
    assert first("find 3*4 << Web search >>", protocol) == ("web_search", "3*4")
    assert protocol.write_call("calculator", "3*4") == "3*4 << Rechner >>"


def test_a_tool_that_is_switched_off_is_still_called_by_its_title() -> None:
    found = InlineFormat().scanner(["molar_mass"]).feed("3*4 << Calculator >>")

    assert found
    assert (found.name, found.input) == ("calculator", "3*4")


def test_a_tool_is_called_by_its_own_name_before_another_tools_title() -> None:
    protocol = replace(InlineFormat(), aliases=(("Web search", "calculator"),))

    assert first("3*4 << Web search >>", protocol) == ("web_search", "3*4")


def test_the_instructions_show_every_tool_as_it_is_called() -> None:
    string: Json = {"type": "string"}
    tools = [
        ToolSpec("calculator", "Work out.", {"type": "object", "properties": {"expression": string}}),
        ToolSpec("stoichiometry", "Balance.", {"type": "object", "properties": {"equation": string}}),
    ]

    assert (
        InlineFormat()
        .instructions(tools)
        .endswith(
            "Tools:\n- expression << Calculator >>: Work out.\n"
            "- reactants, products on a line each, then << Chemical reaction predictor >>: Balance."
        )
    )


@pytest.mark.parametrize("piece", ["1", " ", "A", "(", "x", "= ", "- ", "is", "·", "(aq)", "1. ", "は"])
@pytest.mark.parametrize("title", ["Calculator", "Molar mass", "Stoichiometry", "Web search"])
def test_a_line_costs_no_more_than_its_length(piece: str, title: str) -> None:
    def read(count: int) -> None:
        assert first(f"{piece * count}?\n{piece * count}! << {title} >>")

    assert lines_run(read, 20_000) <= 10 * lines_run(read, 2_000)
    read(100_000)
