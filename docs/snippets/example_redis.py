from ramet import RedisResource, SyncWorkspace

shared = RedisResource("redis://localhost:6379/0", prefix="team")
with SyncWorkspace({"/shared": shared}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /shared")
