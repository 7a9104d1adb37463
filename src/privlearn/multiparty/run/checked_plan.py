"""What a holder wants to know of a plan before it signs: cost, questions, who could learn what, fingerprint."""

from __future__ import annotations

from collections import Counter

from privlearn.multiparty.run.conversation import check_can_be_summed
from privlearn.multiparty.run.joint_plan import JointPlan


def checked(plan: JointPlan) -> dict[str, str]:
    """Public: name and fact, in the order to read them; refused if the plan cannot be run."""
    check_can_be_summed(plan)
    mechanism, cohort = plan.mechanism, plan.cohort
    asked = Counter(kind.replace("_", " ") for kind in mechanism.kinds)
    parties = ", ".join(f"{name} {records:,}" for name, records in plan.parties.items())
    facts = {
        "parties": f"{parties}; {plan.total:,} records together",
        "cost": str(plan.guarantee),
        "meaning": plan.guarantee.in_words(),
        "weak": f"this promise is {plan.weakness}" if plan.weakness else "",
        "questions": ", ".join(f"{count} of {kind}" for kind, count in asked.items()) + ", noisy sums all",
        "noise": f"of {cohort.honest} parties' shares at least, in every sum",
        "missing": f"{cohort.dropouts} may be, from a round; {cohort.colluding} may pool what they know",
        "covers": mechanism.covers,
        "keys": _keys(plan),
        "fingerprint": plan.fingerprint,
    }
    return {name: fact for name, fact in facts.items() if fact}


def _keys(plan: JointPlan) -> str:
    if plan.keys is None:
        return "none yet: the fingerprint will change when they are added"
    return "all there. Read the fingerprint to each other by another way than the coordinator's"
