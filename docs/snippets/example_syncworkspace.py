from ramet import SyncWorkspace

with SyncWorkspace() as ws:  # works in scripts and notebooks, without `await`
    ws.execute("seq 5 > /numbers")
    assert ws.execute("tail -n 1 /numbers").text == "5\n"
    assert ws.dispatch("read", "/numbers", stop=3) == b"1\n2"
