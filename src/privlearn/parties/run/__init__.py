"""One run of several holders: agreement, parties and coordinator, without a transport.

Agreements: `agreement.py` (the base) and `joint_*.py`, one for each purpose. A run: `conversation.py` (stages),
`party_run.py`, `coordinator_run.py`. What a party uses: `answers.py` (its rows), `run_budget.py`, `witness.py` (what it
recomputes), `checkpoints.py` (what survives a crash). May import `secure_sum`, never `flower`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.parties.run.agreement import Agreement
    from privlearn.parties.run.answers import CountedParty
    from privlearn.parties.run.checkpoints import Journal, PartyMemory
    from privlearn.parties.run.conversation import QUESTION_NUMBER, Parts, Stage, proposal
    from privlearn.parties.run.coordinator_run import CoordinatorRun
    from privlearn.parties.run.features import SharedLandmarkFeatures
    from privlearn.parties.run.identity import Identity, write_certificate
    from privlearn.parties.run.joint_evaluation import JointEvaluation, load_agreement
    from privlearn.parties.run.joint_training import Algorithm
    from privlearn.parties.run.noisy_answers import NoisyAnswers
    from privlearn.parties.run.party_run import PartyRun
    from privlearn.parties.run.run_budget import RunBudget
    from privlearn.parties.run.settings import PartySettings
    from privlearn.parties.run.state_page import StatePage
else:
    __getattr__ = export_late(__name__)
