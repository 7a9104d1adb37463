"""The secure sum: only the noisy sum of the parties' vectors becomes known (docs/theory/secure-sum.md).

No transport and no agreement here: bytes in, bytes out. Start with `session.py` (cohort, keys, envelopes), then the two
sides, `party.py` and `coordinator.py`. `masks.py` hides and opens vectors, `sharing.py` shares keys with a proof,
`curve.py` has the points, `noise_share.py` the integers and the noise, `round.py` a whole sum in one process. May
import `mechanisms` and below, nothing from `run` or `flower`.
"""
