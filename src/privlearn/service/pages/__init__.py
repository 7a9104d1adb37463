"""The pages: the holder's console and the analyst's desk, rendered on the server (docs/how-to/pages.md).

They call the same facade as the HTTP interface, need no script, and load nothing from elsewhere.
"""

from privlearn.service.pages.routes import mount

__all__ = ["mount"]
