"""Resources around a Resource: each adds one property to any tree; `stack.build` puts them together."""
