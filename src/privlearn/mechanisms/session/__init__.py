"""Mechanisms that answer an analyst's queries from a kernel machine that stays with its holder.

Start with `task.py` (the public parameters of a session), then `function_release.py` (any number of answers from one
noisy function) and `pinp.py` (a fixed number of answers). May import `mechanisms`, `accounting` and `features`; the
durable state of a session is in the package `sessions`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.mechanisms.session.task import KernelTask, kernel_rounding
else:
    __getattr__ = export_late(__name__)
