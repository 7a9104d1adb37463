"""The service's tables of version 0.1: where the scripts begin."""

revision = "service_1"
down_revision = None
