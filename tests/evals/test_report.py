"""Reports: a table that stays a table, and no figure of a model that plays what was written for it."""

from dataclasses import replace

from taiwa.evals.report import NO_FIGURE, Column, Report, percent, plain, table_cells, to_markdown, with_interval
from taiwa.evals.run import Header

HEADER = Header("reason", "a|b<i>.jsonl", "f" * 64, "tiny", "2026-01-01T00:00:00Z", "0.1 abc")
COLUMNS = (
    Column("setting", plain("setting")),
    Column("exact", with_interval("accuracy", "interval"), figure=True),
    Column("calls", plain("calls")),
)
LINES = ({"setting": "+ALL@20", "accuracy": 0.8584615, "interval": [0.816, 0.892], "calls": 1200},)
REPORT = Report(HEADER, LINES, COLUMNS, frozenset({"accuracy", "interval"}), ("A note.",), ("0.1 abc", "0.1 def+"))


def test_a_table_has_its_figures_with_their_intervals() -> None:
    assert table_cells(REPORT) == (["setting", "exact", "calls"], [["+ALL@20", "85.85 [81.6, 89.2]", "1,200"]])


def test_a_terminal_is_shown_the_main_columns() -> None:
    wide = replace(REPORT, columns=(*COLUMNS[:2], replace(COLUMNS[2], main=False)))

    assert table_cells(wide, narrow=True) == (["setting", "exact"], [["+ALL@20", "85.85 [81.6, 89.2]"]])
    assert len(table_cells(wide)[0]) == 3


def test_a_page_names_data_model_date_and_every_program_that_wrote_rows() -> None:
    page = to_markdown(REPORT)

    assert page.splitlines()[0] == "# reason: a\\|b&lt;i>.jsonl, tiny"
    assert "2026-01-01T00:00:00Z · taiwa 0.1 abc, 0.1 def+ · data SHA-256 ffffffffffffffff…" in page
    assert "| +ALL@20 | 85.85 [81.6, 89.2] | 1,200 |" in page
    assert "A note." in page


def test_a_scripted_model_has_no_figure_in_any_form() -> None:
    scripted = replace(REPORT, header=replace(HEADER, scripted=True))

    assert table_cells(scripted)[1] == [["+ALL@20", NO_FIGURE, "1,200"]]
    assert "85" not in to_markdown(scripted)
    told = scripted.to_json()
    assert told["scripted"] is True
    assert told["rows"] == [{"setting": "+ALL@20", "accuracy": None, "interval": None, "calls": 1200}]
    assert "scripted" in str(told["notes"])


def test_a_report_as_json_has_the_header_and_a_row_for_each_setting() -> None:
    told = REPORT.to_json()

    assert (told["model"], told["programs"]) == ("tiny", ["0.1 abc", "0.1 def+"])
    assert told["rows"] == [dict(LINES[0])]


def test_cells_say_what_is_not_known() -> None:
    assert plain("x")({}) == percent(None) == with_interval("x", "y")({}) == "–"
    assert plain("x")({"x": {"a": 2, "b": 1}}) == "2 a, 1 b"
    assert plain("x")({"x": {}}) == "0"
    assert plain("x")({"x": 0.5}) == "0.5"
