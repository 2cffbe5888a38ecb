"""The nouns of Ramet: paths, stats, resources, streams, errors and limits; standard library only."""
