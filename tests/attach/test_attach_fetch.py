"""Pages got from real servers, sound and otherwise."""

from __future__ import annotations

import gzip
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest
from scripted_server import CA, Script, send, serving, serving_tls

from stallscope.profiler.attach.access import Access
from stallscope.profiler.attach.address import parse_address
from stallscope.profiler.attach.failures import FetchFailed
from stallscope.profiler.attach.fetch import Answer, Fetcher, Patience

PAGE = b"a_metric 1\n"
SMALL = Patience(timeout_s=5, most_bytes=1 << 20)


def fetched(url: str, access: Access = Access(), patience: Patience = SMALL) -> Answer:  # noqa: B008
    fetcher = Fetcher(parse_address(url, path="/metrics"), access, patience)
    try:
        return fetcher.get()
    finally:
        fetcher.close()


def refusal(url: str, access: Access = Access(), patience: Patience = SMALL) -> tuple[str, bool]:  # noqa: B008
    with pytest.raises(FetchFailed) as failed:
        fetched(url, access, patience)
    return str(failed.value), failed.value.is_final


def page(handler: BaseHTTPRequestHandler, number: int) -> None:
    send(handler, PAGE)


@contextmanager
def speaking(data: bytes) -> Iterator[str]:
    """Answer each connection with the same bytes, whatever it asks, and close it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def speak() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(data)

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_page() -> None:
    ticks = itertools.count(100)
    with serving(page) as served:
        address = parse_address(served.url, path="/metrics")
        fetcher = Fetcher(address, clock=lambda: next(ticks))
        assert fetcher.get() == Answer(100, 200, "text/plain", PAGE)
        assert fetcher.get("/other").t_ns == 101
        fetcher.close()
    (path, headers), (other, _) = served.asked
    assert (path, other) == ("/metrics", "/other")
    assert headers["Accept-Encoding"] == "identity"
    assert headers["User-Agent"].startswith("stallscope/")
    assert "Authorization" not in headers


def test_a_connection_is_kept_and_opened_again_where_the_server_ended_it() -> None:
    ports = []

    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        ports.append(handler.client_address[1])
        send(handler, PAGE)
        if number == 1:  # as a server does that ends idle connections
            handler.close_connection = True

    with serving(script) as served:
        fetcher = Fetcher(parse_address(served.url, path="/metrics"))
        assert fetcher.get().body == fetcher.get().body
        time.sleep(0.1)
        assert fetcher.get().body == PAGE
        fetcher.close()
    assert ports[0] == ports[1] != ports[2]


def test_a_token_and_a_password_go_into_the_header() -> None:
    with serving(page) as served:
        fetched(served.url, Access(token="hidden"))
        fetched(served.url.replace("//", "//user:word@"))
    sent = [headers["Authorization"] for _, headers in served.asked]
    assert sent == ["Bearer hidden", "Basic dXNlcjp3b3Jk"]  # printf user:word | base64


def test_statuses_are_handed_on() -> None:
    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        send(handler, b"down", 503, Content_Type="text/html; charset=utf-8")

    with serving(script) as served:
        answer = fetched(served.url)
    assert (answer.status, answer.media) == (503, "text/html")


def redirecting(location: str, status: int = 307) -> Script:
    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        if handler.path == "/metrics/":
            send(handler, PAGE)
        else:
            send(handler, b"", status, Location=location)

    return script


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_on_the_same_server_is_followed_once(status: int) -> None:
    with serving(redirecting("/metrics/", status)) as served:
        fetcher = Fetcher(parse_address(served.url, path="/metrics"))
        assert [fetcher.get().body for _ in range(3)] == [PAGE] * 3
        fetcher.close()
    assert [path for path, _ in served.asked] == ["/metrics", *["/metrics/"] * 3]


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("http://elsewhere.example:1/m?key=hidden", "redirects to http://elsewhere.example:1/m"),
        ("//elsewhere.example/m", "redirects to what is no address"),
        ("http://127.0.0.1:1/m", "redirects to http://127.0.0.1:1/m"),
        ("/again", "more than 5 redirects"),
    ],
)
def test_a_token_is_not_carried_elsewhere(location: str, said: str) -> None:
    with serving(redirecting(location)) as served:
        reason, is_final = refusal(served.url, Access(token="hidden"))
    assert reason.startswith(said)
    assert is_final
    assert "hidden" not in reason


def test_gzip_and_chunks_are_read_though_nobody_asked() -> None:
    packed = gzip.compress(PAGE * 1000)

    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for piece in (packed[:50], packed[50:], b""):
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    with serving(script) as served:
        assert fetched(served.url).body == PAGE * 1000


def wrong_gzip(handler: BaseHTTPRequestHandler, number: int) -> None:
    send(handler, PAGE, Content_Encoding="gzip")


def half_gzip(handler: BaseHTTPRequestHandler, number: int) -> None:
    send(handler, gzip.compress(PAGE)[:-9], Content_Encoding="gzip")


def bomb(handler: BaseHTTPRequestHandler, number: int) -> None:
    send(handler, gzip.compress(bytes(64 << 20)), Content_Encoding="gzip")


def brotli(handler: BaseHTTPRequestHandler, number: int) -> None:
    send(handler, PAGE, Content_Encoding="br")


def cut_page(handler: BaseHTTPRequestHandler, number: int) -> None:
    send(handler, b"a_metr", Content_Length="1000")
    handler.close_connection = True


def cut_chunks(handler: BaseHTTPRequestHandler, number: int) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"b\r\na_met")
    handler.close_connection = True


def announced(handler: BaseHTTPRequestHandler, number: int) -> None:
    send(handler, b"", Content_Length=str(200 << 20))
    handler.close_connection = True


@pytest.mark.parametrize(
    ("script", "reason", "is_final"),
    [
        (wrong_gzip, "the answer says it is gzip, and is not", True),
        (half_gzip, "the answer broke off before its end", False),
        (bomb, "the answer has more than that; the most is 1 MiB", True),
        (brotli, "the answer is encoded in 'br', which nobody asked for", True),
        (cut_page, "the answer broke off before its end", False),
        (cut_chunks, "the answer broke off before its end", False),
        (announced, "the answer has 209,715,200 bytes; the most is 1 MiB", True),
    ],
)
def test_a_body_that_is_not_taken(script: Script, reason: str, is_final: bool) -> None:
    with serving(script) as served:
        assert refusal(served.url) == (reason, is_final)


def test_an_endless_body_is_refused_before_it_fills_the_memory() -> None:
    sent = []

    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(200):
            handler.wfile.write(bytes(1 << 20))
            sent.append(1)

    with serving(script) as served:
        assert refusal(served.url) == ("the answer has more than that; the most is 1 MiB", True)
    assert len(sent) < 100  # what fits between two sockets, of 200 MiB


@pytest.mark.parametrize(
    ("data", "reason", "is_final"),
    [
        (b"", "the server closed the connection without an answer", False),
        (b"SSH-2.0-OpenSSH\r\n", "what answers there speaks no HTTP", True),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200, "the answer is no sound HTTP", False),
    ],
)
def test_what_is_no_answer(data: bytes, reason: str, is_final: bool) -> None:
    with speaking(data) as url:
        assert refusal(url) == (reason, is_final)


def drip(handler: BaseHTTPRequestHandler, number: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(200):
        handler.wfile.write(b"#")
        time.sleep(0.05)


def silent(handler: BaseHTTPRequestHandler, number: int) -> None:
    time.sleep(10)


@pytest.mark.parametrize("script", [drip, silent])
def test_a_slow_server_is_given_up_in_time(script: Script) -> None:
    begin = time.monotonic()
    with serving(script) as served:
        assert refusal(served.url, patience=Patience(0.4)) == (
            "no whole answer within 0.4 s",
            False,
        )
        assert 0.35 < time.monotonic() - begin < 8


def test_a_slow_server_behind_tls_is_given_up_in_time_too() -> None:
    with serving_tls(drip) as served:
        reason = refusal(served.url, Access(ca=CA), Patience(0.4))
    assert reason == ("no whole answer within 0.4 s", False)


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert refusal(f"http://127.0.0.1:{port}") == (
        "connection refused: nothing listens there",
        True,
    )
    assert refusal("http://nobody.invalid") == ("the host's name is not known here", True)


def test_tls_with_its_authority_and_without() -> None:
    with serving_tls(page) as served:
        assert fetched(served.url, Access(ca=CA)).body == PAGE
        reason, is_final = refusal(served.url)
        plain, _ = refusal(served.url.replace("https", "http"))
    assert is_final
    assert reason.startswith("its certificate is not trusted (")
    assert reason.endswith("name its CA by --ca")
    assert plain in (
        "the server closed the connection without an answer",
        "Connection reset by peer",
    )
    with serving(page) as served:
        reason, is_final = refusal(served.url.replace("http:", "https:"))
    assert is_final
    assert reason.startswith("no TLS there (")
