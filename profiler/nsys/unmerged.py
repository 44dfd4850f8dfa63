"""Changes of a database that lie in a file beside it, which a reader of the file alone misses."""

from __future__ import annotations

from pathlib import Path

from stallscope.errors import InputError

_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"  # of a rollback journal not yet settled


def check_merged(path: Path) -> None:
    """Refuse an export whose rows are partly in a -wal or are being taken back by a -journal.

    A whole export may be gigabytes, so that it is not copied for SQLite to put it together. See
    sqlite.org/fileformat2.html, sections 3 and 4.
    """
    wal, journal = Path(f"{path}-wal"), Path(f"{path}-journal")
    try:
        has_wal = wal.is_file() and wal.stat().st_size > 0
        has_journal = journal.is_file() and _is_hot(journal)
    except OSError as error:
        raise InputError(f"{path}: {error.filename} cannot be read ({error.strerror})") from error
    if has_wal:
        raise InputError(
            f"{path} is not whole: rows are still in {wal.name}; close the program that writes it, "
            f"or run: sqlite3 {path} 'PRAGMA wal_checkpoint(TRUNCATE)'"
        )
    if has_journal:
        raise InputError(
            f"{path} was being changed when its writer ended ({journal.name} is left): export the "
            "report again"
        )


def _is_hot(journal: Path) -> bool:
    with journal.open("rb") as file:
        return file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC
