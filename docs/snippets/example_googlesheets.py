from ramet import GoogleSheetsConfig, GoogleSheetsResource, SyncWorkspace

config = GoogleSheetsConfig(client_id="me.apps", client_secret_env="G_SECRET", refresh_token_env="G_REFRESH")
with SyncWorkspace({"/sheets": GoogleSheetsResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /sheets")
