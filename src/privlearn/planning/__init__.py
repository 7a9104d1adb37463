"""Before any budget is spent: will the signal survive the noise?"""

from privlearn.planning.planner import Plan, plan

__all__ = ["Plan", "plan"]
