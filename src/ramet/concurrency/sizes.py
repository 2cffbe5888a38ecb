"""Size thresholds: from which size on work leaves the event loop. The only place for them.

The promise behind them: work on up to 1 MiB or `MANY` items never holds the event loop for 20 ms. Above that
it runs in a thread (`concurrency.offload`) or in batches with `Budget.yield_turn()` between them; the loop may then be
held in proportion to the size, about a millisecond per megabyte, and a timeout or cancel lands within a second.
"""

from __future__ import annotations

from typing import Final

SMALL: Final = 64 * 1024
"""Bytes or characters that never need a limit check or an offload."""
LARGE: Final = 256 * 1024
"""Bytes or characters of one value from which on work on it is offloaded."""
HUGE: Final = 1024 * 1024
"""Bytes of a block of lines from which on work on it is offloaded; blocks of ordinary lines are smaller."""
MANY: Final = 20_000
"""Items from which on work over all of them is offloaded."""
BATCH: Final = 1024
"""Items that a loop handles between two calls of `Budget.yield_turn()`."""
LONG_SCRIPT: Final = 4096
"""Characters of a script from which on it is parsed and compiled in a thread: some 2 µs each."""
LONG_PATTERN: Final = 10_000
"""Bytes of a regular expression from which on compilation is offloaded."""
LONG_NUMBER: Final = 150
"""Digits of a number from which on a series (`bc -l`) is offloaded."""
