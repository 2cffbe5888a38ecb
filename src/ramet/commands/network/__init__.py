"""curl and wget, through the one door to the network."""
