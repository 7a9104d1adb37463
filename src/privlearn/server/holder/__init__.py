"""What the data holder declares: owner.toml, what the console adds to it, and the data sets that follow from both.

Start with `settings.Owner`, the holder's file, and `catalog.Catalog`, the data sets that the server offers at one
moment. `console_state` reads what the holder changed while the server runs; `server.changes` writes it. Modules here
may import data, budget, estimators and `server.access`, but nothing of the jobs, the HTTP interface or the pages.
"""
