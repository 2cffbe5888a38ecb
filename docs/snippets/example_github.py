from ramet import GitHubConfig, GitHubResource, SyncWorkspace

config = GitHubConfig(owner="acme", repo="shop", token_env="GITHUB_TOKEN")
with SyncWorkspace({"/shop": GitHubResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /shop")
