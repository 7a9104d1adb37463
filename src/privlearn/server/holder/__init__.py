"""What the data holder declares: owner.toml, what the console adds to it, and the data sets that follow from both.

Start with `settings.Owner`, the holder's file, and `catalog.Catalog`, the data sets that the server offers at one
moment. `console_state` reads what the holder changed while the server runs; `server.changes` writes it. Modules here
may import data, budget, estimators and `server.access`, but nothing of the jobs, the HTTP interface or the pages.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.server.holder.catalog import Catalog, Catalogs
    from privlearn.server.holder.console_state import with_console_state
    from privlearn.server.holder.dataset_settings import DataSet, Share
    from privlearn.server.holder.datasets import OfferedDataSet
    from privlearn.server.holder.external import Mail, OpenId, SignIn, Telemetry, Webhook
    from privlearn.server.holder.query_rows import open_query
    from privlearn.server.holder.recipes import Recipe, default_recipes, estimator, kernel_learner
    from privlearn.server.holder.settings import Extensions, Limits, Log, Owner, ServerSettings
    from privlearn.server.holder.signing import PIN_VARIABLE, SigningToken, TokenKey, TokenUnusable
else:
    __getattr__ = export_late(__name__)
