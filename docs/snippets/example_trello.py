from ramet import SyncWorkspace, TrelloConfig, TrelloResource

config = TrelloConfig(api_key_env="TRELLO_KEY", api_token_env="TRELLO_TOKEN")
with SyncWorkspace({"/trello": TrelloResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /trello")
