"""The file of `attach --capture`: what was seen so far meanwhile, the whole in the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.output import note
from stallscope.traced import keep_capture

if TYPE_CHECKING:
    from stallscope.profiler.attach.interim import Interim
    from stallscope.profiler.capture import Capture


class Kept:
    """Keeps a watch at `path`, if one is wanted; `force` lets the whole replace what stands there.

    What was seen so far never does: see `Interim`.
    """

    def __init__(self, path: Path | None, *, force: bool) -> None:
        self._path = path
        self._force = force
        self._interim: Interim | None = None
        self._seen: Callable[[], Capture] | None = None

    def begin(self, seen: Callable[[], Capture]) -> None:
        """Keep what `seen` returns from now on, whenever `tell` is called and it is time to."""
        if self._path is None:
            return
        from stallscope.profiler.attach.interim import Interim

        self._interim, self._seen = Interim(self._path), seen
        self._say_failure()
        if self._interim.failure is None and self._interim.path != self._path:
            note(f"{self._path} is replaced at the end; until then {self._interim.path} is kept")

    def tell(self) -> None:
        """Keep what was seen so far, if it is time to."""
        if self._interim is None or self._seen is None or not self._interim.is_due:
            return
        self._interim.keep(self._seen)
        self._say_failure()

    def finish(self, capture: Capture) -> None:
        """Write the whole. Raises InputError where somebody else has written the file meanwhile."""
        if self._path is None or self._interim is None:
            return
        is_free = self._interim.path == self._path and self._interim.is_ours
        if is_free or (self._force and self._path.exists()):
            from stallscope.profiler.attach.interim import put_capture

            put_capture(self._path, capture)
            note(f"recorded {self._path}")
        else:
            keep_capture(self._path, capture, force=self._force)
        self._interim.drop()

    def _say_failure(self) -> None:
        if self._interim is not None and self._interim.failure is not None:
            note(f"--capture: nothing is kept before the end: {self._interim.failure}")
