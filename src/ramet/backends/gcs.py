"""Public import path of `GCSResource`; the code is in `backends/objects/gcs.py`."""

from ramet.backends.objects.gcs import GCSConfig as GCSConfig
from ramet.backends.objects.gcs import GCSResource as GCSResource
