"""`Watcher`: which folders of a directory changed since it was last asked, so that a commit need not look at the rest.

Rules that this file keeps:
- The answer is never too small. A change that happened before the question is in the answer: a marker file is made and
  waited for, and the system reports in order. Whenever that cannot be promised (the marker does not show up, too much
  happened at once, the watching ended), the answer is None, and the whole directory is looked at.
- The first answer after the start is None as well: nobody saw what happened before.
"""

from __future__ import annotations

import os
import secrets
import threading
from typing import Final

from ramet.backends.local.disk import TEMP_PREFIX
from ramet.core.errors import missing_extra
from ramet.store.commit.stat_cache import StatCache

WAIT: Final = 2.0
"""Seconds after which a marker that nobody reports is given up."""
FLOOD: Final = 4096
"""Changes in one answer of the system from which on some may have been lost."""


class Watcher:
    """Watches one host directory from a thread until it is closed. Needs the extra `watch`."""

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
                    if len(batch) >= FLOOD:
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

    def _settled(self) -> bool:
        """Make sure that everything until now was reported."""
        marker = f"{self.root}/{TEMP_PREFIX}{secrets.token_hex(8)}"
        try:
            with open(marker, "xb"):
                pass
            with self._lock:
                return self._lock.wait_for(lambda: marker in self._markers or self._stop.is_set(), WAIT) and (
                    not self._stop.is_set()
                )
        except OSError:
            return False
        finally:
            if os.path.exists(marker):
                os.unlink(marker)

    def take(self, cache: StatCache) -> set[bytes] | None:
        """The folders that `commit_directory` has to look at; None for all of them."""
        whole = self._settled()
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
                # A directory may have been replaced by another one: nothing below it can be taken for known.
                beneath = where + b"/"
                dirty.add(where)
                dirty.update(folder for folder in cache.folders if folder.startswith(beneath))
            while where:
                where = where.rpartition(b"/")[0]
                dirty.add(where)
        return dirty
