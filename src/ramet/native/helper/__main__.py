"""Start the server of helpers: `python -I -S .../helper/__main__.py [UID GID]`.

With -I and -S only the standard library can be imported; this folder comes behind it, as the package `helper`. Python
could run the folder itself, but then looks into it before the standard library, and loads `runpy` for that.
"""

import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(__file__)))
    from helper.server import main  # type: ignore[import-not-found]  # known to tools as ramet.native.helper.server

    main()
