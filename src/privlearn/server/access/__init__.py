"""Who may do what: API keys, browser logins, and sign-in by OpenID Connect.

Start with `keys`, which defines `Caller`, the value that every method of `server.service.Service` takes first. These
modules may import `server.store`, `server.timing`, `server.ttl_cache`, `server.refusals` and the settings of
`server.holder`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.server.access.keys import Caller, authenticate, create_key, list_keys, revoke_key
    from privlearn.server.access.openid import Attempt, Provider, as_caller, caller_of_claims
else:
    __getattr__ = export_late(__name__)
