"""Names the colours that a merchant may give its pages. Their shades are in the pages' stylesheet.

Each has a shade for the light ground and one for the dark, and tests compute their contrast: at least 4.5 to 1 for
texts in the colour, and for texts on it (WCAG 2.2, AA).
"""

from __future__ import annotations

from typing import Final

ACCENTS: Final = (
    "teal", "blue", "indigo", "violet", "magenta", "rose", "red", "orange", "brown", "olive", "green", "slate",
)  # fmt: skip
