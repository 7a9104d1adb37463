"""The secure sum: only the noisy sum of the parties' vectors becomes known (docs/theory/secure-sum.md).

No transport and no agreement here: bytes in, bytes out. Start with `session.py` (cohort, keys, envelopes), then the two
sides, `party.py` and `coordinator.py`. `masks.py` hides and opens vectors, `sharing.py` shares keys with a proof,
`curve.py` has the points, `noise_share.py` the integers and the noise. May
import `mechanisms` and below, nothing from `run` or `flower`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.parties.secure_sum.coordinator import MaskingCoordinator
    from privlearn.parties.secure_sum.curve import (
        KEY_BYTES,
        ORDER,
        PUBLIC_BYTES,
        check_public,
        generate_key,
        public_half,
        weighted_sum,
    )
    from privlearn.parties.secure_sum.masks import QUESTION_DIGEST_BYTES, ShareBox, pair_masks, self_mask
    from privlearn.parties.secure_sum.noise_share import Words
    from privlearn.parties.secure_sum.party import MaskingParty
    from privlearn.parties.secure_sum.session import (
        COORDINATOR,
        ENVELOPE_BYTES,
        KeyBook,
        LyingParty,
        RoundKeys,
        Step,
        SumSession,
        from_coordinator,
        from_party,
        seal,
    )
    from privlearn.parties.secure_sum.sharing import (
        SHARE_BYTES,
        Dealing,
        Proof,
        advertised_size,
        read_advertised,
        recover,
        shares_in,
        split,
        value_at,
    )
else:
    __getattr__ = export_late(__name__)
