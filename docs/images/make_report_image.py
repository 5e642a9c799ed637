"""The picture of a report: `python docs/images/make_report_image.py [folder]`; needs playwright and Chromium."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from sklearn.datasets import load_breast_cancer

import everytree as et
from everytree.report import write_report


def photograph(page_path: Path, picture: Path) -> None:
    """The sections from quality to the tree, as they first look."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1060, "height": 900})
        page.goto(page_path.as_uri())
        page.add_style_tag(content="#columns { display: none }")
        top, bottom = page.locator("#quality").bounding_box(), page.locator("#tree").bounding_box()
        clip = {"x": 0, "y": top["y"] - 14, "width": 1060, "height": bottom["y"] + bottom["height"] - top["y"] + 28}
        page.screenshot(path=picture, clip=clip, full_page=True)
        browser.close()


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    table = load_breast_cancer(as_frame=True).frame
    table["diagnosis"] = table.pop("target").map({0: "malignant", 1: "benign"})
    model = et.MetaForestClassifier(random_state=0).fit(table.drop(columns="diagnosis"), table["diagnosis"])
    with tempfile.TemporaryDirectory() as place:
        page = write_report(model, table, Path(place) / "report.html", target="diagnosis")
        photograph(page, folder / "report.png")


if __name__ == "__main__":
    main()
