"""`stallscope attach` beside the GPUs of a server on this machine."""

from __future__ import annotations

from pathlib import Path

from replay import Replay, missing

from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture

SERVER = """
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from stallscope.app import call

class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
            self.wfile.write(f'vllm:{{name}}{{{{engine="0"}}}} 1\\n'.encode())
    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{{server.server_port}}"
sys.exit(call(["attach", url, "--duration", "2.5", "--capture", {path!r}, *{more!r}]))
"""


def attached(replay: Replay, folder: Path, scenario: str, *more: str) -> Capture:
    path = folder / "attached.sqlite"
    done = replay.run(SERVER.format(path=str(path), more=more), scenario)
    assert done.returncode == 0, done.stderr
    return read_capture(path)


def test_every_gpu_is_sampled_once_a_second(replay: Replay, tmp_path: Path) -> None:
    capture = attached(replay, tmp_path, "two_gpus")
    used = {(s.device, s.value) for s in capture.device_samples if s.name == "memory_used_bytes"}
    # The scenario has 11 and 22 GB.
    assert used == {
        ("cuda:0 NVIDIA A100-SXM4-80GB", 11e9),
        ("cuda:1 NVIDIA A100-SXM4-80GB", 22e9),
    }
    assert 2 <= len({s.t_ns for s in capture.device_samples if s.device.startswith("cuda:0")}) <= 6
    assert capture.subject.device is not None
    assert capture.subject.device.name == "a100-sxm4-80gb"
    assert set(capture.meta["devices"]) == {device for device, _ in used}
    pages = [s.t_ns for s in capture.engine_samples]
    assert all(min(pages) <= s.t_ns <= max(pages) + 1.5e9 for s in capture.device_samples)
    assert not any("process_memory" in what for what in missing(capture))
    assert any("behind a tunnel" in str(e.data.get("sentence")) for e in capture.events)


def test_without_a_driver_the_reason_is_said_once(replay: Replay, tmp_path: Path) -> None:
    capture = attached(replay, tmp_path, "no_driver")
    reason, _ = missing(capture)["the GPU's counters"]
    assert reason == "NVML returned Driver Not Loaded"
    assert capture.device_samples == ()


def test_who_does_not_want_them(replay: Replay, tmp_path: Path) -> None:
    capture = attached(replay, tmp_path, "two_gpus", "--no-nvml")
    reason, how = missing(capture)["the GPU's counters"]
    assert reason == "--no-nvml was given"
    assert "nvidia-smi --query-gpu" in how
    assert capture.device_samples == ()
