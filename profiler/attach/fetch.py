"""One GET after another from one server, over one connection while it holds."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stallscope import __version__
from stallscope.errors import UsageError
from stallscope.profiler.attach.access import Access
from stallscope.profiler.attach.address import Address, parse_address
from stallscope.profiler.attach.body import BodyRefused, read_body
from stallscope.profiler.attach.deadline import Deadline
from stallscope.profiler.attach.failures import FetchFailed, is_final, reason_of

# Of a page of metrics as of an answer of Prometheus. A vLLM server of eight ranks shows 1 MB.
MOST_BYTES = 32 * 2**20
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5
# A page in gzip costs the server's own event loop, which may be what is slow.
_HEADERS: Mapping[str, str] = {
    "Accept": "text/plain;version=0.0.4, application/json;q=0.9, */*;q=0.1",
    "Accept-Encoding": "identity",
    "User-Agent": f"stallscope/{__version__}",
}


_Origin = tuple[str, str, int]


class Answer(NamedTuple):
    """A whole answer; `t_ns` is when its headers came: a page is made right before.

    `media` is the type without parameters.
    """

    t_ns: int
    status: int
    media: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one GET may take in all, and how large its answer may be."""

    timeout_s: float = 5.0
    most_bytes: int = MOST_BYTES


class Fetcher:
    """Gets pages of one server. Not for several threads at a time.

    Redirects are followed on the same host and port, and from there to its https: a token goes
    nowhere else. `clock` is monotonic, in nanoseconds.
    """

    def __init__(
        self,
        address: Address,
        access: Access = Access(),  # noqa: B008 (frozen)
        patience: Patience = Patience(),  # noqa: B008 (frozen)
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.address = address
        self._access = access
        self._patience = patience
        self._clock = clock
        self._connection: http.client.HTTPConnection | None = None
        self._origin: _Origin | None = None  # of the connection

    def get(self, target: str | None = None) -> Answer:
        """Return the page at a path, by default the address' own; raises FetchFailed.

        A status other than 200 is returned too: what it means is the caller's to say.
        """
        address = self.address if target is None else replaced(self.address, target)
        for _ in range(_MOST_REDIRECTS):
            answer, location = self._try_twice(address)
            if answer.status not in _REDIRECTS or location is None:
                return answer
            address = self._redirected(address, location)
            if target is None:
                self.address = address
        raise FetchFailed(f"more than {_MOST_REDIRECTS} redirects", is_final=True)

    def close(self) -> None:
        """Close the connection; the next page opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _redirected(self, address: Address, location: str) -> Address:
        """Return where a redirect leads, on the same host."""
        if location.startswith("/") and not location.startswith("//"):
            return replaced(address, location)
        try:
            there = parse_address(location, path="/")
        except UsageError as error:
            raise FetchFailed("redirects to what is no address", is_final=True) from error
        is_upgrade = there.host == address.host and (there.scheme, there.port) == ("https", 443)
        if _origin(there) != _origin(address) and not is_upgrade:
            raise FetchFailed(f"redirects to {there.shown}; give that address", is_final=True)
        return Address(there.scheme, there.host, there.port, there.target, address.basic)

    def _try_twice(self, address: Address) -> tuple[Answer, str | None]:
        """Get a page; where the server has closed a kept connection meanwhile, over another."""
        if self._connection is not None and self._origin == _origin(address):
            try:
                return self._exchange(self._connection, address)
            except _Stale:
                pass  # a server ends connections that it does not want to keep
        self.close()
        self._connection, self._origin = self._connect(address), _origin(address)
        try:
            return self._exchange(self._connection, address)
        except _Stale as error:
            self.close()
            raise FetchFailed("the server closed the connection without an answer") from error

    def _connect(self, address: Address) -> http.client.HTTPConnection:
        timeout_s = self._patience.timeout_s
        if address.scheme == "http":
            return http.client.HTTPConnection(address.host, address.port, timeout=timeout_s)
        context = self._access.context()
        return http.client.HTTPSConnection(
            address.host, address.port, timeout=timeout_s, context=context
        )

    def _exchange(
        self, connection: http.client.HTTPConnection, address: Address
    ) -> tuple[Answer, str | None]:
        headers = {**_HEADERS, **self._authorization(address)}
        is_kept = connection.sock is not None
        deadline = Deadline(connection, self._patience.timeout_s)
        try:
            with deadline:
                connection.request("GET", address.target, headers=headers)
                with connection.getresponse() as response:
                    t_ns = self._clock()
                    body = read_body(response, self._patience.most_bytes)
        except (ConnectionError, http.client.BadStatusLine) as error:
            self._drop(error, deadline)
            if is_kept or isinstance(error, http.client.RemoteDisconnected):
                raise _Stale from error
            raise FetchFailed(reason_of(error), is_final=is_final(error)) from error
        except (OSError, http.client.HTTPException, ValueError, BodyRefused) as error:
            self._drop(error, deadline)
            raise FetchFailed(reason_of(error), is_final=is_final(error)) from error
        if response.will_close:
            self.close()
        media = response.headers.get_content_type() if "Content-Type" in response.headers else ""
        answer = Answer(t_ns, response.status, media, body)
        return answer, response.headers.get("Location")

    def _drop(self, error: Exception, deadline: Deadline) -> None:
        """Close what failed; raise FetchFailed where it is for the time."""
        self.close()
        if deadline.has_passed or isinstance(error, TimeoutError):
            told = f"no whole answer within {self._patience.timeout_s:g} s"
            raise FetchFailed(told) from error

    def _authorization(self, address: Address) -> dict[str, str]:
        if self._access.token is not None:
            return {"Authorization": f"Bearer {self._access.token}"}
        return {} if address.basic is None else {"Authorization": address.basic}


class _Stale(Exception):
    """The connection ended before any answer."""


def _origin(address: Address) -> _Origin:
    return address.scheme, address.host, address.port


def replaced(address: Address, target: str) -> Address:
    """Return the same server's address of another path."""
    return Address(address.scheme, address.host, address.port, target, address.basic)
