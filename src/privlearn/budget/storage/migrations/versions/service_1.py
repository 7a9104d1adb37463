"""First format of the server's tables; `privlearn.server.store.tables` creates it."""

revision = "service_1"
down_revision = None
