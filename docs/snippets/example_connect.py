import os

import ramet

if "RAMET_URL" in os.environ:  # `ramet serve` prints the address and where the token is
    store = ramet.connect(os.environ["RAMET_URL"], os.environ["RAMET_TOKEN"])
    print(store.ls())  # from here on as with a local `Store`
