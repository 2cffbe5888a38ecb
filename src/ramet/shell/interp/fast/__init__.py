"""Shortcuts for common commands, each equal to the general way in `run/`.

Every module states at its top why it equals the general way, and checks at run time what that depends on.
`RAMET_PLAIN=1` switches all of them off (`shell/plain_mode.py`).
"""
