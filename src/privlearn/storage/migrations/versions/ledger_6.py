"""Answers of several holders are counted one by one, so that no file of a run that was brought back gives a second."""

import sqlalchemy as sa
from alembic import op

from privlearn.storage.formats import protect

revision = "ledger_6"
down_revision = "ledger_5"


def upgrade() -> None:
    """Nothing is known of answers that were given before: end such runs first."""
    answers = op.create_table(
        "answers",
        sa.Column("reservation", sa.String(36), primary_key=True),
        sa.Column("question", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("stage", sa.String(20), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
    )
    same = "reservation = NEW.reservation AND question = NEW.question AND stage = NEW.stage"
    protect(op.get_bind(), {answers: same})
    if op.get_context().dialect.name == "postgresql":
        _let_in_who_may_append()


def _let_in_who_may_append() -> None:
    """A role that was given the right to add entries may count answers."""
    named = op.get_bind().exec_driver_sql(
        "SELECT DISTINCT quote_ident(grantee) FROM information_schema.role_table_grants WHERE table_name = 'entries'"
        " AND table_schema = current_schema() AND privilege_type = 'INSERT' AND grantee <> current_user"
    )
    for role in named.scalars().all():
        op.execute(f"GRANT SELECT, INSERT ON answers TO {role}")
