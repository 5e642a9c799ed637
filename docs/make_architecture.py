"""The picture of the packages in `architecture.md`, from their imports.

`python docs/make_architecture.py` makes it anew; the tests compare it with what the code says.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "everytree"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

FLOORS = [
    ["base"],
    ["tables", "trees", "families"],
    ["predictive"],
    ["posterior", "survival"],
    ["structure", "exact", "boosting"],
    ["sampling"],
    ["explaining"],
    ["models"],
    ["conformal"],
    ["fitting"],
    ["batches"],
    ["estimators", "view"],
    ["online"],
    ["files", "export"],
    ["report"],
    ["cli"],
]
"""From the bottom up. A package imports only from floors below its own; packages of one floor do not see each other."""


def package_imports() -> dict[str, set[str]]:
    """Which packages each package imports when it is imported itself."""
    found: dict[str, set[str]] = {package: set() for floor in FLOORS for package in floor}
    for package, others in found.items():
        for path in (PACKAGE / package).rglob("*.py"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("everytree."):
                    others.add(str(node.module).split(".")[1])
        others.discard(package)
    return found


def direct_imports() -> dict[str, set[str]]:
    """The same without what another import brings along anyway: the edges that are drawn."""
    every = package_imports()

    def reached(package: str) -> set[str]:
        return set().union(*({other} | reached(other) for other in every[package])) if every[package] else set()

    return {
        package: {other for other in others if not any(other in reached(via) for via in others - {other})}
        for package, others in every.items()
    }


def picture() -> str:
    """The floors, the highest on top, with an arrow from each package to those it stands on."""
    width, height, step = 150, 34, 62
    place = {
        package: (380 + (i - (len(floor) - 1) / 2) * 220, 30 + (len(FLOORS) - 1 - level) * step)
        for level, floor in enumerate(FLOORS)
        for i, package in enumerate(floor)
    }
    total = 2 * 30 + (len(FLOORS) - 1) * step + height
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {total}" font-family="sans-serif" font-size="15">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#777"/></marker></defs>',
    ]
    for package, others in sorted(direct_imports().items()):
        x, y = place[package]
        for other in sorted(others):
            to_x, to_y = place[other]
            bend = 0 if to_y - y <= step else (150 if (len(package) + len(other)) % 2 else -150)
            middle = f"{(x + to_x) / 2 + bend:.0f} {(y + height + to_y) / 2:.0f}"
            lines.append(
                f'<path d="M{x:.0f} {y + height} Q{middle} {to_x:.0f} {to_y}" fill="none" stroke="#777" '
                'marker-end="url(#tip)"/>'
            )
    for package, (x, y) in place.items():
        lines.append(
            f'<rect x="{x - width / 2:.0f}" y="{y}" width="{width}" height="{height}" rx="6" fill="#e0f2f1" '
            'stroke="#00796b"/>'
            f'<text x="{x:.0f}" y="{y + 22}" text-anchor="middle" fill="#004d40">{package}/</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture())
