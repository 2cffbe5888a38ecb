from ramet import LangfuseConfig, LangfuseResource, SyncWorkspace

config = LangfuseConfig(public_key="pk-lf-1", secret_key_env="LANGFUSE_SECRET")
with SyncWorkspace({"/traces": LangfuseResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /traces")
