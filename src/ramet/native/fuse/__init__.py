"""Remote mounts in the box: the FUSE protocol of the kernel, answered from the workspace's tree."""

from typing import Final

DEVICE: Final = "/dev/fuse"
"""What the kernel's requests come from."""
