"""Defects among several holders: plans, masks, shares of noise."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import (
    BLAMED,
    COSTS,
    HOSTILE,
    LIARS,
    MASKS,
    PARTIES,
    RECONNECTED,
    RESUMED,
    RUNS,
    SHARES,
    WEAK,
    WHOLE_RUNS,
    WITNESS,
    Mutant,
    TextMutant,
)

WHOLE_NOISE = ("parties/test_whole_noise.py",)
ATTACKED = ("parties/test_attacks.py",)

MUTANTS: list[Mutant | TextMutant] = [
    Mutant("half the noise of a share drawn, seen by the audit", "privlearn.parties.secure_sum.noise_share:NoiseShare.draw", "self.share_scale", "0.5 * self.share_scale", WHOLE_RUNS),
    Mutant("noise shared among the missing too", "privlearn.parties.secure_sum.noise_share:NoiseShare.share_scale", "self.cohort.honest", "self.cohort.parties", SHARES),
    Mutant("gap of the summed law forgotten", "privlearn.parties.secure_sum.noise_share:distributed_zcdp", "10.0 * math.fsum(gaps)", "0.0 * math.fsum(gaps)", SHARES),
    Mutant("rounding of the summands for free", "privlearn.parties.secure_sum.noise_share:NoiseShare.zcdp", "sensitivity / self.step + self.parties_per_person * math.sqrt(dimension)", "sensitivity / self.step", SHARES),
    Mutant("overflow of the noise forgotten", "privlearn.parties.secure_sum.noise_share:FixedPoint._max_sum", "TAIL * math.sqrt(self.parties)", "0.0 * TAIL * math.sqrt(self.parties)", SHARES),
    Mutant("overflow of the parties forgotten", "privlearn.parties.secure_sum.noise_share:FixedPoint._max_sum", "self.parties * self.bound", "self.bound", SHARES),
    Mutant("rounding of the parties forgotten", "privlearn.parties.secure_sum.noise_share:FixedPoint._max_sum", "bound / self.step + self.parties * (1.0 + self.noise_bound / self.step)", "bound / self.step * (1.0 + self.noise_bound / self.step)", SHARES),
    Mutant("each party bounded by all records", "privlearn.parties.run.answers:Party.answer", "question.bound * self._weight", "question.bound", (*RUNS, "parties/test_private_counts.py")),
    Mutant("no mask of one's own", "privlearn.parties.secure_sum.party:MaskingParty.mask", "masks.self_mask(keys.own, self._session, round, self._number)", "np.uint64(0)", MASKS),
    Mutant("pair masks all added", "privlearn.parties.secure_sum.masks:pair_masks", "total + mask if party == low else total - mask", "total + mask", MASKS),
    Mutant("one mask for all rounds", "privlearn.parties.secure_sum.session:KeyBook.generate", "tuple((RoundKeys(generate_key(), generate_key()) for _ in range(rounds)))", "(RoundKeys(generate_key(), generate_key()),) * rounds", MASKS),
    Mutant("mask keys folded to 32 bits", "privlearn.parties.secure_sum.masks:_stream", "ChaCha20(key, nonce)", "ChaCha20(key[:4] * 8, nonce)", MASKS),
    Mutant("a round answered twice", "privlearn.parties.secure_sum.party:MaskingParty.reveal", "letter.round + 1", "letter.round", MASKS),
    Mutant("coordinator as a party", "privlearn.parties.secure_sum.session:from_party", "letter.sender == COORDINATOR", "False", MASKS),
    Mutant("letter's signature not checked", "privlearn.parties.secure_sum.session:_unseal", "Ed25519PublicKey.from_public_bytes(_key_of(sender, session)).verify(signature, content)", "Ed25519PublicKey.from_public_bytes(_key_of(sender, session))", MASKS),
    Mutant("party without noise", "privlearn.parties.run.noisy_answers:NoisyAnswers.noisy_words", "noise.add_whole(values, self._agreement.encoding(question), self._randomness) + share", "noise.add_whole(values, self._agreement.encoding(question), self._randomness)", RUNS),
    Mutant("party with half the noise", "privlearn.parties.secure_sum.noise_share:PartyNoise.of", "shared[0].scale", "shared[0].scale / 2", RUNS),
    Mutant("party with half a whole vector", "privlearn.parties.secure_sum.noise_share:PartyNoise.of", "whole[0].scale", "whole[0].scale / 2", WHOLE_NOISE),
    Mutant("party with two whole vectors' noise", "privlearn.parties.secure_sum.noise_share:PartyNoise.of", "whole[0].scale", "2 * whole[0].scale", WHOLE_NOISE),
    Mutant("answers rounded before their noise", "privlearn.parties.secure_sum.noise_share:PartyNoise.add_whole", "values.tolist", "(np.rint(values / self.step) * self.step).tolist", WHOLE_NOISE),
    Mutant("room for whole vectors forgotten", "privlearn.parties.secure_sum.noise_share:FixedPoint._max_sum", "self.parties * (1.0 + self.noise_bound / self.step)", "self.parties", WHOLE_NOISE),
    Mutant("answers beyond their bound get a whole vector", "privlearn.parties.secure_sum.noise_share:PartyNoise.add_whole", "encoding.check(values)", "", WHOLE_NOISE),
    Mutant("noise of a run drawn anew", "privlearn.parties.run.noisy_answers:NoisyAnswers.noisy_words", "self._stored_share if noise.keeps_share else None", "None", WHOLE_NOISE),
    Mutant("noise of a run lost in a crash", "privlearn.parties.run.party_run:PartyRun._resume", "self._noise.resume(stored['noise'])", "", WHOLE_NOISE),
    Mutant("plans that overflow accepted", "privlearn.parties.run.agreement:Agreement.check_feasible", "self.encoding(self.mechanism.question(number))", "pass", ("parties/test_agreement.py",)),
    Mutant("other constants noticed when all is spent", "privlearn.parties.run.party_run:PartyRun._sign", "constants != self._agreement.constants_digest", "False", ("parties/test_coordinator_run.py",)),
    Mutant("any plan is signed", "privlearn.parties.run.party_run:PartyRun._sign", "digest != bytes.fromhex(self._agreement.digest)", "False", RUNS),
    Mutant("others' sign-offs not checked", "privlearn.parties.run.party_run:PartyRun._advertise", "not conversation.identity_of(self._agreement, name).has_signed(signature, conversation.sign_off(self._agreement, self._run, name))", "False", RUNS),
    Mutant("cost not final", "privlearn.budget.reservation:Reservation.commit_answer", "self._settle_in(connection, 'committed')", "", RUNS),
    Mutant("signs before paying", "privlearn.parties.run.party_run:PartyRun._sign", "self._budget.reserve()", "pass", RUNS),
    Mutant("an old question answered", "privlearn.parties.run.party_run:PartyRun._answer", "number < self._next_question", "False", RUNS),
    Mutant("a refusal about the rows leaves", "privlearn.parties.run.party_run:PartyRun.reply", "str(error) if isinstance(error, ProtocolError) else PRIVATE_REASON", "str(error)", RUNS),
    Mutant("coefficients that are not finite answered", "privlearn.parties.run.party_run:PartyRun._question", "not np.isfinite(coefficients).all()", "False", HOSTILE),
    Mutant("warnings depend on the rows asked about", "privlearn.parties.run.answers:Party._exact", "all='ignore'", "", HOSTILE),
    Mutant("a twin answers too", "privlearn.budget.reservation:Reservation.commit_answer", "self._record_once(connection, question, _VECTOR) is not None", "False", RESUMED),
    Mutant("a twin opens another list", "privlearn.parties.run.party_run:PartyRun._reveal", "self._budget.record_shares(number, message)", "", RESUMED),
    Mutant("a question counted after computing", "privlearn.parties.run.party_run:PartyRun._answer", """
        self._next_question, self._begun = (number + 1, number)
        self._store()
        try:
            ...
        except Exception as error:
            ...
    """, """
        self._store()
        try:
            ...
            self._next_question, self._begun = (number + 1, number)
        except Exception as error:
            ...
    """, RUNS),
    Mutant("a question paid for after computing", "privlearn.parties.run.party_run:PartyRun._answer", """
        self._budget.commit(number)
        self._witness.record_answer(number)
        masked = self._sums[position.session].mask(position.round, self._noisy(question), body)
    """, """
        self._witness.record_answer(number)
        masked = self._sums[position.session].mask(position.round, self._noisy(question), body)
        self._budget.commit(number)
    """, RUNS),
    Mutant("a question before the session costs", "privlearn.parties.run.party_run:PartyRun._answer", "self._sums[position.session].check_open(position.round)", "", RUNS),
    Mutant("a failed answer tells why", "privlearn.parties.run.party_run:PartyRun._answer", "ProtocolError(PRIVATE_REASON)", "ProtocolError(_in_words(error))", RUNS),
    Mutant("a failed answer does not end the run", "privlearn.parties.run.party_run:PartyRun._answer", "self.stopped = f'question {number} could not be answered: {_describe(error)}'", "self.failed = f'question {number} could not be answered: {_describe(error)}'", RUNS),
    Mutant("failures of others' code leave", "privlearn.parties.run.party_run:PartyRun.reply", "Exception", "PrivlearnError", RUNS),
    Mutant("minimisers after the sign-off", "privlearn.parties.run.party_run:PartyRun.__init__", "kind != 'gradients'", "kind == 'second_moments'", RUNS),
    Mutant("cohorts that can be split accepted", "privlearn.parties.secure_sum.session:Cohort.__post_init__", "self.dropouts > max_dropouts", "False", LIARS),
    Mutant("one dropout too many", "privlearn.parties.secure_sum.session:Cohort.__post_init__", "self.dropouts > max_dropouts", "self.dropouts > max_dropouts + 1", LIARS),
    Mutant("one honest party too few", "privlearn.parties.secure_sum.session:_max_dropouts", "4 * honest - 3", "4 * honest + 1", LIARS),
    Mutant("helpers not counted in a cohort", "privlearn.parties.secure_sum.session:Cohort.__post_init__", "self.parties - self.colluding", "self.parties", LIARS),
    Mutant("a part of the inbox is enough", "privlearn.parties.secure_sum.party:MaskingParty.receive", "self._session.cohort.parties", "self._session.cohort.threshold", LIARS),
    Mutant("a part of the roster is enough", "privlearn.parties.secure_sum.party:MaskingParty._read_roster", "self._session.cohort.parties", "self._session.cohort.threshold", MASKS),
    Mutant("set-up without everybody", "privlearn.parties.secure_sum.coordinator:MaskingCoordinator._close", "cohort.parties if step in (Step.KEYS, Step.SHARES) else cohort.threshold", "cohort.threshold", MASKS),
    Mutant("starts without a sign-off", "privlearn.parties.run.coordinator_run:CoordinatorRun._collect_sign_offs", """
        if missing:
            ...
    """, """
        if False:
            ...
    """, RUNS),
    Mutant("psgd draws its kept noise anew", "privlearn.parties.run.simulation:TrustedSum._with_noise", "noise not in self._run_noise", "True", PARTIES),
    Mutant("one party draws for all", "privlearn.parties.run.simulation:TrustedSum._draws", "len(self._parties) if noise.is_whole else 1", "1", PARTIES),
    Mutant("survivors not counted", "privlearn.parties.secure_sum.party:MaskingParty.reveal", "self._require(len(arrived), self._session.cohort.threshold, 'sent a vector')", "", MASKS),
    Mutant("another run's release taken", "privlearn.parties.run.witness:Witness._check", "run.plan.encode() != self._agreement.canonical() or run.run != self._run.hex()", "run.plan.encode() != self._agreement.canonical()", WITNESS),
    Mutant("another plan's release taken", "privlearn.parties.run.witness:Witness._check", "run.plan.encode() != self._agreement.canonical() or run.run != self._run.hex()", "run.run != self._run.hex()", WITNESS),
    Mutant("sums signed that were not seen", "privlearn.parties.run.witness:Witness._check", "dict(enumerate(run.sums)) != dict(enumerate(run.sums)) | self._arrived", "False", WITNESS),
    Mutant("two results signed", "privlearn.parties.run.witness:Witness._check", "self._signed not in ('', release.model_digest)", "False", WITNESS),
    Mutant("parties' signatures not checked", "privlearn.release.run_record:RunRecord.check", "self._check(name, signature, self.statement(name, model_digest))", "pass", WITNESS),
    Mutant("sign-offs not checked by verify", "privlearn.release.run_record:RunRecord.check", "self.sign_offs.items()", "()", WITNESS),
    Mutant("sums not in what is signed", "privlearn.release.run_record:RunRecord.statement", "self.sums", "", WITNESS),
    Mutant("model not in what is signed", "privlearn.release.run_record:RunRecord.statement", "model_digest, name", "name", WITNESS),
    Mutant("a sum of too few verified", "privlearn.release.run_record:RunRecord.check_sums", "needed <= len(set(names) & set(parties)) == len(names)", "1 <= len(set(names) & set(parties)) == len(names)", WITNESS),
    Mutant("too few sign the result", "privlearn.parties.run.coordinator_run:CoordinatorRun._attach_record", "len(signatures) < needed", "False", WITNESS),
    Mutant("what was answered given back", "privlearn.parties.run.run_budget:RunBudget._cancel_unanswered", "index not in used", "True", COSTS),
    Mutant("a begun run given back in part", "privlearn.parties.run.run_budget:RunBudget.__init__", "isinstance(ledger.rule(), RenyiComposition)", "True", COSTS),
    Mutant("unasked questions charged", "privlearn.parties.run.run_budget:RunBudget.close", """
        if not self._by_question:
            ...
        self._cancel_unanswered()
    """, """
        if not self._by_question:
            ...
    """, COSTS),
    Mutant("others' reservations given back", "privlearn.parties.run.run_budget:RunBudget.cancel_stranded", "entry.purpose == self._purpose and entry.state == 'reserved'", "entry.state == 'reserved'", COSTS),
    Mutant("the same message answered anew", "privlearn.parties.run.party_run:PartyRun.handle", "message == self._answered", "False", RESUMED),
    Mutant("a reply leaves before it is kept", "privlearn.parties.run.party_run:PartyRun.handle", "self._store()", "", RESUMED),
    Mutant("a question begun is not kept", "privlearn.parties.run.party_run:PartyRun._answer", "self._store()", "", RESUMED),
    Mutant("asked again after a crash while computing", "privlearn.parties.run.party_run:PartyRun._resume", "stored['begun'] is not None", "False", RESUMED),
    Mutant("an old copy of a run goes on", "privlearn.parties.run.run_budget:RunBudget.resume", "self.answered - {begun} != set(content['answered']) - {begun}", "False", RESUMED),
    Mutant("used keys stay on disk", "privlearn.parties.secure_sum.party:MaskingParty.mask", "self._unused.pop(round)", "self._unused[round]", RESUMED),
    Mutant("a party's file for all to read", "privlearn.parties.run.checkpoints:PartyMemory.write", "os.open(self._new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 384)", "os.open(self._new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 420)", RESUMED),
    Mutant("two processes in one run", "privlearn.parties.run.checkpoints:lock_file", "fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)", "pass", RESUMED),
    Mutant("secrets left after a run", "privlearn.parties.run.party_run:PartyRun.settle", "self._memory.forget()", "pass", RESUMED),
    Mutant("replies not kept", "privlearn.parties.run.checkpoints:Journal.recording.exchange_once", "self._append({'sent': sent, 'replies': texts})", "pass", RESUMED),
    Mutant("another plan's journal taken up", "privlearn.parties.run.checkpoints:Journal._read_header", "head.get('agreement') != agreement.digest", "False", RESUMED),
    Mutant("a stopped run taken up", "privlearn.parties.run.checkpoints:Journal.recording.exchange_once", "self.end()", "", RESUMED),
    Mutant("a liar is asked again", "privlearn.parties.run.coordinator_run:CoordinatorRun._exclude", "self._liars |= set(liars)", "pass", BLAMED),
    Mutant("a killed node kept out", "privlearn.parties.flower.link:RejoiningState.activate_node", "self.deactivate_node(node_id)", "", RECONNECTED),
    Mutant("a message lost with its process", "privlearn.parties.flower.apps:FlowerExchange.__call__", "reached.get(party) != since", "party not in reached", RECONNECTED),
    Mutant("the coordinator's clock not followed", "privlearn.parties.flower.node:CoordinatorsClock.follow", "self.shift = shift", "", RECONNECTED),
    Mutant("a coordinator started again not found", "privlearn.parties.flower.node:FlowerNode.serve", "self._reconnect()", "pass", RECONNECTED),
    Mutant("an expired certificate served", "privlearn.parties.flower.link:FlowerLink.serving", "check_dates(certificate)", "", RECONNECTED),
    Mutant("weak: a plan of parties", "privlearn.parties.run.agreement:Agreement.check_feasible", "check_strength(self._with_schema, self.total, self.accept_weak_privacy)", "self.mechanism", WEAK),
    Mutant("a false share taken", "privlearn.parties.secure_sum.masks:open_secrets", "not proof.confirms(party, indices[owner], share)", "False", BLAMED),
    Mutant("shares not compared with their commitment", "privlearn.parties.secure_sum.sharing:Proof.confirms", """
        if _commitment(self.session, self.dealer, receiver, index, share) != committed:
            return False
    """, "", BLAMED),
    Mutant("shares off the polynomial taken", "privlearn.parties.secure_sum.sharing:Proof.confirms", "(blind + self.challenges[index] * key) % ORDER == combined", "True", BLAMED),
    Mutant("keys without a proof taken", "privlearn.parties.secure_sum.sharing:read_advertised", "proof.check()", "", BLAMED),
    Mutant("false boxes taken", "privlearn.parties.secure_sum.party:MaskingParty._check_shares", "not all((proof.confirms(self._number, index, share) for index, share in enumerate(shares)))", "False", BLAMED),
    Mutant("asked before all have their shares", "privlearn.parties.run.coordinator_run:CoordinatorRun._set_up", "len(accepted) < len(self._names)", "False", BLAMED),
    Mutant("points not on the curve advertised", "privlearn.parties.secure_sum.session:KeyBook.from_bytes", "check_public(key)", "pass", BLAMED),
    Mutant("shares for another list taken", "privlearn.parties.secure_sum.coordinator:MaskingCoordinator._check", "self._step is Step.REVEALED and letter.body[-LIST_BYTES:] != list_digest(self._list)", "False", WITNESS),
    Mutant("masks of different questions cancel", "privlearn.parties.secure_sum.session:derive_key", "hashlib.sha256(question)", "hashlib.sha256(b'')", ATTACKED),
    Mutant("evidence for another question believed", "privlearn.parties.secure_sum.masks:read_masked", "letter.body[-QUESTION_DIGEST_BYTES:] != digest", "False", ATTACKED),
    Mutant("vectors of a run with the same name believed", "privlearn.parties.secure_sum.masks:question_digest", "b'privlearn asked' + keys", "b'privlearn asked'", ATTACKED),
    Mutant("content of a question without coefficients taken", "privlearn.parties.run.party_run:PartyRun._question", """
        if body:
            ...
    """, """
        if False:
            ...
    """, ATTACKED),
    Mutant("one's own vector in evidence not compared", "privlearn.parties.secure_sum.party:MaskingParty.check_sum", "self._number in vectors", "False", ATTACKED),
    Mutant("what was sent is forgotten in a crash", "privlearn.parties.secure_sum.party:MaskingParty.from_dict", "content['sent'].items()", "()", ATTACKED),
    Mutant("sums beyond all bounds taken", "privlearn.parties.run.conversation:noisy_sum", "encoding.check_sum(words)", "", ATTACKED),
    Mutant("answers to another question summed", "privlearn.parties.secure_sum.coordinator:MaskingCoordinator._check", "self._step is Step.MASKED and letter.body[-masks.QUESTION_DIGEST_BYTES:] != self._question_digest", "False", ATTACKED),
    Mutant("any point answered", "privlearn.parties.run.party_run:PartyRun._answer", "self._witness.check_question(question)", "", ATTACKED),
    Mutant("points far from the computed ones answered", "privlearn.parties.run.witness:", "TOLERANCE = 1e-06", "TOLERANCE = 1000000.0", ATTACKED),
    Mutant("a result signed without the sums", "privlearn.parties.run.witness:Witness.attest", "self.known < len(self._agreement.mechanism.kinds)", "False", ATTACKED),
    Mutant("a result signed that does not follow", "privlearn.parties.run.witness:Witness.attest", "not _same_files(release, self._replay())", "False", ATTACKED),
    Mutant("a result signed that was not sealed", "privlearn.parties.run.party_run:PartyRun._attest", "digest != conversation.result_digest(result, record)", "False", WITNESS),
    Mutant("a name in a sum that it did not answer", "privlearn.parties.run.witness:Witness._check", "self._name in names and number not in self._answered", "False", ATTACKED),
    Mutant("opened keys believed", "privlearn.parties.secure_sum.masks:unmask", "public_half(secrets[number]) != (key.own if number in masked else key.pair)", "False", ATTACKED),
    Mutant("the key of the boxes kept", "privlearn.parties.secure_sum.party:MaskingParty.receive", "self._box_key", "", ATTACKED),
    Mutant("keys of earlier kinds kept", "privlearn.parties.run.party_run:PartyRun._answer", "earlier.forget()", "pass", ATTACKED),
    Mutant("one nonce for all boxes", "privlearn.parties.secure_sum.masks:ShareBox.lock", "secrets.token_bytes", "bytes", ATTACKED),
    Mutant("the file of another plan's run", "privlearn.parties.run.party_run:PartyRun._resume", "stored['agreement'] != self._agreement.digest", "False", ATTACKED),
    Mutant("a quarter of the plan's digest in the ledger", "privlearn.parties.run.run_budget:RunBudget.__init__", "agreement.digest", "agreement.digest[:16]", ATTACKED),
    Mutant("no colluding party without a word", "privlearn.parties.run.agreement:Agreement.check_feasible", "self.towards_a_party != self.guarantee and (not self.accept_curious_parties)", "False", ATTACKED),
    Mutant("one's own share not subtracted", "privlearn.mechanisms.summed.summed:towards_a_party", "ratio / math.sqrt(1.0 - 1.0 / shares)", "ratio", ATTACKED),
    Mutant("any number of colluding parties for a party", "privlearn.parties.run.settings:PartySettings.check", "agreement.colluding < self.min_colluding", "False", ("parties/test_party_settings.py",)),
    Mutant("max_epsilon does not see the other parties", "privlearn.parties.run.settings:PartySettings.check", "agreement.towards_a_party", "agreement.guarantee", ("parties/test_party_settings.py",)),
    Mutant("the weaker promise towards a party not charged", "privlearn.parties.run.run_budget:RunBudget._cost", "0.0 if guarantee == self._agreement.guarantee else 1.0 / self._agreement.cohort.honest", "0.0", COSTS),
    Mutant("whole noise needs others too", "privlearn.parties.run.settings:PartySettings.check", "agreement.colluding < self.min_colluding and (not adds_whole_noise(agreement.mechanism))", "agreement.colluding < self.min_colluding", ("parties/test_party_settings.py",)),
    Mutant("small coefficients signed unseen", "privlearn.parties.run.witness:_is_near", "float(np.max(np.abs(other), initial=0.0))", "max(1.0, float(np.max(np.abs(other), initial=0.0)))", WITNESS),
    Mutant("keys of small order", "privlearn.parties.run.identity:PublicIdentity.parse", "has_small_order(public.signing)", "False", ("parties/test_party_settings.py",)),
    Mutant("a step counts as progress twice", "privlearn.parties.run.party_run:PartyRun.handle", "parts[0] if stage in (Stage.QUESTION, Stage.SURVIVORS) else b''", "bytes(len(self._steps))", RUNS),
    Mutant("a question counted before its cost is final", "privlearn.parties.run.run_budget:RunBudget.commit", """
        if self._reserved:
            ...
        self.answered.add(question)
    """, """
        self.answered.add(question)
        if self._reserved:
            ...
    """, COSTS),
    Mutant("a commit that was not reported given back", "privlearn.parties.run.run_budget:RunBudget.close", "self.answered.union(*(reservation.answered() for reservation in self._reserved))", "self.answered", COSTS),
    TextMutant("whole noise without the word on differences", "src/privlearn/mechanisms/summed/summed.py", 'f"stop. {ONLY_NOISE}"', '"stop."', ATTACKED),
    Mutant("an interruption ends a run", "privlearn.parties.run.coordinator_run:CoordinatorRun.train", "not self._resumable", "True", RUNS),
    Mutant("repetitions keep a party waiting", "privlearn.parties.flower.node:FlowerNode.serve", "progress() > steps", "True", ("parties/test_flower_link.py",)),
]  # fmt: skip
