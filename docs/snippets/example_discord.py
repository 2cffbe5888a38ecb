from ramet import DiscordConfig, DiscordResource, SyncWorkspace

config = DiscordConfig(token_env="DISCORD_TOKEN", guild_ids=("81384788765712384",))
with SyncWorkspace({"/discord": DiscordResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /discord")
