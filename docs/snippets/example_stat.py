from ramet import Stat, SyncWorkspace

with SyncWorkspace() as ws:
    ws.execute("echo hello > /f")
    found: Stat = ws.dispatch("stat", "/f")
assert found.kind.value == "file" and found.size == 6
