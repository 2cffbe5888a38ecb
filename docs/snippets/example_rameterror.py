from ramet import RametError, Store

try:
    Store("memory:")["missing"]
except RametError as error:
    print(error.code, error.cause, error.remediation)
    assert error.code == "workspace_not_found"
