from ramet import S3Config, S3Resource, SyncWorkspace

config = S3Config(bucket="reports", region="eu-central-1")  # credentials of the environment or the machine
with SyncWorkspace({"/reports": S3Resource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /reports")
