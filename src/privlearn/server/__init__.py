"""The trusted learner as a service: a holder's data sets, and analysts who send requests (docs/how-to/serve.md).

Start with `service.py`, which has all that holders and analysts may do, without a transport; then `jobs/` (from a
request to its result) and `job_kinds/`. `api/` and `pages/` translate HTTP and decide nothing; `http/` is what they
share. `holder/` reads owner.toml, `access/` checks keys, `store/` has the tables. May import every other package but
`client` and `cli`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.server.refusals import (
        AccessRefused,
        Busy,
        Conflict,
        Forbidden,
        NotFound,
        Refusal,
        TooLarge,
        TooMany,
    )
    from privlearn.server.server import bare_app
    from privlearn.server.service import Service, lock_directory
else:
    __getattr__ = export_late(__name__)
