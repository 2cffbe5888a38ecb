"""One door to the network: which requests may leave, to which addresses, with whose credentials, and the record of it.

Reading order: `addresses`, `targets`, `rules`, `network`, `resolver`, `transport`, `door`.
"""
