from ramet import MongoConfig, MongoResource, SyncWorkspace

config = MongoConfig(url="mongodb://db.example.org", username="reader", password_env="DB_PASSWORD")
with SyncWorkspace({"/mongo": MongoResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /mongo")
