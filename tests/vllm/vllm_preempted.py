"""Wait until a full KV pool has put requests back: `python vllm_preempted.py URL LEAST`."""

from __future__ import annotations

import sys

from vllm_page import Page, wait_until

FULL = 0.9


def main() -> None:
    """Return once at least so many wait while the pool is full."""
    least = int(sys.argv[2])

    def is_put_back(page: Page) -> bool:
        return page.kv_used >= FULL and page.waiting >= least

    wait_until(sys.argv[1], is_put_back)


if __name__ == "__main__":
    main()
