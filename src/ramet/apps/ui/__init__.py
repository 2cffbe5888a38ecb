"""The web page: static files, and the one-time links that sign a browser in."""
