"""Public import path of `DiskResource`; the code is in `backends/local/disk.py`."""

from ramet.backends.local.disk import DiskResource as DiskResource
