from ramet import RAMResource, SyncWorkspace

with SyncWorkspace({"/": RAMResource(quota=10 << 20)}) as ws:
    full = ws.execute("head -c 20M /dev/zero > /big")
    assert full.exit_code == 1 and "No space left" in full.error_text
