from ramet import FsspecResource, SyncWorkspace

with SyncWorkspace({"/scratch": FsspecResource("memory://scratch")}) as ws:  # any filesystem of fsspec, by its URL
    ws.execute("echo x > /scratch/f")
    assert ws.execute("ls /scratch").text == "f\n"
