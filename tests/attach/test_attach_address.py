"""Addresses taken apart, and what of them may be shown."""

from __future__ import annotations

import base64

import pytest

from stallscope.errors import UsageError
from stallscope.profiler.attach.address import parse_address


@pytest.mark.parametrize(
    ("text", "shown", "target"),
    [
        ("http://gpu1:8000", "http://gpu1:8000/metrics", "/metrics"),
        ("http://gpu1:8000/", "http://gpu1:8000/metrics", "/metrics"),
        ("gpu1:8000", "http://gpu1:8000/metrics", "/metrics"),
        ("gpu1", "http://gpu1/metrics", "/metrics"),
        ("http://gpu1:80/metrics", "http://gpu1/metrics", "/metrics"),
        ("https://gpu1/a/metrics", "https://gpu1/a/metrics", "/a/metrics"),
        ("https://gpu1:443", "https://gpu1/metrics", "/metrics"),
        ("https://gpu1:80", "https://gpu1:80/metrics", "/metrics"),
        ("http://[::1]:8000", "http://[::1]:8000/metrics", "/metrics"),
        ("http://h:1/p?key=hidden", "http://h:1/p", "/p?key=hidden"),
        ("http://h:1/p#part", "http://h:1/p", "/p"),
        ("http://u:hidden@h:1", "http://h:1/metrics", "/metrics"),
        ("http://h/ü", "http://h/%C3%BC", "/%C3%BC"),
        ("http://bücher.example", "http://xn--bcher-kva.example/metrics", "/metrics"),
    ],
)
def test_address(text: str, shown: str, target: str) -> None:
    found = parse_address(text, path="/metrics")
    assert (found.shown, found.target) == (shown, target)
    assert "hidden" not in repr(found).replace(target, "")


def test_user_and_password_become_a_header() -> None:
    found = parse_address("http://us%40er:pa%3Ass@h", path="/")
    assert found.basic == "Basic " + base64.b64encode(b"us@er:pa:ss").decode()
    assert parse_address("http://h", path="/").basic is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "http://: names no host; give http://HOST:PORT"),
        ("http://", "http://: names no host; give http://HOST:PORT"),
        ("ftp://h", "ftp://h: give http:// or https:// and a host"),
        ("http://h:99999", "http://h:99999: is no URL; give http://HOST:PORT"),
        ("http://h:x", "http://h:x: is no URL; give http://HOST:PORT"),
        ("http://[::1", "http://[::1: is no URL; give http://HOST:PORT"),
        ("http://h\r\nX: y", "the URL holds blanks or control characters; give http://HOST:PORT"),
        ("ftp://u:hidden@h", "h: give http:// or https:// and a host"),
        ("http://u:hidden@h:x?key=hidden", "h:x: is no URL; give http://HOST:PORT"),
    ],
)
def test_no_address(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_address(text, path="/metrics")
    assert str(refused.value) == said
