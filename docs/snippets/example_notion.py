from ramet import NotionConfig, NotionResource, SyncWorkspace

config = NotionConfig(api_key_env="NOTION_KEY")
with SyncWorkspace({"/notion": NotionResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /notion")
