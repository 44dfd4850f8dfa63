"""A message is one line, whatever it quotes."""

from __future__ import annotations

from stallscope.errors import InputError, MissingDependency


def test_what_cannot_be_printed_is_spelled_out() -> None:
    said = str(InputError("caf\udce9: near \n\x01\x1b[0m\u2028: syntax error"))
    assert said == r"caf\udce9: near \n\x01\x1b[0m\u2028: syntax error"
    assert str(InputError("größer, 大き")) == "größer, 大き"
    assert str(MissingDependency("torch", "runner")).startswith("torch is not installed; ")
