"""Public import path of `SSHResource`; the code is in `backends/remote/ssh.py`."""

from ramet.backends.remote.ssh import SSHConfig as SSHConfig
from ramet.backends.remote.ssh import SSHResource as SSHResource
