"""A release belongs to one run of one plan: every party signs who was in which sum, and a stranger can check it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from privlearn import evaluate
from privlearn.cli import app
from privlearn.errors import ProtocolError, TooFewParties, VerificationError
from privlearn.parties import train_together
from privlearn.parties.run import QUESTION_NUMBER, Parts, Stage
from privlearn.parties.run.conversation import question_rounds, result_digest
from privlearn.parties.run.witness import _is_near
from privlearn.parties.secure_sum import COORDINATOR, Step, seal
from privlearn.parties.secure_sum.party import NUMBER
from privlearn.release import Release, Round, RunRecord, verify
from tests.support.run_cases import IDENTITIES, SIZES, TABLES, Wire, agreement_of

AGREEMENT, LENIENT = agreement_of(), agreement_of(dropouts=1, colluding=0)
QUESTIONS = len(AGREEMENT.mechanism.kinds)


def lost_west(from_question: int) -> Wire:
    """Return a run that west leaves: its answers are lost from this question on, and it signs nothing."""
    wire, asked = Wire(LENIENT), []

    def tamper(stage: Stage, name: str, reply: Parts | str) -> Parts | str | None:
        asked.append((stage, name))
        gone = asked.count((Stage.QUESTION, "west")) > from_question
        return None if gone and name == "west" else reply

    wire.tamper = tamper
    return wire


@pytest.fixture(scope="module")
def release() -> Release:
    made = lost_west(1).coordinator.train()
    assert isinstance(made, Release)
    return made


def record_of(release: Release) -> RunRecord:
    assert release.run is not None
    return release.run


def test_the_release_says_how_many_records_were_really_in_each_sum(release: Release, tmp_path: Path) -> None:
    path = tmp_path / "joint.privlearn"
    release.save(path)
    run = verify(path).run
    assert run is not None
    assert run.plan_digest == LENIENT.digest
    assert run.sums == (tuple(SIZES), *[("north", "south")] * (QUESTIONS - 1))
    assert run.records == [2400, *[1400] * (QUESTIONS - 1)]
    assert set(run.sign_offs) == set(SIZES)
    assert list(run.signatures) == ["north", "south"]
    for command in ("verify", "inspect"):
        shown = CliRunner().invoke(app, [command, str(path)]).output
        assert f"2400 in 1 of {QUESTIONS} sums, 1400 in {QUESTIONS - 1} of {QUESTIONS} sums" in shown
        assert f"north in {QUESTIONS}, south in {QUESTIONS}, west in 1" in shown
        assert "north, south; not by west" in shown
        assert "records  " not in shown.replace("records     2400 in 1", "").replace("run: records", "")


def test_a_threshold_chosen_later_keeps_the_record(release: Release) -> None:
    evaluation = evaluate(release, TABLES["west"], epsilon=2.0)
    decided = Release.from_bytes(release.with_threshold(0.4, evaluation).to_bytes())
    assert decided.run == release.run
    assert decided.undecided.digest == release.digest


def test_a_release_refined_later_keeps_the_record(release: Release) -> None:
    refined = Release.from_bytes(release.refined([Round(2)]).to_bytes())
    assert refined.run == release.run
    assert refined.origin.digest == release.digest


def forged(**changes: Any) -> Callable[[RunRecord], RunRecord]:
    return lambda run: replace(run, **changes)


def with_plan(change: Callable[[dict[str, Any]], object]) -> Callable[[RunRecord], RunRecord]:
    def changed(run: RunRecord) -> RunRecord:
        content = json.loads(run.plan)
        change(content)
        return replace(run, plan=json.dumps(content, separators=(",", ":")))

    return changed


def other_key(content: dict[str, Any]) -> None:
    key = bytearray(base64.urlsafe_b64decode(content["keys"]["north"]))
    key[:32] = IDENTITIES["coordinator"].public.signing
    content["keys"]["north"] = base64.urlsafe_b64encode(bytes(key)).decode()


def swapped(signatures: Mapping[str, str]) -> dict[str, str]:
    return dict(zip(signatures, reversed(list(signatures.values())), strict=True))


FORGERIES: dict[str, tuple[Callable[[RunRecord], RunRecord], str]] = {
    "all in every sum": (forged(sums=(tuple(SIZES),) * QUESTIONS), "not signed by 'north'"),
    "too few in a sum": (lambda run: replace(run, sums=(("north",), *run.sums[1:])), "does not allow"),
    "one twice in a sum": (lambda run: replace(run, sums=(("north",) * 2, *run.sums[1:])), "does not allow"),
    "a stranger": (lambda run: replace(run, sums=(("north", "south", "x"), *run.sums[1:])), "does not allow"),
    "a sum left out": (lambda run: replace(run, sums=run.sums[1:]), "different plans"),
    "another run": (forged(run="00" * 32), "not signed by"),
    "no sign-off": (forged(sign_offs={}), "missing"),
    "sign-offs exchanged": (lambda run: replace(run, sign_offs=swapped(run.sign_offs)), "not signed by"),
    "signatures exchanged": (lambda run: replace(run, signatures=swapped(run.signatures)), "not signed by"),
    "one signature": (lambda run: replace(run, signatures=dict([*run.signatures.items()][:1])), "missing"),
    "more dropouts": (with_plan(lambda agreement: agreement.update(dropouts=2)), "different plans"),
    "fewer records": (with_plan(lambda agreement: agreement["parties"].update(west=10)), "different plans"),
    "records exchanged": (
        with_plan(lambda agreement: agreement["parties"].update(north=800, south=600)),
        "not signed",
    ),
    "another schema": (
        with_plan(lambda agreement: agreement["schema"].update(name="other")),
        "different plans",
    ),
    "another key": (with_plan(other_key), "not signed by 'north'"),
    "no plan": (forged(plan="{}"), "malformed"),
    "not a run's name": (forged(run="x"), "malformed"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_verify_refuses_what_the_parties_did_not_sign(release: Release, forgery: str) -> None:
    change, told = FORGERIES[forgery]
    changed = replace(release, run=change(record_of(release)), signature=None)
    with pytest.raises(VerificationError, match=told):
        Release.from_bytes(changed.to_bytes())


def test_the_record_of_another_model_is_refused(release: Release) -> None:
    other = train_together(LENIENT, TABLES, random_state=1)
    with pytest.raises(VerificationError, match="not signed by 'north'"):
        Release.from_bytes(replace(other, run=release.run).to_bytes())
    bare = replace(release, run=None, signature=None)
    assert Release.from_bytes(bare.to_bytes()).run is None  # as files of several holders were before


def shown_until(stage: Stage, wire: Wire) -> Parts:
    """Return what the party north would receive at this stage, where the run breaks off."""
    exchange, held = wire.exchange, []

    def watch(now: Stage, parts: Mapping[int, Parts]) -> Mapping[int, Parts | str]:
        if now is stage:
            held.append(parts[0])
            raise ProtocolError("far enough")
        return exchange(now, parts)

    wire.coordinator._exchange = watch
    with pytest.raises(ProtocolError, match="far enough"):
        wire.coordinator.train()
    wire.parties["north"].stopped = None  # the coordinator told them to stop
    return held[0]


def test_a_party_signs_one_result_with_the_sums_that_it_saw() -> None:
    wire = Wire(LENIENT)
    north, (_, result, record, *evidence) = wire.parties["north"], shown_until(Stage.RESULT, wire)
    run = RunRecord.from_bytes(record)
    guarantee = train_together(agreement_of(dropouts=1, colluding=0, epsilon=1.0), TABLES)

    def show(content: bytes, written: bytes) -> Parts:
        return north.handle("result", [*sealed_result(wire, content, written), *evidence])

    for content, written, told in (
        (result, replace(run, sums=(("north", "south"), *run.sums[1:])), "lists other parties in a sum"),
        (result, replace(run, sums=run.sums[:-1]), "lists other parties in a sum"),
        (result, replace(run, plan=AGREEMENT.canonical().decode()), "another agreement or run"),
        (result, replace(run, run="00" * 32), "another agreement or run"),
        (guarantee.to_bytes(), run, "does not state the agreement's guarantee"),
    ):
        with pytest.raises(ProtocolError, match=told):
            show(content, written.to_bytes())
    with pytest.raises(ProtocolError, match="malformed"):
        show(result, b"[]")
    other = train_together(LENIENT, TABLES)
    with pytest.raises(ProtocolError, match="does not follow from the sums"):
        show(other.to_bytes(), record)
    assert show(result, record) == show(result, record)
    progress = north.progress
    assert north.handle("result", [*sealed_result(wire, result, record), *evidence, *evidence[:4]])
    assert north.progress == progress  # a step counts once, in however many messages it comes
    with pytest.raises(ProtocolError, match="signed another result"):
        show(other.to_bytes(), record)


def sealed_result(wire: Wire, result: bytes, record: bytes) -> Parts:
    """Return a result as the coordinator presents it."""
    session, body = wire.coordinator._sessions[0], result_digest(result, record)
    return [seal(IDENTITIES["coordinator"].key, session, Step.RESULT, COORDINATOR, body), result, record]


def test_a_party_refuses_the_release_of_another_plan_or_run(release: Release) -> None:
    wire = Wire(LENIENT)
    (right,) = shown_until(Stage.RELEASE, wire)
    bare = replace(Release.from_bytes(right), run=None, signature=None).signed(IDENTITIES["coordinator"].key)
    for other, told in ((release, "another agreement or run"), (bare, "no record of its run")):
        with pytest.raises(ProtocolError, match=told):
            wire.parties["north"].handle("release", [other.to_bytes()])
    assert wire.parties["north"].handle("release", [right]) == []


def test_without_enough_signatures_there_is_no_release() -> None:
    wire = Wire(AGREEMENT)
    wire.tamper = lambda stage, name, reply: [bytes(64)] if (stage, name) == (Stage.RESULT, "west") else reply
    with pytest.raises(TooFewParties, match="2 parties signed the result; the agreement needs 3"):
        wire.coordinator.train()


@pytest.mark.parametrize("deceived", [["north"], ["north", "south"]])
def test_who_was_told_another_list_does_not_sign(deceived: list[str]) -> None:
    """They hear that west is missing from the first sum, the others that everybody is there."""
    wire = Wire(LENIENT)
    exchange, names = wire.exchange, list(SIZES)

    def lie(stage: Stage, parts: Mapping[int, Parts]) -> Mapping[int, Parts | str]:
        if stage is Stage.SURVIVORS and next(iter(parts.values()))[0] == bytes(4):
            session, body = wire.coordinator._sessions[0], b"".join(map(NUMBER.pack, (0, 1)))
            fewer = seal(IDENTITIES["coordinator"].key, session, Step.SURVIVORS, COORDINATOR, body, 0)
            parts = {**parts, **{names.index(name): [bytes(4), fewer] for name in deceived}}
        return exchange(stage, parts)

    wire.coordinator._exchange = lie
    if len(deceived) > LENIENT.dropouts:
        with pytest.raises(ProtocolError):
            wire.coordinator.train()
        assert not any(party.release for party in wire.parties.values())
    else:
        made = wire.coordinator.train()
        assert isinstance(made, Release)
        run = record_of(made)
        assert run.properties["attested"] == "south, west; not by north"
        assert wire.parties["north"].release is None


def test_a_list_under_another_question_s_number_is_refused() -> None:
    """Else the true list of that question would take its place in what the party remembers."""
    wire = Wire(LENIENT)
    exchange, refused = wire.exchange, list[Parts | str]()
    sessions = [place.session for place in question_rounds(LENIENT)]
    number = next(number for number, session in enumerate(sessions) if sessions[number + 1] == session)

    def lie(stage: Stage, parts: Mapping[int, Parts]) -> Mapping[int, Parts | str]:
        if stage is Stage.SURVIVORS and parts[0][0] == QUESTION_NUMBER.pack(number):
            party = wire.parties[next(iter(SIZES))]
            refused.append(party.reply(stage, [QUESTION_NUMBER.pack(number + 1), parts[0][1]]))
        return exchange(stage, parts)

    wire.coordinator._exchange = lie
    wire.coordinator.train()
    assert refused == ["the list of arrived vectors is sealed for another round"]


@pytest.mark.parametrize(("scale", "near"), [(1 + 1e-7, True), (-1.0, False), (1.001, False)])
def test_small_numbers_are_compared_with_the_largest_of_them(scale: float, near: bool) -> None:
    numbers = np.array([3e-9, -1e-9])
    assert _is_near(scale * numbers, numbers) is near
    assert _is_near(numbers + 1e-16, numbers)
    assert _is_near(0.0 * numbers, 0.0 * numbers)
