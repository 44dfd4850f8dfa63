"""A real HTTP server on 127.0.0.1 that answers as a test scripts it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CA = Path(__file__).parent / "tls" / "ca.pem"

Script = Callable[[BaseHTTPRequestHandler, int], None]  # the request, and how many came before


@dataclass
class Served:
    """Where the server answers, and the path and headers of each request.

    What it says of itself (`says`, by path; else 404) is asked for apart (`asked_itself`).
    """

    port: int
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    asked_itself: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    says: dict[str, bytes] = field(default_factory=dict)
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"


@contextmanager
def serving(
    script: Script, *, port: int = 0, tls: Callable[[object], object] | None = None
) -> Iterator[Served]:
    """Serve until the block ends; `tls` wraps the listening socket."""
    lock = threading.Lock()
    connections: list[socket.socket] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections.append(self.connection)

        def do_GET(self) -> None:
            if self.path.endswith(("/version", "/v1/models")):
                with lock:
                    served.asked_itself.append((self.path, dict(self.headers)))
                body = served.says.get(self.path)
                send(self, body or b"", 200 if body is not None else 404)
                return
            with lock:
                served.asked.append((self.path, dict(self.headers)))
                number = len(served.asked) - 1
            script(self, number)

        def do_POST(self) -> None:
            raise AssertionError("nobody may post")

        def log_message(self, *_: object) -> None:
            """Keep the output of tests clean."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None:
            """A client that leaves is part of what is tested."""

    server = Server(("127.0.0.1", port), Handler)
    served = Served(server.server_port)
    if tls is not None:
        server.socket = tls(server.socket)  # type: ignore[assignment]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        for connection in connections:  # a server that ends takes kept connections with it
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextmanager
def serving_tls(script: Script) -> Iterator[Served]:
    """Serve https, with a certificate that only the authority in CA vouches for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CA.with_name("server.pem"))

    def wrapped(sock: Any) -> ssl.SSLSocket:
        return context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)

    with serving(script, tls=wrapped) as served:
        served.scheme = "https"
        yield served


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    """Answer with a body; names of headers have _ for -."""
    named = {"Content_Type": "text/plain; version=0.0.4", "Content_Length": str(len(body))}
    handler.send_response(status)
    for name, value in {**named, **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def vllm_page(
    *,
    running: float = 4,
    waiting: float = 0,
    kv: float = 0.1,
    tokens: float = 1000,
    engine: str = "0",
    preemptions: float = 0,
) -> str:
    """Return the lines of one engine as vLLM 0.11 and later write them, those that matter here."""
    labels = f'{{engine="{engine}",model_name="m"}}'
    return "".join(
        f"# TYPE vllm:{name} {kind}\nvllm:{name}{labels} {value}\n"
        for name, kind, value in (
            ("num_requests_running", "gauge", running),
            ("num_requests_waiting", "gauge", waiting),
            ("kv_cache_usage_perc", "gauge", kv),
            ("num_preemptions_total", "counter", preemptions),
            ("prompt_tokens_total", "counter", tokens * 2),
            ("generation_tokens_total", "counter", tokens),
        )
    )
