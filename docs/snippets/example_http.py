from ramet import HTTPConfig, HTTPResource, SyncWorkspace

config = HTTPConfig(base="https://docs.example.org/")
with SyncWorkspace({"/docs": HTTPResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /docs")
