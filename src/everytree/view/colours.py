"""The colours of all pictures, on light paper and on dark; no library for drawing is needed here."""

from __future__ import annotations

from dataclasses import dataclass

CLASS_COLOURS = ("#e8a33d", "#4f9d86", "#b5739d", "#7fb3d5", "#c8553d", "#dccb5c", "#5b5f97", "#b4b2ac")
"""One for each class, on any paper."""

DARK_INK = "#22252b"


@dataclass(frozen=True)
class Palette:
    """Colours that suit one paper, "#rrggbb"."""

    paper: str  # what is drawn on
    ink: str  # words and lines
    line: str
    # split probability 0, 1/8, ..., 1: equal steps along a straight line in OKLab, so that they look equally large
    splits: tuple[str, ...]

    @property
    def more(self) -> str:
        """The colour of what raises a prediction."""
        return self.splits[-1]

    @property
    def less(self) -> str:
        """The colour of what lowers a prediction."""
        return CLASS_COLOURS[0]

    def split(self, split_prob: float) -> str:
        """The colour of a split probability: the higher, the further from the paper."""
        place = min(max(split_prob, 0.0), 1.0) * (len(self.splits) - 1)
        left = min(int(place), len(self.splits) - 2)
        return mixed(self.splits[left], self.splits[left + 1], place - left)

    def faded(self, colour: str, node_prob: float, min_share: float = 0.25) -> str:
        """Mix a colour with the paper, the more the less likely its node is in the tree."""
        return mixed(self.paper, colour, min_share + (1.0 - min_share) * node_prob)


LIGHT = Palette(
    paper="#ffffff", ink=DARK_INK, line="#8a8f98",
    splits=("#f3efe2", "#d6d8d6", "#b9c1ca", "#9eabbe", "#8395b2", "#687fa5", "#4f6a98", "#36548b", "#1d3f7d"),
)  # fmt: skip
DARK = Palette(
    paper="#1c1f26", ink="#e8e6e0", line="#7c8390",
    splits=("#2a2e37", "#353d4b", "#414c61", "#4e5b77", "#5a6c8e", "#677ca6", "#748dbe", "#819ed7", "#8fb0f0"),
)  # fmt: skip


def class_colour(which: int) -> str:
    """Colour of one of `Drawing.classes`."""
    return CLASS_COLOURS[which % len(CLASS_COLOURS)]


def ink_on(colour: str) -> str:
    """White or dark ink, whichever is readable on a colour."""
    return "#ffffff" if is_dark(colour) else DARK_INK


def is_dark(colour: str) -> bool:
    """Whether white is easier to read on a colour than dark ink."""
    red, green, blue = _channels(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue < 140.0


def mixed(one: str, other: str, share: float) -> str:
    """Mix two colours; `share` is that of the second."""
    pairs = zip(_channels(one), _channels(other), strict=True)
    return "#" + "".join(f"{round((1.0 - share) * a + share * b):02x}" for a, b in pairs)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
