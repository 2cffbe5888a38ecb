from ramet import Policy, SyncWorkspace

policy = Policy.from_dict(
    {
        "deny": [{"command": "rm", "reason": "files are kept"}, {"path": "/frozen/**", "access": "write"}],
        "hide": [{"path": "/private/**"}],
    }
)
with SyncWorkspace(policy=policy) as ws:
    refused = ws.execute("rm -r /tmp")
    assert refused.exit_code == 126 and "files are kept" in refused.error_text
