"""Public import path of `RedisResource`; the code is in `backends/databases/redis.py`."""

from ramet.backends.databases.redis import RedisResource as RedisResource
