from ramet import Network, SyncWorkspace

network = Network.of({"allow": ["api.example.org", "*.example.com:443"]})
with SyncWorkspace(network=network) as ws:
    refused = ws.execute("curl -sS https://elsewhere.example/")
    assert refused.exit_code != 0 and "elsewhere.example" in refused.error_text
    assert [one.network_requests for one in ws.workspace.history] == [1]  # refusals are on record, too
