"""Public import path of `FsspecResource`; the code is in `backends/remote/fsspec.py`."""

from ramet.backends.remote.fsspec import FsspecResource as FsspecResource
