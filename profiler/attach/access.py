"""What a server asks of whoever reads it: a token, and whose certificates are believed."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stallscope.errors import InputError

TOKEN_VARIABLE = "STALLSCOPE_BEARER_TOKEN"


@dataclass(frozen=True, slots=True)
class Access:
    """A bearer token, which is never shown, and the file of a certificate authority."""

    token: str | None = field(default=None, repr=False)
    ca: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return how a server's certificate is checked. Raises InputError for a file of none."""
        try:
            return ssl.create_default_context(cafile=self.ca)
        except (OSError, ssl.SSLError) as error:
            reason = "holds no certificate in PEM" if isinstance(error, ssl.SSLError) else ""
            said = reason or error.strerror or str(error)
            raise InputError(f"--ca {self.ca}: {said}") from error


def read_access(token_file: Path | None, ca: Path | None, environ: Mapping[str, str]) -> Access:
    """Return the token of a file, else of the environment, and the authority's file, both checked.

    Raises InputError; no message holds any part of a token.
    """
    token = environ.get(TOKEN_VARIABLE)
    where = TOKEN_VARIABLE
    if token_file is not None:
        where = f"--bearer-token-file {token_file}"
        try:
            token = token_file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{where}: is no text") from error
        except OSError as error:
            raise InputError(f"{where}: {error.strerror or error}") from error
    access = Access(None if token is None else _checked(token.strip(), where), ca)
    if ca is not None:
        access.context()
    return access


def _checked(token: str, where: str) -> str:
    if not token:
        raise InputError(f"{where}: is empty; it should hold the token and nothing else")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(f"{where}: is no token: one word of ASCII is expected")
    return token
