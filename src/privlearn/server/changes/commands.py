"""The holder's commands in one table: routes, titles, fields, consequences and buttons.

The HTTP interface takes its routes, their summaries and the descriptions of their fields from here, the pages their
addresses, forms and questions. What a command does is a function in the module of its noun (analysts, keys, datasets).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

MAX_TEXT_LENGTH = 200


@dataclass(frozen=True)
class CommandField:
    """One field of a command; ``options`` are values with their labels."""

    name: str
    label: str
    hint: str = ""
    kind: Literal["text", "date", "decimal", "numeric", "select"] = "text"
    value: str = ""
    required: bool = True
    options: tuple[tuple[str, str], ...] = ()

    def in_body(self, **limits: Any) -> Any:
        """Return the field of a JSON body, with this field's description; an optional text may be omitted."""
        if not self.required:
            limits = {"default": "", "max_length": MAX_TEXT_LENGTH} | limits
        return Field(description=self.hint, **limits)


@dataclass(frozen=True)
class Command:
    """A change that the holder can make.

    Attributes
    ----------
    title : str
        Heading of the page, and summary of the operation.
    route : str
        Method and path of the operation.
    page : str
        Address of its form.
    button : str
        The button that confirms it.
    lead : str
        Purpose of the command, in one sentence.
    fields : tuple of CommandField
    consequences : tuple of str
        Information for the holder before confirming.
    """

    title: str
    route: str
    page: str
    button: str
    lead: str = ""
    fields: tuple[CommandField, ...] = ()
    consequences: tuple[str, ...] = ()


NAME = CommandField(
    "name",
    "Name",
    "Up to 64 letters, digits, - and _: the name in addresses, in the ledger and in the log. It cannot be changed.",
)
TITLE = CommandField(
    "title", "Name to show", "For people: a full name, a department. Nothing depends on it.", required=False
)
REASON = CommandField("reason", "Reason", "One line for the audit log.", required=False)
SHARE_REASON = CommandField(
    "reason", "Reason", "One line for the audit log; required to raise a share.", required=False
)
EXPIRES = CommandField("expires", "Last day on which it is valid", "In UTC, such as 2027-01-31.", kind="date")
OVERLAP = CommandField(
    "overlap",
    "Hours for which the old key stays valid",
    "0: it ends at once. At most 30 days (720).",
    kind="numeric",
    value="24",
)
TABLE = CommandField(
    "table", "Table", "A file or directory in the sources of owner.toml, as SOURCE/PATH.", kind="select"
)
SCHEMA = CommandField(
    "schema", "Schema", "A file in the sources of owner.toml, as SOURCE/PATH.", kind="select"
)
NEW_SCHEMA = CommandField(
    "schema",
    "Schema",
    "Empty: the same file as before. Another file must have the same digest; only the layout of the table may differ.",
    kind="select",
    required=False,
)
NEIGHBOURS = CommandField(
    "neighbours",
    "Neighbouring data sets",
    "In a neighbouring data set, one person's record is ...",
    kind="select",
)
COMPOSITION = CommandField(
    "composition",
    "How costs add up",
    kind="select",
    options=(
        ("basic", "epsilons and deltas are added (basic)"),
        ("renyi", "tighter for many Gaussian releases; needs a delta (renyi)"),
    ),
)
EXPECTED_RECORDS = CommandField(
    "expected_records",
    "Expected number of records",
    "Only where the number of records is private: published in its place.",
    kind="numeric",
    required=False,
)
TRAINING_SECONDS = CommandField(
    "training_seconds",
    "Seconds",
    "The end of a training becomes visible this time after its start, or 2, 4, 8 ... times this time. Choose more "
    "than any training of this table takes. Empty: derived from the number of records.",
    kind="decimal",
    required=False,
)

_READ_ONCE = (
    "All rows are read once now, and must fit the schema. With millions of rows this takes a minute or more."
)
SAME_PEOPLE = (
    "A new version is about the same people, and all versions are charged to one budget. The total protects people "
    "who are in several versions: all answers about them, from any version, add up to no more. People who are in one "
    "version only are protected at least as well."
)
OTHER_PEOPLE = (
    "One person has one budget. If these people are served here already, under another name or from an older table, "
    "refresh that data set instead: with two budgets both could be spent on them."
)

ADD_ANALYST = Command(
    "Add an analyst",
    "POST /v1/analysts",
    "/add-analyst",
    "Add the analyst",
    "Analysts see nothing until they have a share of a data set and a key. For sign-in at a provider, take the name "
    "that the provider sends.",
    (NAME, TITLE),
)
RENAME_ANALYST = Command(
    "Change the name shown",
    "PATCH /v1/analysts/{name}",
    "/analysts/{name}/rename",
    "Change it",
    fields=(TITLE,),
)
DISABLE_ANALYST = Command(
    "Disable an analyst",
    "PATCH /v1/analysts/{name}",
    "/analysts/{name}/disable",
    "Disable the analyst",
    consequences=(
        "All their keys are revoked and they are signed out: here at once, in other server processes within five "
        "seconds.",
        "Their waiting requests end without a charge. Running jobs continue, since they were charged.",
        "Shares, results and spent amounts stay. If you enable them again, they need new keys.",
    ),
)
ENABLE_ANALYST = Command(
    "Enable an analyst",
    "PATCH /v1/analysts/{name}",
    "/analysts/{name}/enable",
    "Enable the analyst",
    consequences=("They have their earlier shares, and need a new key, or sign in at the provider.",),
)
GIVE_SHARE = Command(
    "Give a share",
    "PUT /v1/analysts/{name}/shares/{dataset}",
    "/analysts/{name}/shares/{dataset}",
    "Give this share",
    "A share is a limit, not a reservation.",
    (
        CommandField("epsilon", "Epsilon", kind="decimal"),
        CommandField("delta", "Delta", "Such as 1e-6, or 0.", value="0"),
        SHARE_REASON,
    ),
)
WITHDRAW_SHARE = Command(
    "Withdraw a share",
    "DELETE /v1/analysts/{name}/shares/{dataset}",
    "/analysts/{name}/shares/{dataset}/withdraw",
    "Withdraw the share",
    consequences=(
        "The data set, and the results they have of it here, are hidden from the analyst.",
        "Waiting requests end without a charge. What was spent stays spent. A new share makes it visible again.",
    ),
)
ISSUE_KEY = Command(
    "Issue a key",
    "POST /v1/keys",
    "/issue-key",
    "Issue the key",
    "A key opens the data sets that its analyst has a share of. It is shown once.",
    (CommandField("of", "For", kind="select"), EXPIRES),
)
ROTATE_KEY = Command(
    "Rotate a key",
    "POST /v1/keys/{id}/rotation",
    "/keys/{id}/rotate",
    "Rotate the key",
    "A new key replaces the old one. Both are valid for some time, so that no program is interrupted.",
    (OVERLAP, EXPIRES),
    ("Requests made with the old key continue.",),
)
REVOKE_KEY = Command(
    "Revoke a key",
    "DELETE /v1/keys/{id}",
    "/keys/{id}/revoke",
    "Revoke the key",
    consequences=(
        "The key is refused: here at once, in other server processes within five seconds. This cannot be undone.",
        "Its waiting requests end without a charge. Running jobs continue, since they were charged.",
    ),
)
ADD_DATASET = Command(
    "Add a data set",
    "POST /v1/datasets",
    "/add-dataset",
    "Add the data set",
    "A table, its public description, and a budget that cannot be changed afterwards.",
    (
        NAME,
        TABLE,
        SCHEMA,
        CommandField(
            "epsilon", "Epsilon", "What all releases and sessions together may cost.", kind="decimal"
        ),
        CommandField(
            "delta", "Delta", "Such as 1e-6, far below one over the number of people; or 0.", value="1e-6"
        ),
        NEIGHBOURS,
        EXPECTED_RECORDS,
        COMPOSITION,
        TRAINING_SECONDS,
    ),
    ("The budget can neither be raised nor reset, here or anywhere.", OTHER_PEOPLE, _READ_ONCE),
)
REFRESH_DATASET = Command(
    "Refresh a data set",
    "POST /v1/datasets/{name}/versions",
    "/console/{name}/refresh",
    "Refresh the data set",
    fields=(TABLE, NEW_SCHEMA, REASON),
    consequences=(
        SAME_PEOPLE,
        "Releases and sessions stay. A session on an exact kernel machine reads the version that it was opened on: "
        "leave that table in its place as long as such sessions are used.",
        _READ_ONCE,
    ),
)
RETIRE_DATASET = Command(
    "Retire a data set",
    "POST /v1/datasets/{name}/retirement",
    "/console/{name}/retire",
    "Retire the data set",
    "A retired data set takes no new requests. Its results stay.",
    (REASON,),
    (
        "New requests are refused permanently. Requests that wait for approval end without a charge; other "
        "requests are still carried out.",
        "Releases can be fetched, and sessions continue to answer. Leave the table in its place.",
    ),
)
