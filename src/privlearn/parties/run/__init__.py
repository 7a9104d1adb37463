"""One run of several holders: agreement, parties and coordinator, without a transport.

Agreements: `agreement.py` (the base) and `joint_*.py`, one for each purpose. A run: `conversation.py` (stages),
`party_run.py`, `coordinator_run.py`. What a party uses: `answers.py` (its rows), `run_budget.py`, `witness.py` (what it
recomputes), `checkpoints.py` (what survives a crash). May import `secure_sum`, never `flower`.
"""
