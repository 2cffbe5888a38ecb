from ramet import Limits, SyncWorkspace

with SyncWorkspace(limits=Limits(wall_time=5, output_bytes=1 << 20)) as ws:
    endless = ws.execute("while :; do :; done", timeout=0.2)
    assert endless.timed_out and endless.exit_code == 124
