"""Why there is no page, in words for people, and whether another try has a chance."""

from __future__ import annotations

import http.client
import re
import socket
import ssl

from stallscope.profiler.attach.body import BodyRefused


class FetchFailed(Exception):
    """There is no page; the message is the reason, without the address.

    `is_final` says that another try has no chance: the address, the access or the server is wrong.
    """

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


def is_final(error: Exception) -> bool:
    """Tell whether another try has no chance."""
    wrong = (ConnectionRefusedError, socket.gaierror, ssl.SSLError, BodyRefused)
    return isinstance(error, wrong) or _is_no_http(error)


def _is_no_http(error: Exception) -> bool:
    return isinstance(error, http.client.BadStatusLine | http.client.UnknownProtocol)


def reason_of(error: Exception) -> str:
    """Say what happened, without anything that the server or the user might keep secret."""
    match error:
        case BodyRefused():
            return str(error)
        case ConnectionRefusedError():
            return "connection refused: nothing listens there"
        case socket.gaierror():
            return "the host's name is not known here"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted ({error.verify_message}); name its CA by --ca"
        case ssl.SSLError():
            return f"no TLS there ({_words(error.reason or 'broken off')}); is it http://?"
        case http.client.IncompleteRead():
            return "the answer broke off before its end"
        case OSError():
            return error.strerror or "the connection failed"
        case _ if _is_no_http(error):
            return "what answers there speaks no HTTP"
    return "the answer is no sound HTTP"


def _words(code: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", code.lower()).strip()
