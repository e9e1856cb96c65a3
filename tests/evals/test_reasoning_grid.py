"""The settings are those of the paper's tables, or every combination of what was asked for, each once."""

import pytest

from taiwa.evals.reasoning import Grid, parse_ablations, parse_modes, parse_shots
from taiwa.kernel.errors import InputError

TOOLS = ("calculator", "stoichiometry", "molar_mass")


def names(grid: Grid) -> list[str]:
    return [setting.name for setting in grid.settings()]


def test_without_a_word_the_settings_are_those_of_the_paper() -> None:
    grid = Grid(TOOLS)

    assert names(grid) == [
        "Zero-Shot", "Zero-Shot+CoT", "Few-Shot@20", "Few-Shot+CoT@20", "+CAL@20", "+CRP@20", "+MML@20", "+ALL@20",
        "Few-Shot+CoT@5", "Few-Shot+CoT@10", "+ALL@5", "+ALL@10",
    ]  # fmt: skip
    assert grid.full == "+ALL@20"


def test_switched_off_means_withheld_or_not_shown() -> None:
    execution, exposure = Grid(TOOLS, (5,), ("none", "cal"), ("execution", "exposure")).settings()[3:5]

    assert (execution.name, execution.withheld) == ("+CAL@5", ("stoichiometry", "molar_mass"))
    assert (exposure.name, exposure.shown, exposure.withheld) == ("+CAL@5 exposure", ("calculator",), ())


def test_without_tools_the_model_imitates_them_or_does_not_know_them() -> None:
    found = {setting.name: setting for setting in Grid(TOOLS, (0, 5), ("none",), ("execution", "exposure")).settings()}

    assert found["Few-Shot+CoT@5"].withheld == TOOLS
    assert found["Few-Shot+CoT@5 exposure"].shown == ()
    assert found["Zero-Shot+CoT"].shown == found["Zero-Shot"].shown == found["Few-Shot@5"].shown == ()


def test_all_tools_are_one_setting_in_both_modes_and_every_order_another() -> None:
    grid = Grid(TOOLS, (5, 2), ("all",), ("execution", "exposure"), 3)

    assert names(grid) == [
        "+ALL@5", "+ALL@5 order 1", "+ALL@5 order 2", "+ALL@2", "+ALL@2 order 1", "+ALL@2 order 2",
    ]  # fmt: skip
    assert grid.full == "+ALL@5"


def test_where_not_all_tools_are_on_nothing_is_full() -> None:
    assert Grid(TOOLS, (5,), ("none", "cal")).full == ""


def test_other_tools_have_their_own_names() -> None:
    grid = Grid(("calculator", "unit_conversion"), None, ("unit_conversion", "all"))

    assert names(grid) == ["+UNIT_CONVERSION@20", "+ALL@20"]


def test_a_set_of_tools_has_one_name() -> None:
    assert parse_ablations("mml+CAL, calculator+molar_mass,cal,none,all", TOOLS) == ("cal+mml", "cal", "none", "all")


def test_lists_are_read_without_what_is_there_twice() -> None:
    assert parse_shots("0, 5,10,5") == (0, 5, 10)
    assert parse_modes("exposure,execution,exposure") == ("exposure", "execution")


@pytest.mark.parametrize("text", ["", ",", "1,", "-1", "1001", "９", "five", "1e2", "9" * 5000])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_shots(text)


@pytest.mark.parametrize("text", ["", "cal,", "cal+", "abc", "none+cal", "unit_conversion"])
def test_what_is_no_tool_of_it_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_ablations(text, TOOLS)
