"""Thresholds from a file, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallscope.analyzers.thresholds import Thresholds
from stallscope.app import call
from stallscope.errors import InputError
from stallscope.thresholds_file import read_thresholds


def written(folder: Path, text: str) -> Path:
    path = folder / "thresholds.toml"
    path.write_text(text)
    return path


def test_without_a_file_the_defaults_hold() -> None:
    assert read_thresholds(None) == Thresholds()


def test_keys_of_the_file_replace_defaults(tmp_path: Path) -> None:
    path = written(tmp_path, "dram_high = 0.7\nlimit_margin = 2\nmodel_error = -0.1\n")
    thresholds = read_thresholds(path)
    assert (thresholds.dram_high, thresholds.limit_margin) == (0.7, 2.0)
    assert (thresholds.model_error, thresholds.sm_low) == (-0.1, 0.30)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("dram_hihg = 0.7", "unknown key 'dram_hihg'; did you mean dram_high"),
        ("Near_Limits = 0.9", "unknown key 'Near_Limits'; did you mean near_limit"),
        ("qqqq = 0.7", "unknown key 'qqqq'; known: near_limit, sm_low, dram_high"),
        ("[rules]\nsm_low = 0.3", "unknown key 'rules'"),
        ("sm_low = '30 %'", "sm_low must be a number, not '30 %'"),
        ("sm_low = true", "sm_low must be a number, not True"),
        ("sm_low = nan", "sm_low must be from 0 to 1, not nan"),
        ("sm_low = 30", "sm_low must be from 0 to 1, not 30"),
        ("limit_margin = 0.9", "limit_margin must be from 1 to 100, not 0.9"),
        ("model_error = 0.05", "model_error must be from -1 to 0, not 0.05"),
        ("sm_low =", "not TOML"),
    ],
)
def test_wrong_file_is_refused_by_name(tmp_path: Path, text: str, complaint: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_thresholds(path)
    assert str(caught.value).startswith(f"--thresholds {path}: {complaint}")
    assert "\n" not in str(caught.value)


def test_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_thresholds(tmp_path / "none.toml")


def test_the_command_judges_by_the_file_and_prints_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of ten requests in flight wait: 0.2 of their time, at the line; above it with 0.25."""
    log = tmp_path / "server.log"
    line = (
        "Avg prompt throughput: 50.0 tokens/s, Avg generation throughput: 99.0 tokens/s, Running: "
    )
    line += "8 reqs, Waiting: 2 reqs, GPU KV cache usage: 20.0%, Prefix cache hit rate: 0.0%\n"
    log.write_text(
        "".join(f"INFO 02-03 10:00:{s} [loggers.py:9] Engine 000: {line}" for s in (10, 20, 30, 40))
    )
    assert call(["diagnose", str(log), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["load"] == "overloaded"
    path = written(tmp_path, "queue_wait_share = 0.25\n")
    assert call(["diagnose", str(log), "--thresholds", str(path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"]["load"] == "served"
    assert found["thresholds"]["queue_wait_share"] == 0.25
    path.write_text("queue_wait_shar = 0.25\n")
    assert call(["diagnose", str(log), "--thresholds", str(path)]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "did you mean queue_wait_share" in err
