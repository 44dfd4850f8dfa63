"""The KV cache: one preallocated tensor, given out in blocks, adjacent ones where possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from stallscope.profiler.spec import ModelSpec
from stallscope.runner.dtypes import torch_dtype
from stallscope.runner.free_runs import FreeRuns
from stallscope.runner.out_of_memory import out_of_memory


class KvPoolExhausted(Exception):
    """More blocks were asked for than are free: whoever schedules has miscounted."""


@dataclass(slots=True, eq=False)
class _Owned:
    """A request's blocks: runs of (first block, blocks), after `past` ones given back."""

    runs: list[tuple[int, int]] = field(default_factory=list)
    past: int = 0

    @property
    def reach(self) -> int:
        """Blocks from the request's beginning to the end of the last run."""
        return self.past + sum(count for _, count in self.runs)


@dataclass(frozen=True, slots=True)
class KvView:
    """One request's keys and values: per stretch of memory, K and V of each layer in turn.

    Each is [1, kv heads, n, d].
    """

    stretches: tuple[tuple[Tensor, ...], ...]

    def layer(self, index: int) -> tuple[Tensor, Tensor]:
        """Return K and V of a layer, in place if the request lies in one stretch."""
        if len(self.stretches) == 1:
            return self.stretches[0][2 * index], self.stretches[0][2 * index + 1]
        return self._joined(2 * index), self._joined(2 * index + 1)

    def _joined(self, place: int) -> Tensor:
        return torch.cat([stretch[place] for stretch in self.stretches], dim=2)


class KvPool:
    """Keys and values of exactly `num_blocks * block_size` tokens, owned by request.

    With a sliding window in the model a request keeps only what its next token can reach.
    """

    def __init__(
        self, spec: ModelSpec, num_blocks: int, block_size: int, dtype: str, device: str
    ) -> None:
        if num_blocks < 1 or block_size < 1:
            raise ValueError(f"a pool of {num_blocks} blocks of {block_size} tokens holds nothing")
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.sliding_window = spec.sliding_window
        self.dtype = torch_dtype(dtype)
        self.tokens = num_blocks * block_size
        shape = (spec.num_layers, 2, 1, spec.num_kv_heads, self.tokens, spec.head_dim)
        with out_of_memory("kv"):
            # zero_ touches every page now: a first touch must not fall into a measured step.
            self._data = torch.empty(shape, dtype=self.dtype, device=device).zero_()
        self._layers = [(layer[0, 0], layer[1, 0]) for layer in self._data.unbind(0)]
        self._free = FreeRuns(num_blocks)
        self._owned: dict[int, _Owned] = {}  # by request

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor itself."""
        return self._data.nbytes

    @property
    def bytes_per_token(self) -> int:
        """Bytes of one token's keys and values over all layers."""
        return self._data.nbytes // self.tokens

    @property
    def used_blocks(self) -> int:
        """Blocks owned by requests."""
        return self.num_blocks - self._free.total

    def ensure(self, request: int, tokens: int) -> None:
        """Own enough blocks for `tokens` tokens of a request, growing in place where possible."""
        owned = self._owned.setdefault(request, _Owned())
        runs = owned.runs
        needed = -(-tokens // self.block_size) - owned.reach
        if needed > self._free.total:
            raise KvPoolExhausted(
                f"request {request} needs {needed} more blocks, {self._free.total} are free"
            )
        if needed > 0 and runs:
            needed -= self._grow(runs, needed)
        while needed > 0:
            runs.append(self._free.place(needed))
            needed -= runs[-1][1]

    def _grow(self, runs: list[tuple[int, int]], needed: int) -> int:
        first, count = runs[-1]
        taken = self._free.extend(first + count, needed)
        runs[-1] = (first, count + taken)
        return taken

    def free(self, request: int) -> None:
        """Give a request's blocks back; one that owns none is left alone."""
        for first, count in self._owned.pop(request, _Owned()).runs:
            self._free.give(first, count)

    def slide(self, request: int, tokens: int) -> None:
        """Give back the blocks that the token after `tokens` ones, and all later, cannot reach."""
        if self.sliding_window is None:
            return
        owned = self._owned[request]
        given = max(0, tokens + 1 - self.sliding_window) // self.block_size - owned.past
        owned.past += given
        while given > 0:
            first, count = owned.runs.pop(0)
            gone = min(count, given)
            self._free.give(first, gone)
            if gone < count:
                owned.runs.insert(0, (first + gone, count - gone))
            given -= gone

    def slots(self, request: int, start: int, stop: int) -> list[int]:
        """Return where in the pool the request's tokens `start` to `stop` lie."""
        return [slot for a, b in self._stretches(request, start, stop) for slot in range(a, b)]

    def view(self, request: int, start: int, stop: int) -> KvView:
        """Return the keys and values `start` to `stop` of a request; writes show through."""
        return KvView(
            tuple(
                self._data.narrow(4, a, b - a).flatten(0, 1).unbind(0)
                for a, b in self._stretches(request, start, stop)
            )
        )

    def write(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store [tokens, kv heads, d] keys and values of one layer at `slots`."""
        for store, new in zip(self._layers[layer], (keys, values), strict=True):
            store.index_copy_(1, slots, new.transpose(0, 1).to(self.dtype))

    def _stretches(self, request: int, start: int, stop: int) -> Sequence[tuple[int, int]]:
        found = []
        owned = self._owned[request]
        before = owned.past * self.block_size  # tokens of the request in earlier runs
        if start < before:
            raise KvPoolExhausted(f"request {request} gave tokens {start} to {before} of KV back")
        for first, count in owned.runs:
            size = count * self.block_size
            a, b = max(start - before, 0), min(stop - before, size)
            if a < b:
                found.append((first * self.block_size + a, first * self.block_size + b))
            before += size
        if stop > before:
            raise KvPoolExhausted(f"request {request} owns {before} tokens of KV, not {stop}")
        return found
