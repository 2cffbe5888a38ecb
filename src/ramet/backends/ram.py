"""Public import path of `RAMResource`; the code is in `backends/local/ram.py`."""

from ramet.backends.local.ram import RAMResource as RAMResource
