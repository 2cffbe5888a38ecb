"""The page that shows people what is in a store: static files, and the one-time links that let a browser in."""
