"""Prometheus' HTTP API: a GET each, and answers as they are documented for version 1 of it.

https://prometheus.io/docs/prometheus/latest/querying/api/ (as Thanos, Mimir and VictoriaMetrics
have it too).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec

from stallscope.errors import InputError
from stallscope.profiler.attach.failures import FetchFailed
from stallscope.profiler.attach.fetch import Fetcher, replaced

Labels = Mapping[str, str]
MOST_POINTS = 11_000  # of a series in an answer; Prometheus refuses more
_LONGEST = 300
_T = TypeVar("_T")


class Series(NamedTuple):
    """A series: its labels (`__name__` among them), times in seconds since 1970, and values."""

    labels: Labels
    points: Sequence[tuple[float, str]]


class _Matrix(msgspec.Struct, gc=False):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Result(msgspec.Struct):
    result: list[_Matrix]


class _Envelope(msgspec.Struct):
    status: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""


class Api:
    """One server. Everything that it refuses is raised as InputError in one line."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        path, _, self._more = fetcher.address.target.partition("?")
        self._prefix = path.rstrip("/").removesuffix("/api/v1")
        self.shown = replaced(fetcher.address, self._prefix or "/").shown.rstrip("/")

    def series(self, match: str, start_s: float, end_s: float) -> list[dict[str, str]]:
        """Return the labels of every series that a selector finds in a stretch of time."""
        asked = {"match[]": match, "start": f"{start_s:.3f}", "end": f"{end_s:.3f}"}
        return self._decoded(self._get("series", asked), list[dict[str, str]])

    def raw(self, match: str, time_s: float, before_s: int) -> list[Series]:
        """Return the series of a selector as they were scraped, in the time before `time_s`."""
        asked = {"query": f"{match}[{before_s}s]", "time": f"{time_s:.3f}"}
        return self._matrix("query", asked)

    def range(self, query: str, *, start_s: float, end_s: float, step_s: float) -> list[Series]:
        """Return the series of an expression, a point each `step_s`; both ends count."""
        asked = {
            "query": query,
            "start": f"{start_s:.3f}",
            "end": f"{end_s:.3f}",
            "step": f"{step_s:.3f}",
        }
        return self._matrix("query_range", asked)

    def _matrix(self, name: str, asked: Mapping[str, str]) -> list[Series]:
        found = self._decoded(self._get(name, asked), _Result).result
        return [Series(row.metric, row.values) for row in found]

    def _get(self, name: str, asked: Mapping[str, str]) -> msgspec.Raw:
        query = "&".join(filter(None, (urlencode(asked), self._more)))
        try:
            answer = self._fetcher.get(f"{self._prefix}/api/v1/{name}?{query}")
        except FetchFailed as failed:
            raise InputError(f"{self.shown}: {failed}") from failed
        if answer.status in (401, 403):
            raise InputError(
                f"{self.shown}: HTTP status {answer.status}: it wants a token; give a file with it "
                "by --bearer-token-file"
            )
        try:
            envelope = msgspec.json.decode(answer.body, type=_Envelope)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InputError(
                f"{self.shown}: does not answer as Prometheus does (HTTP status {answer.status}); "
                "give the address of its API"
            ) from error
        if envelope.status != "success":
            said = " ".join((envelope.error or f"HTTP status {answer.status}").split())
            raise InputError(f"{self.shown}: Prometheus refuses: {said[:_LONGEST]}")
        return envelope.data

    def _decoded(self, raw: msgspec.Raw, kind: type[_T]) -> _T:
        try:
            return msgspec.json.decode(raw, type=kind)
        except msgspec.MsgspecError as error:
            raise InputError(
                f"{self.shown}: answers in a form that Prometheus' API has not: {error}"
            ) from error
