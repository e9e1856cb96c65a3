"""A real browser for tests: Debian's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

ADDRESS_BAR = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup")
"""Features of the address bar that Chromium loads for each window; they would cost more than the page under test."""
DEFAULTS = ("AimEnabled", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch")
"""Features that Playwright disables itself; of several such lists Chromium uses the last."""


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium and yield Playwright's browser; skip without one, and fail without one on CI.

    The headless shell, which needs two thirds of the processor time.
    """
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if path is None:
        missing = "no browser: apt-get install chromium-headless-shell fonts-noto-cjk"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        without = f"--disable-features={','.join(ADDRESS_BAR + DEFAULTS)}"
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", without])
        try:
            yield browser
        finally:
            browser.close()
