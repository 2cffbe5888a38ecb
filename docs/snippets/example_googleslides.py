from ramet import GoogleSlidesConfig, GoogleSlidesResource, SyncWorkspace

config = GoogleSlidesConfig(client_id="me.apps", client_secret_env="G_SECRET", refresh_token_env="G_REFRESH")
with SyncWorkspace({"/slides": GoogleSlidesResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /slides")
