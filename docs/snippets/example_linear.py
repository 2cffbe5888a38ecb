from ramet import LinearConfig, LinearResource, SyncWorkspace

config = LinearConfig(api_key_env="LINEAR_KEY")
with SyncWorkspace({"/linear": LinearResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /linear")
