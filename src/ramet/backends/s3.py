"""Public import path of `S3Resource`; the code is in `backends/objects/s3.py`."""

from ramet.backends.objects.s3 import S3Config as S3Config
from ramet.backends.objects.s3 import S3Resource as S3Resource
