"""What the HTTP interface and the pages share: callers, bodies, limits, problems, logs and metrics.

Start with `limits` (sizes, times and threads), `callers` (FastAPI dependencies) and `problems` (errors as answers).
`media_types`, `arrow_streams` and `bodies` read what untrusted callers send; `fair_share` divides capacity among them.
`connections` alone depends on uvicorn's internals. These modules may import `server.service` and what is below it.
"""
