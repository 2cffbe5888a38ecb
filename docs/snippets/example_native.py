from ramet import Native, NativeLimits, RametError, SyncWorkspace

options = Native(NativeLimits(memory_bytes=512 * 1024**2, processes=100))
try:
    with SyncWorkspace(native=options) as ws:
        ws.execute("echo 'print(6 * 7)' > /answer.py")
        assert ws.execute("python3 /answer.py | tee /answer").text == "42\n"
except RametError as error:  # without Linux, user namespaces and bubblewrap
    assert error.code == "native_unavailable"
