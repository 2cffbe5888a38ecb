"""Images of native programs: an unpacked root, an OCI layout or a tar in the place of the host's `/usr`."""

from __future__ import annotations
