"""The HTTP interface, version 1: one router and one answer model per noun.

Start with `jobs` (request, follow and cancel jobs; estimates) and `results` (what jobs produced). `sessions` answers
points; `datasets`, `approvals`, `analysts`, `dataset_changes`, `identity` and `operations` serve the other roles.
`schemas` has shared fields, `requests` reads request bodies. Routers call `server.service` and `server.changes`, and
use `server.http` for bodies, limits and problems; nothing imports this package except `server.server`.
"""
