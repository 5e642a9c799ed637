"""Models to report on, fitted once, and a browser to look at reports with."""

from __future__ import annotations

import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from everytree.report import contenders, write_report
from report_cases import models


@pytest.fixture(autouse=True, scope="package")
def small_plain_forests():
    """Makes the forests that reports of classes compare with small: they take most of the time of a page."""
    with pytest.MonkeyPatch.context() as small:
        small.setattr(contenders, "RandomForestClassifier", partial(RandomForestClassifier, 20))
        yield


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


# One message to the browser for a whole row: each message takes longer than what it asks for. The events are those of a
# person who types, ticks and chooses.
ENTER = """(values) => {
  const tell = (at) => ["input", "change"].forEach((name) => at.dispatchEvent(new Event(name, { bubbles: true })));
  values.forEach((value, k) => {
    const field = document.querySelector(`.field[data-input='${k}']`);
    const typed = field.querySelector("input[id^=value]"), box = field.querySelector("input[type=checkbox]");
    const select = field.querySelector("select");
    if (select) {
      const options = [...select.options], named = options.find((option) => option.text === value);
      const wanted = value === null ? "missing" : options[0].text === "any value" ? "0" : named ? named.value : "new";
      select.value = wanted;
      if (select.value !== wanted) throw Error(`column ${k} offers no ${value}`);
      tell(select);
    } else if (value === null) {
      box.checked = true;
      tell(box);
    } else {
      typed.value = typed.type === "date" ? value.slice(0, 10) : value;
      if (typed.value === "") throw Error(`column ${k} takes no ${value}`);
      tell(typed);
    }
  });
}"""


def as_typed(value) -> str | None:
    """A value as it is typed or chosen; None is missing."""
    if pd.isna(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    return value if isinstance(value, str) else repr(float(value))


class Visitor:
    """Someone with the page open, and everything it complained about."""

    def __init__(self, page, path) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._hear = {
            "console": lambda message: self.complaints.append(message.text),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "dialog": lambda dialog: self.complaints.append(dialog.message),
            "request": lambda request: self.requests.append(request.url),
        }
        for event, hear in self._hear.items():
            page.on(event, hear)
        page.goto(path.as_uri())

    def leave(self) -> None:
        """No page may have complained or asked for anything elsewhere."""
        for event, hear in self._hear.items():
            self.page.remove_listener(event, hear)
        assert self.complaints == []
        assert all(url.startswith("file:") for url in self.requests)

    def enter(self, row) -> None:
        """The values of one row into the panel; NaN and None are missing, other text is new."""
        self.page.evaluate(ENTER, [as_typed(value) for value in row])
        self.settle()

    def settle(self) -> None:
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def attributes(self, selector: str, *names: str) -> list[list[str]]:
        """Some attributes of each element that is found."""
        read = "(all, names) => all.map((one) => names.map((name) => one.getAttribute(name)))"
        return self.page.locator(selector).evaluate_all(read, names)

    def probs(self) -> list[float]:
        found = {int(c): float(value) for c, value in self.attributes("#prediction tr", "data-class", "data-value")}
        return [found[c] for c in range(len(found))]

    def numbers(self) -> dict[str, float]:
        found = self.attributes("#prediction [data-name]", "data-name", "data-value")
        return {name: float(value) for name, value in found}

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()


@pytest.fixture(scope="module")
def usual_page(browser):
    """One page for all that need no screen of their own: opening another takes longer than most tests."""
    page = browser.new_page()
    yield page
    page.close()


@pytest.fixture
def visit(browser, usual_page, tmp_path):
    """Opens the report of a model; at the end no page may have complained or asked for anything elsewhere."""
    visitors: list[Visitor] = []

    def open_page(model, table=None, target=None, **options) -> Visitor:
        path = write_report(model, table, tmp_path / f"report {len(visitors)}.html", target=target)
        visitors.append(Visitor(browser.new_page(**options) if options else usual_page, path))
        return visitors[-1]

    usual_page.mouse.move(0, 0)
    yield open_page
    for visitor in visitors:
        visitor.leave()
        if visitor.page is not usual_page:
            visitor.page.close()
