"""What new tokens attend to, against counting the keys of each token one by one."""

from __future__ import annotations

import itertools

from stallscope.profiler.spec import attention_pairs, keys_read


def test_by_hand() -> None:
    # Tokens 5, 6, 7 after five earlier ones; whole context, then a window of 4: keys 2 … 7.
    assert (keys_read(5, 3, None), attention_pairs(5, 3, None)) == (8, 6 + 7 + 8)
    assert (keys_read(5, 3, 4), attention_pairs(5, 3, 4)) == (6, 4 + 4 + 4)
    # The window fills within the chunk: tokens 2, 3, 4, 5 see 3, 4, 4, 4 keys.
    assert (keys_read(2, 4, 4), attention_pairs(2, 4, 4)) == (6, 15)
    assert (keys_read(4095, 1, 4096), keys_read(4096, 1, 4096)) == (4096, 4096)


def test_every_small_case_by_counting() -> None:
    windows = [None, *range(1, 13)]
    for start, tokens, window in itertools.product(range(12), range(1, 12), windows):
        seen = [
            range(0 if window is None else max(0, p - window + 1), p + 1)
            for p in range(start, start + tokens)
        ]
        assert attention_pairs(start, tokens, window) == sum(map(len, seen))
        assert keys_read(start, tokens, window) == len(set().union(*seen))
