from ramet import IOResult, SyncWorkspace

with SyncWorkspace() as ws:
    result: IOResult = ws.execute("echo out; echo err >&2; exit 3")
assert (result.text, result.error_text, result.exit_code) == ("out\n", "err\n", 3)
assert not result.timed_out and not result.truncated
