from ramet import SyncWorkspace, TelegramConfig, TelegramResource

config = TelegramConfig(token_env="TELEGRAM_TOKEN")
with SyncWorkspace({"/telegram": TelegramResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /telegram")
