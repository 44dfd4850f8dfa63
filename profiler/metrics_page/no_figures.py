"""Values of a page that no number is made of: NaN, an infinity, what no counter reaches, a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from stallscope.profiler.metrics_page.engines import quantities_of
from stallscope.profiler.metrics_page.scrape import Scrape
from stallscope.profiler.wording import counted


class Refused(NamedTuple):
    """How many of some pages hold such a value, and the last one, by metric."""

    pages: int
    values: Mapping[str, tuple[int, str]]

    def sentences(self) -> Iterator[str]:
        """Say of each metric what it reads and how often."""
        for metric, (count, value) in sorted(self.values.items()):
            often = "" if self.pages == 1 else f" on {count:,} of {counted(self.pages, 'page')}"
            yield f"{metric} reads {value}{often}: no figure, and left out."

    def reason(self, quantities: Sequence[str]) -> str | None:
        """Say why some quantities are not known, where it is for such a value."""
        for metric, (_, value) in sorted(self.values.items()):
            if set(quantities) & set(quantities_of(metric)):
                return f"{metric} reads {value}, which is no figure"
        return None


def refused(scrapes: Sequence[Scrape]) -> Refused:
    """Gather what pages hold of them."""
    found: dict[str, tuple[int, str]] = {}
    for scrape in scrapes:
        for metric, value in scrape.no_figures.items():
            found[metric] = found.get(metric, (0, ""))[0] + 1, value
    return Refused(len(scrapes), found)
