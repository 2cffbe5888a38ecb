from ramet import AzureConfig, AzureResource, SyncWorkspace

config = AzureConfig(bucket="reports", account="acme", client_id="...", client_secret="...", tenant_id="...")
with SyncWorkspace({"/reports": AzureResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /reports")
