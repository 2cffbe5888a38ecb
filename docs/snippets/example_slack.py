from ramet import SlackConfig, SlackResource, SyncWorkspace

config = SlackConfig(token_env="SLACK_TOKEN", days=7)
with SyncWorkspace({"/slack": SlackResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /slack")
