"""Public import path of `MongoResource`; the code is in `backends/databases/mongo.py`."""

from ramet.backends.databases.mongo import MongoConfig as MongoConfig
from ramet.backends.databases.mongo import MongoResource as MongoResource
