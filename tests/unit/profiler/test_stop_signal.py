"""A stop signal wakes its waiters once and for all, and lets them sleep until then."""

from __future__ import annotations

import threading
import time

from stallscope.profiler.stop_signal import StopSignal


def test_an_unset_signal_waits_its_time_out() -> None:
    signal = StopSignal()
    start_s = time.perf_counter()
    assert signal.wait(0.05) is False
    assert time.perf_counter() - start_s >= 0.049
    assert signal.wait(-1.0) is False  # late already


def test_setting_it_wakes_every_waiter_and_lasts() -> None:
    signal = StopSignal()
    woken: list[bool] = []
    waiters = [threading.Thread(target=lambda: woken.append(signal.wait(60))) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    signal.set()
    signal.set()
    for waiter in waiters:
        waiter.join(10)
    assert woken == [True, True, True]
    assert signal.wait(60) is True
