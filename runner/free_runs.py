"""Which blocks of a pool are free, kept as runs so that a request can grow in place."""

from __future__ import annotations

from bisect import bisect_left, insort


class FreeRuns:
    """The maximal runs of free blocks of a pool of `num_blocks`."""

    def __init__(self, num_blocks: int) -> None:
        self._starts = [0]
        self._length = {0: num_blocks}
        self.total = num_blocks

    def extend(self, at: int, wanted: int) -> int:
        """Take up to `wanted` blocks that begin exactly at `at`; return how many there were."""
        taken = min(self._length.get(at, 0), wanted)
        if taken:
            self._take(at, at, taken)
        return taken

    def place(self, wanted: int) -> tuple[int, int]:
        """Take up to `wanted` adjacent blocks from the largest run; return start and count.

        A run's left neighbour is a request that grows into the run: leave it half of what is spare.
        """
        run = max(self._starts, key=self._length.__getitem__)
        spare = self._length[run] - wanted
        start = run + spare // 2 if spare > 0 and run > 0 else run
        taken = min(wanted, self._length[run])
        self._take(run, start, taken)
        return start, taken

    def give(self, start: int, count: int) -> None:
        """Return blocks, joining them to the free runs at both sides."""
        self.total += count
        at = bisect_left(self._starts, start)
        if at < len(self._starts) and self._starts[at] == start + count:
            count += self._remove(self._starts[at])
        if at > 0 and self._starts[at - 1] + self._length[self._starts[at - 1]] == start:
            start = self._starts[at - 1]
            count += self._remove(start)
        self._add(start, count)

    def _take(self, run: int, start: int, count: int) -> None:
        length = self._remove(run)
        self._add(run, start - run)
        self._add(start + count, run + length - start - count)
        self.total -= count

    def _add(self, start: int, length: int) -> None:
        if length:
            insort(self._starts, start)
            self._length[start] = length

    def _remove(self, start: int) -> int:
        self._starts.pop(bisect_left(self._starts, start))
        return self._length.pop(start)
