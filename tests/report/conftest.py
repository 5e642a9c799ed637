"""Models to report on, fitted once, and a browser to look at reports with."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest

from everytree.report import write_report
from report_cases import models


@pytest.fixture(scope="session")
def fitted():
    """One model of each kind, which tests only read."""
    return models()


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium, where there is one."""
    sync_api = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no Chromium here")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


class Visitor:
    """Someone with the page open, and everything it complained about."""

    def __init__(self, browser, path, **options) -> None:
        self.page = browser.new_page(**options)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def enter(self, model, row) -> None:
        """The values of one row into the panel; NaN and None are missing, other text is new."""
        for k, value in enumerate(row):
            box = self.page.locator(f".field[data-input='{k}']")
            typed = box.locator("input[id^=value]")
            if typed.count() == 0:
                self._choose(box.locator("select"), value)
            elif pd.isna(value):
                box.locator("input[type=checkbox]").set_checked(True)
            else:
                if box.locator("input[type=checkbox]").count():
                    box.locator("input[type=checkbox]").set_checked(False)
                typed.fill(value.isoformat() if isinstance(value, pd.Timestamp) else repr(float(value)))
        self.settle()

    def _choose(self, select, value) -> None:
        if value is None or (isinstance(value, float) and np.isnan(value)):
            select.select_option("missing")
        elif select.locator("option").first.inner_text() == "any value":
            select.select_option("0")
        elif isinstance(value, bool | np.bool_):
            select.select_option(label="yes" if value else "no")
        else:
            known = value in select.locator("option").all_inner_texts()
            select.select_option(label=value) if known else select.select_option("new")

    def settle(self) -> None:
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def probs(self) -> list[float]:
        lines = self.page.locator("#prediction tr")
        found = {int(line.get_attribute("data-class")): float(line.get_attribute("data-value")) for line in lines.all()}
        return [found[c] for c in range(len(found))]

    def numbers(self) -> dict[str, float]:
        items = self.page.locator("#prediction [data-name]").all()
        return {item.get_attribute("data-name"): float(item.get_attribute("data-value")) for item in items}

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()


@pytest.fixture
def visit(browser, tmp_path):
    """Opens the report of a model; at the end no page may have complained or asked for anything elsewhere."""
    visitors: list[Visitor] = []

    def open_page(model, table=None, target=None, **options) -> Visitor:
        path = write_report(model, table, tmp_path / "report.html", target=target)
        visitors.append(Visitor(browser, path, **options))
        return visitors[-1]

    yield open_page
    for visitor in visitors:
        assert visitor.complaints == []
        assert all(url.startswith("file:") for url in visitor.requests)
        visitor.page.close()
