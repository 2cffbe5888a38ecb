from ramet import SSHConfig, SSHResource, SyncWorkspace

config = SSHConfig(host="build.example.org", username="ci", root="/srv/build")  # keys of the SSH agent and ~/.ssh
with SyncWorkspace({"/build": SSHResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /build")
