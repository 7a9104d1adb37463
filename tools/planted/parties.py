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
)

TRUSTED = "multiparty/run/training.py"
PARTY_RUN = "multiparty/run/party_run.py"
SHARE = "multiparty/secure_sum/noise_share.py"
FIXED_POINT = "multiparty/secure_sum/noise_share.py"
MASKING_PARTY = "multiparty/secure_sum/party.py"
MASK = "multiparty/secure_sum/masks.py"
WITNESSED = "multiparty/run/witness.py"
RECORD = "release/run_record.py"
PURSE = "multiparty/run/purse.py"
MEMORY = "multiparty/run/memory.py"
JOURNAL = "multiparty/run/journal.py"
OPENING = "multiparty/secure_sum/opening.py"
LINK = "multiparty/flower/link.py"
NODE = "multiparty/flower/node.py"

MUTANTS = [
    Mutant("half the noise of a share drawn, seen by the audit", SHARE, "randomness.discrete_gaussian(self.share_scale / self.step, dimension)", "randomness.discrete_gaussian(0.5 * self.share_scale / self.step, dimension)", WHOLE_RUNS),
    Mutant("noise shared among the missing too", SHARE, "math.sqrt(self.cohort.honest)\n", "math.sqrt(self.cohort.parties)\n", SHARES),
    Mutant("gap of the summed law forgotten", SHARE, "+ 10.0 * math.fsum(gaps)", "+ 0.0 * math.fsum(gaps)", SHARES),
    Mutant("rounding of the summands for free", SHARE, "sensitivity / self.step + self.parties_per_person * math.sqrt(dimension)", "sensitivity / self.step", SHARES),
    Mutant("overflow of the noise forgotten", FIXED_POINT, "return values + TAIL", "return values + 0.0 * TAIL", SHARES),
    Mutant("overflow of the parties forgotten", FIXED_POINT, "min(self.parties * self.bound, together)", "min(self.bound, together)", SHARES),
    Mutant("rounding of the parties forgotten", FIXED_POINT, "largest / self.step + self.parties", "largest / self.step", SHARES),
    Mutant("each party bounded by all records", TRUSTED, "bound = question.bound * self._weight", "bound = question.bound", (*RUNS, "multiparty/test_private_counts.py")),
    Mutant("no mask of one's own", MASKING_PARTY, "words + self_mask(keys.own, self._session, round, self._number)", "words + np.uint64(0)", MASKS),
    Mutant("pair masks all added", MASK, "total + mask if party == low else total - mask", "total + mask", MASKS),
    Mutant("one mask for all rounds", "multiparty/secure_sum/session.py", "tuple(RoundKeys(_fresh(), _fresh()) for _ in range(rounds))", "(RoundKeys(_fresh(), _fresh()),) * rounds", MASKS),
    Mutant("mask keys folded to 32 bits", MASK, "Cipher(ChaCha20(key, nonce)", "Cipher(ChaCha20(key[:4] * 8, nonce)", MASKS),
    Mutant("a round answered twice", MASKING_PARTY, "self._forget_before(letter.round + 1)", "self._forget_before(letter.round)", MASKS),
    Mutant("coordinator as a party", "multiparty/secure_sum/session.py", "if letter.sender == COORDINATOR:", "if False:", MASKS),
    Mutant("letter's signature not checked", "multiparty/secure_sum/session.py", ".verify(signature, content)", "", MASKS),
    Mutant("party without noise", PARTY_RUN, "if words is None else words) + noise", "if words is None else words)", RUNS),
    Mutant("party with half the noise", "multiparty/run/conversation.py", "NoiseShare(noise[0].scale,", "NoiseShare(noise[0].scale / 2,", RUNS),
    Mutant("other constants noticed when all is spent", PARTY_RUN, "if constants != self._plan.constants_digest:", "if False:", ("multiparty/test_coordinator_run.py",)),
    Mutant("any plan is signed", PARTY_RUN, "if digest != bytes.fromhex(self._plan.digest):", "if False:", RUNS),
    Mutant("others' sign-offs not checked", PARTY_RUN, "if not conversation.identity_of(self._plan, name).has_signed(", "if False and (", RUNS),
    Mutant("cost not final", "ledger/charge.py", '            self._settle_in(connection, "committed")\n', "", RUNS),
    Mutant("signs before paying", PARTY_RUN, "self._purse.reserve()", "pass", RUNS),
    Mutant("an old question answered", PARTY_RUN, "if number < self._next_question:", "if False:", RUNS),
    Mutant("a refusal about the rows leaves", PARTY_RUN, "return str(error) if isinstance(error, ProtocolError) else STAYS_HERE", "return str(error)", RUNS),
    Mutant("coefficients that are not finite answered", PARTY_RUN, "if not np.isfinite(coefficients).all():", "if False:", HOSTILE),
    Mutant("warnings depend on the rows asked about", "multiparty/run/training.py", 'with np.errstate(all="ignore"):', "with np.errstate():", HOSTILE),
    Mutant("a twin answers too", "ledger/charge.py", "if self._recorded(connection, question, _VECTOR) is not None:", "if False:", RESUMED),
    Mutant("a twin opens another list", PARTY_RUN, "        self._purse.reveal(number, message)\n", "", RESUMED),
    Mutant("a question counted after computing", PARTY_RUN, "        self._next_question, self._begun = number + 1, number\n        self._remember()\n        try:\n            self._purse.spend(number)  # from here on something may leave\n            masked = self._sums[place.session].mask(place.round, self._noisy(question))\n", "        self._remember()\n        try:\n            self._purse.spend(number)  # from here on something may leave\n            masked = self._sums[place.session].mask(place.round, self._noisy(question))\n            self._next_question, self._begun = number + 1, number\n", RUNS),
    Mutant("a question paid for after computing", PARTY_RUN, "            self._purse.spend(number)  # from here on something may leave\n            masked = self._sums[place.session].mask(place.round, self._noisy(question))\n", "            masked = self._sums[place.session].mask(place.round, self._noisy(question))\n            self._purse.spend(number)\n", RUNS),
    Mutant("a question before the session costs", PARTY_RUN, "        self._sums[place.session].check_open(place.round)\n", "", RUNS),
    Mutant("a failed answer tells why", PARTY_RUN, "raise ProtocolError(STAYS_HERE) from None", "raise ProtocolError(_in_words(error)) from None", RUNS),
    Mutant("a failed answer does not end the run", PARTY_RUN, 'self.stopped = f"question {number} could', 'self.failed = f"question {number} could', RUNS),
    Mutant("failures of others' code leave", PARTY_RUN, '        except Exception as error:\n            self._tell(f"Refused', '        except PrivlearnError as error:\n            self._tell(f"Refused', RUNS),
    Mutant("minimisers after the sign-off", PARTY_RUN, '            if kind != "gradients"\n        }', '            if kind == "second_moments"\n        }', RUNS),
    Mutant("cohorts that can be split accepted", "multiparty/secure_sum/session.py", "if self.dropouts > most:", "if False:", LIARS),
    Mutant("one dropout too many", "multiparty/secure_sum/session.py", "if self.dropouts > most:", "if self.dropouts > most + 1:", LIARS),
    Mutant("one honest party too few", "multiparty/secure_sum/session.py", "(math.isqrt(4 * honest - 3) - 1) // 2", "(math.isqrt(4 * honest + 1) - 1) // 2", LIARS),
    Mutant("helpers not counted in a cohort", "multiparty/secure_sum/session.py", "_most_dropouts(self.parties - self.colluding)", "_most_dropouts(self.parties)", LIARS),
    Mutant("a part of the inbox is enough", MASKING_PARTY, 'self._require(len(contents), self._session.cohort.parties, "gave', 'self._require(len(contents), self._session.cohort.threshold, "gave', LIARS),
    Mutant("a part of the roster is enough", MASKING_PARTY, 'self._require(len(roster), self._session.cohort.parties, "adv', 'self._require(len(roster), self._session.cohort.threshold, "adv', MASKS),
    Mutant("set-up without everybody", "multiparty/secure_sum/coordinator.py", "needed = cohort.parties if step in (Step.KEYS, Step.SHARES) else cohort.threshold", "needed = cohort.threshold", MASKS),
    Mutant("starts without a sign-off", "multiparty/run/coordinator_run.py", "        if missing:", "        if False:", RUNS),
    Mutant("psgd draws its kept noise anew", TRUSTED, "if noise not in self._kept:", "if True:", PARTIES),
    Mutant("one party draws for all", TRUSTED, "range(len(self._parties) if noise.by_each else 1)", "range(1)", PARTIES),
    Mutant("survivors not counted", MASKING_PARTY, '        self._require(len(arrived), self._session.cohort.threshold, "sent a vector")\n', "", MASKS),
    Mutant("another run's release taken", WITNESSED, "if run.plan.encode() != self._plan.canonical() or run.run != self._run.hex():", "if run.plan.encode() != self._plan.canonical():", WITNESS),
    Mutant("another plan's release taken", WITNESSED, "if run.plan.encode() != self._plan.canonical() or", "if", WITNESS),
    Mutant("sums signed that were not seen", WITNESSED, "if dict(enumerate(run.sums)) != dict(enumerate(run.sums)) | self._seen:", "if False:", WITNESS),
    Mutant("a run from before answers were recorded goes on", PURSE, 'one.state() == "committed" and not one.answered()', "False", COSTS),
    Mutant("two results signed", WITNESSED, 'if self._signed not in ("", release.model_digest):', "if False:", WITNESS),
    Mutant("parties' signatures not checked", RECORD, "self._check(name, signature, self.statement(name, model_digest))", "pass", WITNESS),
    Mutant("sign-offs not checked by verify", RECORD, "        for name, signature in self.sign_offs.items():", "        for name, signature in ():", WITNESS),
    Mutant("sums not in what is signed", RECORD, "self.run, self.sums, model_digest, name]", "self.run, model_digest, name]", WITNESS),
    Mutant("model not in what is signed", RECORD, "self.sums, model_digest, name]", "self.sums, name]", WITNESS),
    Mutant("a sum of too few verified", RECORD, "any(not needed <= len(set(names)", "any(not 1 <= len(set(names)", WITNESS),
    Mutant("too few sign the result", "multiparty/run/coordinator_run.py", "if len(signatures) < needed:", "if False:", WITNESS),
    Mutant("what was answered given back", PURSE, "if place not in kept:", "if True:", COSTS),
    Mutant("a begun run given back in part", PURSE, "isinstance(ledger.rule(), RenyiComposition)", "True", COSTS),
    Mutant("unasked questions charged", PURSE, "        self._give_back()\n        return f\"{told}", "        return f\"{told}", COSTS),
    Mutant("others' reservations given back", PURSE, "if entry.purpose == self._purpose and entry.state", "if entry.state", COSTS),
    Mutant("the same message answered anew", PARTY_RUN, "if message == self._answered:", "if False:", RESUMED),
    Mutant("a reply leaves before it is kept", PARTY_RUN, "message, reply, None\n            self._remember()", "message, reply, None", RESUMED),
    Mutant("a question begun is not kept", PARTY_RUN, "= number + 1, number\n        self._remember()", "= number + 1, number", RESUMED),
    Mutant("asked again after a crash while computing", PARTY_RUN, 'if kept["begun"] is not None:', "if False:", RESUMED),
    Mutant("an old copy of a run goes on", PURSE, 'if self.asked - {begun} != set(content["asked"]) - {begun}:', "if False:", RESUMED),
    Mutant("used keys stay on disk", MASKING_PARTY, "keys = self._unused.pop(round)", "keys = self._unused[round]", RESUMED),
    Mutant("a party's file for all to read", MEMORY, "os.O_TRUNC, 0o600", "os.O_TRUNC, 0o644", RESUMED),
    Mutant("two processes in one run", MEMORY, "fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)", "pass", RESUMED),
    Mutant("secrets left after a run", PARTY_RUN, "self._memory.forget()", "pass", RESUMED),
    Mutant("replies not kept", JOURNAL, 'self._append({"sent": sent, "replies": texts})', "pass", RESUMED),
    Mutant("another plan's journal taken up", JOURNAL, 'if head.get("plan") != plan.digest:', "if False:", RESUMED),
    Mutant("a stopped run taken up", JOURNAL, "                self.end()\n", "", RESUMED),
    Mutant("honest parties blamed", OPENING, "len(against) > max(colluding, 1)", "len(against) >= max(colluding, 1)", BLAMED),
    Mutant("own false shares excused", OPENING, "party in against or ", "", BLAMED),
    Mutant("one false share loses the round", OPENING, "range(min(len(first), len(rest)) + 1)", "range(1)", BLAMED),
    Mutant("a liar is asked again", "multiparty/run/coordinator_run.py", "self._liars |= blame.liars", "pass", BLAMED),
    Mutant("a killed node kept out", LINK, "        self.deactivate_node(node_id)\n", "", RECONNECTED),
    Mutant("a message lost with its process", "multiparty/flower/apps.py", "reached.get(party) != since:", "party not in reached:", RECONNECTED),
    Mutant("the coordinator's clock not followed", NODE, "        self.shift = shift\n", "", RECONNECTED),
    Mutant("a coordinator started again not found", NODE, "                self._connect_anew()\n", "                pass\n", RECONNECTED),
    Mutant("an expired certificate served", LINK, "        check_dates(certificate)\n", "", RECONNECTED),
    Mutant("weak: a plan of parties", "multiparty/run/joint_plan.py", "check_strength(self._with_schema, self.total, self.accept_weak_privacy)", "self.mechanism  # noqa: B018", WEAK),
]  # fmt: skip
