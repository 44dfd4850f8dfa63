"""The pass through a model that each thread is in, and on whose behalf it is recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Generic, TypeVar

from stallscope.runner.forward_timer import ForwardTimer

Seen = TypeVar("Seen")


@dataclass(slots=True)
class Claim:
    """Says that passes are recorded, until `is_over`: hooks may go while a pass still runs."""

    is_over: bool = False


class _Claims(threading.local):
    def __init__(self) -> None:
        self.by_owner: dict[int, Claim] = {}


_CLAIMS = _Claims()


class ThreadPass(threading.local, Generic[Seen]):
    """One thread's last pass through a model: other threads have passes of their own.

    A pass begun within one of the same owner, in the same thread, is part of that one.
    """

    def __init__(self, new_timer: Callable[[], ForwardTimer]) -> None:
        self.timer = new_timer()
        self.seen: Seen | None = None
        self.end_ns = 0
        self.range: AbstractContextManager[object] = nullcontext()
        self._is_open = False
        self._inner = 0

    def begin(self, owner: object, claim: Claim) -> bool:
        """Begin a pass; return whether it is one of its own."""
        holder = _CLAIMS.by_owner.get(id(owner))
        if holder is not None and not holder.is_over:
            self._inner += 1
            return False
        _CLAIMS.by_owner[id(owner)] = claim
        self._is_open = True
        return True

    def end(self, owner: object) -> bool:
        """End a pass; return whether it was one of its own that had begun."""
        if self._inner:
            self._inner -= 1
            return False
        if not self._is_open:  # what raised was another's hook, before the pass began
            return False
        self._is_open = False
        _CLAIMS.by_owner.pop(id(owner), None)
        return True
