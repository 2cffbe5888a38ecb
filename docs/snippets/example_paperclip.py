from ramet import PaperclipConfig, PaperclipResource, SyncWorkspace

config = PaperclipConfig()
with SyncWorkspace({"/papers": PaperclipResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /papers")
