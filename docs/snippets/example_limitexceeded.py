from ramet import LimitExceeded, Limits, SyncWorkspace

with SyncWorkspace(limits=Limits(processes=2)) as ws:
    try:
        ws.execute("sleep 9 & sleep 9 & sleep 9 & wait")
    except LimitExceeded as error:
        print(error.cause)
