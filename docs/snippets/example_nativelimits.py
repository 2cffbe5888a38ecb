from ramet import NativeLimits, RametError

limits = NativeLimits(memory_bytes=2 * 1024**3, disk_bytes=10 * 1024**3, processes=200)
assert limits.open_files == NativeLimits().open_files  # what is not given has its default
try:
    NativeLimits(processes=0)
except RametError as error:
    assert error.code == "invalid_config"
