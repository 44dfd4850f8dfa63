"""Where a server answers: an address taken apart, and how it may be shown."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, quote, unquote, urlsplit

from stallscope.errors import UsageError

_PORTS = {"http": 80, "https": 443}
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, slots=True)
class Address:
    """One address of a server. `basic` is the user and password that it held, as a header's value.

    `target` is path and query. Neither `basic` nor the query is ever shown: both may be secrets.
    """

    scheme: str
    host: str
    port: int
    target: str
    basic: str | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """Return the address for people, without user, password and query."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target.partition('?')[0]}"


def parse_address(text: str, *, path: str) -> Address:
    """Take an address apart; one without a path gets `path`, one without a scheme is http.

    Raises UsageError, which shows nothing of a user or password.
    """
    given = text if "://" in text else f"http://{text}"
    safe = re.split(r"[?#]", given.rpartition("@")[2])[0]
    if _UNPRINTABLE.search(given):
        raise UsageError("the URL holds blanks or control characters; give http://HOST:PORT")
    try:
        parts = urlsplit(given)
        port = parts.port
        host = _ascii(parts.hostname or "")
    except ValueError as error:
        raise UsageError(f"{safe}: is no URL; give http://HOST:PORT") from error
    if parts.scheme not in _PORTS:
        raise UsageError(f"{safe}: give http:// or https:// and a host")
    if not host:
        raise UsageError(f"{safe}: names no host; give http://HOST:PORT")
    target = quote(parts.path, safe="%/:;,=@!$&'()*+~") if parts.path.strip("/") else path
    if parts.query:
        target += f"?{quote(parts.query, safe='%/:;,=@!$&()*+~?[]')}"
    return Address(parts.scheme, host, port or _PORTS[parts.scheme], target, _basic(parts))


def _ascii(host: str) -> str:
    return host if host.isascii() else host.encode("idna").decode("ascii")


def _basic(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
