"""The web pages: the holder's console and the analyst's desk, rendered on the server (docs/how-to/pages.md).

Pages call the same `Service` and the same `server.changes` as the HTTP interface, work without scripts, and load
nothing from other hosts. Start with `page.render`; `change.carry_out` runs every change by the holder as a form and
a question. One module per page; nothing imports this package except `server.server`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.server.pages.columns import field_views, point_of
    from privlearn.server.pages.desk import MAX_STEPS, spending_figure
    from privlearn.server.pages.figures import Axis, Figure, Line, meter, round_ticks
    from privlearn.server.pages.page import new_form_token
else:
    __getattr__ = export_late(__name__)
