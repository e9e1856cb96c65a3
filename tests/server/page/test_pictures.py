"""The pictures of the page in README and docs are taken from conversations in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from docs.page_pictures import FOLDER, ORDERS, take


@pytest.mark.parametrize("language", ORDERS)
def test_the_pictures_of_the_documents_are_taken(browser: Any, language: str, tmp_path: Path) -> None:
    take(browser, language, tmp_path)
    for picture in tmp_path.iterdir():
        assert (FOLDER / picture.name).exists()
        header = picture.read_bytes()[:24]
        assert header[:8] == b"\x89PNG\r\n\x1a\n"
        assert (int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")) == (1280, 800)
    assert (tmp_path / f"page-{language}.png").exists()
