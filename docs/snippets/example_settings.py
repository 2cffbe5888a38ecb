from ramet import Limits, Settings, SyncWorkspace

settings = Settings(limits=Limits(wall_time=30), cache_bytes=64 << 20, sticky_options=True)
with SyncWorkspace(settings=settings) as ws:
    ws.execute("set -o pipefail")  # lasts beyond its call: `sticky_options`
    assert ws.execute("false | true").exit_code == 1
