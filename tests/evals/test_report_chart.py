"""A chart is a picture that opens and an SVG that any XML parser reads, whatever stands in its names."""

import sys
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from taiwa.evals.report import Bar, Chart, Point, Series, draw
from taiwa.kernel.errors import ConfigError, InputError

ODD = "モデル $x_{$ \\frac <b>&\x01\n" + "long " * 40
CHART = Chart(
    ODD, "accuracy, %", (Bar("a", Point(0, 50, 40, 60), 55), Bar(ODD, Point(0, 0, 0, 3.7))),
    (Series(ODD, (Point(5, 40, 30, 50), Point(20, 60, 50, 70))), Series("one", (Point(5, 1, 0, 2),))), "worked examples",
)  # fmt: skip
ONE_BAR = Chart("t", "%", (Bar("a", Point(0, 100, 90, 100)),))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    return draw(CHART, tmp_path_factory.mktemp("chart"))


def test_a_chart_is_drawn_in_both_forms(drawn: tuple[Path, ...]) -> None:
    png, svg = drawn

    assert png.read_bytes().startswith(b"\x89PNG\r\n")
    words = "".join(Xml.fromstring(svg.read_text(encoding="utf-8")).itertext())
    assert "モデル $x_{$ \\frac <b>&" in words
    assert "worked examples" in words


def test_the_same_chart_gives_the_same_svg(drawn: tuple[Path, ...], tmp_path: Path) -> None:
    assert draw(CHART, tmp_path, "again")[1].read_bytes() == drawn[1].read_bytes()


def test_one_bar_is_a_chart(tmp_path: Path) -> None:
    assert all(path.stat().st_size for path in draw(ONE_BAR, tmp_path, "one"))


def test_nothing_is_no_chart(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no bars"):
        draw(Chart("t", "%", ()), tmp_path)


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gone"):
        draw(ONE_BAR, tmp_path / "gone")


def test_without_the_extra_a_line_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(ConfigError, match="a chart needs the extra charts"):
        draw(CHART, tmp_path)
