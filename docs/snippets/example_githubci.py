from ramet import GitHubCIConfig, GitHubCIResource, SyncWorkspace

config = GitHubCIConfig(owner="acme", repo="shop", token_env="GITHUB_TOKEN")
with SyncWorkspace({"/ci": GitHubCIResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /ci")
