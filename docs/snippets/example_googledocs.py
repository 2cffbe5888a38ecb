from ramet import GoogleDocsConfig, GoogleDocsResource, SyncWorkspace

config = GoogleDocsConfig(client_id="me.apps", client_secret_env="G_SECRET", refresh_token_env="G_REFRESH")
with SyncWorkspace({"/docs": GoogleDocsResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /docs")
