"""A forked child inherits open captures: it must not write, close or unlock its parent's."""

from __future__ import annotations

import os
import sqlite3
from typing import Protocol
from weakref import WeakSet


class Inherited(Protocol):
    """Something open that a fork copies into the child."""

    def leave_to_parent(self) -> None:
        """Let go of it in the child."""


_open: WeakSet[Inherited] = WeakSet()


def left_to_parent(writer: Inherited) -> None:
    """Have the writer told in every child that is forked while it is in use."""
    _open.add(writer)


def keep_open(db: sqlite3.Connection) -> None:
    """Never close the connection in this process, not at its end either.

    SQLite forbids a child to close what its parent opened: it may take itself for the log's last
    user (sqlite.org/howtocorrupt.html, "Carrying an open database connection across a fork").
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(db))


def _leave_all() -> None:
    for writer in list(_open):
        writer.leave_to_parent()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
