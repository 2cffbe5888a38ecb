from ramet import MountMode, RAMResource, SyncWorkspace

with SyncWorkspace({"/reference": (RAMResource(), MountMode.READ)}) as ws:
    refused = ws.execute("echo x > /reference/file")
    assert refused.exit_code == 1 and "Read-only file system" in refused.error_text
