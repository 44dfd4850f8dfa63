"""A pattern to look for in lines, most of which hold nothing of it."""

from __future__ import annotations

import re
from typing import NamedTuple

NUMBER = r"(\d{1,12}(?:\.\d{1,6})?)"  # as engines print gauges and rates


class Sought(NamedTuple):
    """A pattern, and plain texts of which every match holds one, up to `before` letters behind its
    start: to find those takes a tenth of the time of a search with the pattern.
    """

    pattern: re.Pattern[str]
    texts: tuple[str, ...]
    before: int = 0

    def search(self, line: str) -> re.Match[str] | None:
        """Return the first match, as the pattern alone would."""
        first = -1
        for text in self.texts:
            if text in line:  # half the time of a find, and mostly untrue
                at = line.find(text)
                first = at if first < 0 else min(at, first)
        return None if first < 0 else self.pattern.search(line, max(0, first - self.before))

    def number(self, line: str) -> float | None:
        """Return the first group of the first match as a number."""
        found = self.search(line)
        return float(found.group(1)) if found is not None else None


def sought(pattern: str, *texts: str, before: int = 0) -> Sought:
    """Compile a pattern."""
    return Sought(re.compile(pattern), texts, before)
