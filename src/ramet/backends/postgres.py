"""Public import path of `PostgresResource`; the code is in `backends/databases/postgres.py`."""

from ramet.backends.databases.postgres import PostgresConfig as PostgresConfig
from ramet.backends.databases.postgres import PostgresResource as PostgresResource
