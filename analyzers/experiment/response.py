"""How the time of a unit of work responds to a number that was varied, and how much of it does.

Two laws are told apart by what the setting is. More of a *resource* (bandwidth, clock, threads)
shrinks the part of the time that waits for it: t = a + b/x. More of a *burden* (bytes over a link,
requests with serial host work) lengthens it: t = a + b·x. In both the responding share is b's part
of the time at the point where it is largest (Amdahl, 1967, doi:10.1145/1465482.1465560).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Law = Literal["resource", "burden"]
NOISE = 0.05  # runs that differ by less than this are alike: the usual spread of repeated runs
LEAST_RATIO = 1.25  # a setting varied by less than this moves nothing that could be seen


@dataclass(frozen=True, slots=True)
class Response:
    """A fit over runs that differ only in the setting.

    `share` is the part of the time per unit of work that responds, where it is largest: at the
    least of a resource, at the most of a burden. Negative: more of a resource costs time, or more
    of a burden saves it. `slope` is seconds per unit of the burden (0 for a resource), `misfit` the
    largest relative distance of a run from the law, and `seen` whether a response of `share` 0.4
    would have stood out of the noise.
    """

    law: Law
    share: float
    slope: float
    misfit: float
    points: int
    seen: bool

    @property
    def is_flat(self) -> bool:
        return abs(self.share) < 2 * NOISE


def respond(law: Law, xs: Sequence[float], times: Sequence[float]) -> Response | None:
    """Fit the law to times (seconds of a unit of work) over values of a setting.

    None where the setting has fewer than two values, or a resource one that is not above zero.
    """
    x, t = np.array(xs, dtype=float), np.array(times, dtype=float)
    if len(set(xs)) < 2 or (law == "resource" and x.min() <= 0) or t.min() <= 0:
        return None
    ordinate = 1.0 / x if law == "resource" else x
    # Relative errors count: a slow run is not worth more than a fast one.
    matrix = np.stack([np.ones_like(ordinate), ordinate], axis=1) / t[:, None]
    (a, b), *_ = np.linalg.lstsq(matrix, np.ones_like(t), rcond=None)
    fitted = a + b * ordinate
    at = ordinate.max()
    largest = a + b * at
    share = float(b * at / largest) if largest > 0 else float(b * at / t.max())
    return Response(
        law=law,
        share=max(-1.0, min(1.0, share)),
        slope=float(b) if law == "burden" else 0.0,
        misfit=float(np.max(np.abs(fitted - t) / t)),
        points=len(xs),
        seen=_would_be_seen(ordinate),
    )


def _would_be_seen(ordinate: np.ndarray) -> bool:
    """Tell whether 0.4 of the time responding would move it by more than the noise."""
    least, most = float(ordinate.min()), float(ordinate.max())
    return most >= LEAST_RATIO * least and 0.4 * (1.0 - least / most) > NOISE
