from ramet import DiskResource, SyncWorkspace

with SyncWorkspace({"/project": DiskResource("project", create=True)}) as ws:
    ws.execute("echo '# notes' > /project/README.md")  # project/README.md of this machine
