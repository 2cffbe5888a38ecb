from ramet import PostgresConfig, PostgresResource, SyncWorkspace

config = PostgresConfig(
    dsn="postgresql://reader@db.example.org/shop", password_env="DB_PASSWORD"
)  # each table is a directory of JSON lines
with SyncWorkspace({"/shop": PostgresResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /shop")
