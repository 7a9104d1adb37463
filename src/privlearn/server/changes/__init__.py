"""Changes that the holder makes while the server runs, in the console's pages or over HTTP.

`change.change_transaction` is where to start: every change is checked, written together with its line in the audit
log, and visible in this process at once. One module per noun (analysts, keys, datasets) has the changes. The HTTP
interface (`server.api`) and the pages (`server.pages`) call them and are not imported here.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.server.changes.change import change_transaction
else:
    __getattr__ = export_late(__name__)
