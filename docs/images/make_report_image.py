"""The pictures of a report: `python docs/images/make_report_image.py [folder]`; needs playwright and Chromium."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from sklearn.datasets import load_breast_cancer

import everytree as et
from everytree.report import write_report


def photograph(page_path: Path, picture: Path, scheme: str) -> None:
    """The page from its first line to the end of its first section."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1060, "height": 900}, color_scheme=scheme)
        page.goto(page_path.as_uri())
        quality = page.locator("#quality").bounding_box()
        clip = {"x": 0, "y": 0, "width": 1060, "height": quality["y"] + quality["height"] + 14}
        page.screenshot(path=picture, clip=clip, full_page=True)
        browser.close()


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    table = load_breast_cancer(as_frame=True).frame
    table["diagnosis"] = table.pop("target").map({0: "malignant", 1: "benign"})
    model = et.MetaForestClassifier(random_state=0).fit(table.drop(columns="diagnosis"), table["diagnosis"])
    with tempfile.TemporaryDirectory() as place:
        page = write_report(model, table, Path(place) / "report.html", target="diagnosis")
        photograph(page, folder / "report.png", "light")
        photograph(page, folder / "report_dark.png", "dark")


if __name__ == "__main__":
    main()
