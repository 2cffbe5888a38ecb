from ramet import GmailConfig, GmailResource, SyncWorkspace

config = GmailConfig(client_id="me.apps", client_secret_env="G_SECRET", refresh_token_env="G_REFRESH")
with SyncWorkspace({"/mail": GmailResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /mail")
