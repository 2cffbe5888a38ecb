"""Layers: Resources around a Resource, each adding one property. `stack.build` combines them."""
