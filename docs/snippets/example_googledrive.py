from ramet import GoogleDriveConfig, GoogleDriveResource, SyncWorkspace

config = GoogleDriveConfig(client_id="me.apps", client_secret_env="G_SECRET", refresh_token_env="G_REFRESH")
with SyncWorkspace({"/drive": GoogleDriveResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /drive")
