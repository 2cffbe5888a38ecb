from ramet import GCSConfig, GCSResource, SyncWorkspace

config = GCSConfig(bucket="reports")  # or service_account_path="key.json"
with SyncWorkspace({"/reports": GCSResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /reports")
