"""`Watcher`: report which directories changed, so that a commit can skip the rest.

- The answer is never too small: every change before the call is in it. A marker file is created and awaited, as the
  system reports in order. When that fails (no marker, too many events, watching ended), the answer is None, and the
  whole directory is scanned.
- The first answer is None as well: earlier changes are unknown.
"""

from __future__ import annotations

import os
import secrets
import threading
from typing import Final

from ramet.backends.local.disk import TEMP_PREFIX
from ramet.core.errors import missing_extra
from ramet.store.commit.stat_cache import StatCache

MARKER_SECONDS: Final = 2.0
"""Seconds to wait for the marker."""
MAX_EVENTS: Final = 4096
"""Events in one batch from which on some may have been lost."""


class Watcher:
    """Watches one host directory in a thread until it is closed. Needs the extra `watch`."""

    def __init__(self, root: str) -> None:
        try:
            import watchfiles
        except ImportError:
            raise missing_extra("watch", "watching a directory") from None
        self._watch = watchfiles.watch
        self.root = os.path.realpath(root)
        self._lock = threading.Condition()
        self._changed: set[str] = set()
        self._markers: set[str] = set()
        self._lost = True
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ramet-watch", daemon=True)
        self._thread.start()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self.close()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            batches = self._watch(
                self.root, watch_filter=None, debounce=5, step=1, stop_event=self._stop, rust_timeout=100,
                raise_interrupt=False, recursive=True, ignore_permission_denied=False,
            )  # fmt: skip
            for batch in batches:
                with self._lock:
                    if len(batch) >= MAX_EVENTS:
                        self._lost = True
                    for _, path in batch:
                        if os.path.basename(path).startswith(TEMP_PREFIX):
                            self._markers.add(path)
                        else:
                            self._changed.add(path)
                    self._lock.notify_all()
        finally:
            with self._lock:
                self._stop.set()
                self._lock.notify_all()

    def _wait_for_marker(self) -> bool:
        """Wait until all earlier changes are reported; False when that cannot be known."""
        marker = f"{self.root}/{TEMP_PREFIX}{secrets.token_hex(8)}"
        try:
            with open(marker, "xb"):
                pass
            with self._lock:
                return self._lock.wait_for(lambda: marker in self._markers or self._stop.is_set(), MARKER_SECONDS) and (
                    not self._stop.is_set()
                )
        except OSError:
            return False
        finally:
            if os.path.exists(marker):
                os.unlink(marker)

    def take(self, cache: StatCache) -> set[bytes] | None:
        """Return the directories that `commit_directory` must scan; None for all of them."""
        whole = self._wait_for_marker()
        with self._lock:
            changed, self._changed = self._changed, set()
            lost, self._lost = self._lost or not whole, not whole
            self._markers.clear()
        if lost:
            return None
        dirty = {b""}
        for path in changed:
            where = os.fsencode(path[len(self.root) :])
            if where in cache.folders or os.path.isdir(path):
                # A replaced directory invalidates everything below it.
                beneath = where + b"/"
                dirty.add(where)
                dirty.update(folder for folder in cache.folders if folder.startswith(beneath))
            while where:
                where = where.rpartition(b"/")[0]
                dirty.add(where)
        return dirty
