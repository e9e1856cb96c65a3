"""A genuine browser for tests: Debian's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium and yield Playwright's browser; skip without one, and fail without one on CI."""
    path = shutil.which("chromium")
    if path is None:
        missing = "no browser: apt-get install chromium fonts-noto-cjk"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
