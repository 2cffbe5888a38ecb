from ramet import CommandFailed, SyncWorkspace

with SyncWorkspace() as ws:
    try:
        ws.execute("ls /missing").check()
    except CommandFailed as failed:
        print(failed)
        assert failed.result.exit_code == 2
