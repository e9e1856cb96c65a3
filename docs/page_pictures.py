"""Take the pictures of the page in docs/pictures: conversations with scripted answers, in a real browser.

Run `python docs/page_pictures.py` from the root; it needs Chromium.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.browser import chromium
from tests.orders import ordered
from tests.server.serving import serving

FOLDER = Path(__file__).parent / "pictures"
EN = (
    ("two lattes and a blueberry muffin, please", ordered("2 lattes and 1 blueberry muffin. Anything else?", _1=(2, "latte"), _2=(1, "blueberry muffin"))),
    ("make the muffin two", ordered("Now: 2 blueberry muffins. Anything else?", _2=(2, "blueberry muffin"))),
    ("add one espresso", ordered("1 espresso. Anything else?", _3=(1, "espresso"))),
)  # fmt: skip
JA = (
    ("抹茶ラテを二つと、チーズケーキを一つください。", ordered("抹茶ラテ2つとチーズケーキ1つですね。ほかにはいかがですか?", _1=(2, "matcha latte"), _2=(1, "cheesecake"))),
    ("あと、コーヒーを一つお願いします。", ordered("コーヒー1つですね。ほかにはいかがですか?", _3=(1, "coffee"))),
    ("あと、クロワッサンを一つください。", ordered("クロワッサン1つですね。ほかにはいかがですか?", _3=(1, "croissant"))),
)  # fmt: skip
ORDERS = {"en": ("en-US", EN), "ja": ("ja-JP", JA), "zh": ("zh-CN", EN)}


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as home, chromium() as browser:
        os.environ["XDG_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = home
        for language in ORDERS:
            take(browser, language, FOLDER)


def take(browser: Any, language: str, folder: Path) -> None:  # noqa: ANN401
    """Place an order, correct it, branch, and take the pictures of a language on the way."""
    from playwright.sync_api import expect

    locale, turns = ORDERS[language]
    first, second, instead = (said for said, _ in turns)
    with serving(*(answer for _, answer in turns)) as served:
        page = browser.new_context(locale=locale, viewport={"width": 1280, "height": 800}).new_page()
        page.goto(served.server.login_url)
        page.check("[name=app][value=order]")
        _say(page, first)
        _wait(page, 1)
        _say(page, second)
        _wait(page, 2)
        page.click("[data-edit='2']")
        page.fill("#edit-text", instead)
        if language == "en":
            page.wait_for_selector("#cost-answer:not(:empty)")
            page.screenshot(path=folder / "page-edit.png")
        page.click("#edit button[value=branch]")
        expect(page.locator(".elsewhere")).to_be_visible(timeout=60_000)
        _wait(page, 2)
        page.click("[data-act=verify]")
        expect(page.locator("#badge.good")).to_be_visible(timeout=60_000)
        page.click("#notices p:not(.hidden)")
        page.click("[data-why='items.1.name']")
        expect(page.locator("#why h2")).to_be_visible(timeout=60_000)
        page.screenshot(path=folder / f"page-{language}.png")
        if language == "en":
            page.click("#tab-tree")
            page.wait_for_selector("#panel[data-panel=tree]")
            page.screenshot(path=folder / "page-branches.png")
        page.context.close()


def _wait(page: Any, turns: int) -> None:  # noqa: ANN401
    """Wait until a number of turns is shown and no answer is in progress."""
    page.wait_for_function(
        "(n) => document.querySelectorAll('.turn').length === n && document.body.dataset.ready", arg=turns
    )


def _say(page: Any, text: str) -> None:  # noqa: ANN401
    page.fill("#text", text)
    page.press("#text", "Enter")


if __name__ == "__main__":
    main()
