"""Public import path of `HTTPResource`; the code is in `backends/remote/http.py`."""

from ramet.backends.remote.http import HTTPConfig as HTTPConfig
from ramet.backends.remote.http import HTTPResource as HTTPResource
