"""A party's own limits, its key, and the keys of a plan."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from privlearn.cli import app
from privlearn.errors import InvalidParameter, SchemaError
from privlearn.parties.run import Identity, PartySettings
from privlearn.parties.run.conversation import identity_of
from privlearn.parties.run.identity import PublicIdentity
from tests.support.run_cases import IDENTITIES, KEYS, SCHEMA, agreement_of

AGREEMENT = agreement_of()
LIMITS: dict[str, Any] = {
    "name": "north",
    "plan": "plan.toml",
    "identity": "north.key",
    "coordinator": "hub.example.org:9443",
    "certificate": "coordinator.crt",
    "ledger": "north.ledger",
    "max_epsilon": 2.0,
    "max_delta": 1e-5,
}


def test_a_plan_within_the_limits_is_accepted() -> None:
    questions = len(AGREEMENT.mechanism.kinds)
    PartySettings(**LIMITS, max_questions=questions, schema_digest=SCHEMA.digest).check(AGREEMENT)


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ({"max_epsilon": 1.99}, "max_epsilon 1.99"),
        ({"max_delta": 1e-6}, "max_delta 1e-06"),
        ({"max_questions": 2}, "has 3 questions"),
        ({"schema_digest": "0" * 64}, "not this party's schema_digest"),
        ({"name": "east"}, "no party 'east'"),
    ],
    ids=["epsilon", "delta", "questions", "schema", "name"],
)
def test_a_plan_beyond_a_limit_is_refused(limit: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        PartySettings(**LIMITS | limit).check(AGREEMENT)


def test_a_ledger_on_a_server_is_an_address(tmp_path: Path) -> None:
    address = "postgresql://north@db.example.org/budgets"
    file = tmp_path / "north.toml"
    file.write_text("".join(f"{key} = {value!r}\n" for key, value in (LIMITS | {"ledger": address}).items()))
    assert PartySettings.load(file).ledger == address


def test_paths_are_relative_to_the_file_and_mistakes_are_told(tmp_path: Path) -> None:
    file = tmp_path / "north.toml"
    file.write_text("".join(f"{key} = {value!r}\n" for key, value in LIMITS.items()))
    assert PartySettings.load(file).identity == tmp_path / "north.key"
    assert PartySettings.load(file).ledger == str(tmp_path / "north.ledger")
    assert PartySettings.load(file).state == tmp_path
    file.write_text(file.read_text() + "epsilon = 3.0\n")
    with pytest.raises(SchemaError, match="unknown setting"):
        PartySettings.load(file)
    file.write_text("name = north\n")
    with pytest.raises(SchemaError, match="not valid TOML"):
        PartySettings.load(file)
    with pytest.raises(SchemaError, match="cannot be read"):
        PartySettings.load(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"north": KEYS["north"]}, "a key for each of coordinator, north, south, west"),
        (KEYS | {"south": KEYS["north"]}, "the same key"),
        (KEYS | {"west": KEYS["west"][:-4]}, "west: not a public identity"),
        (KEYS | {"west": "nonsense"}, "west: not a public identity"),
    ],
    ids=["missing", "twice", "short", "nonsense"],
)
def test_keys_that_are_not_everybodys_are_refused(keys: dict[str, str], told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        agreement_of(keys=keys)


def test_the_keys_are_part_of_what_is_signed() -> None:
    other = agreement_of(keys=KEYS | {"west": str(Identity.generate().public)})
    assert other.digest != AGREEMENT.digest
    with pytest.raises(InvalidParameter, match="privlearn identity"):
        identity_of(agreement_of(keys=None), "north")


def test_an_identity_is_a_file_for_its_owner_and_a_line_for_the_plan(tmp_path: Path) -> None:
    runner = CliRunner()
    made = runner.invoke(
        app, ["identity", "coordinator", "--host", "localhost", "--directory", str(tmp_path)]
    )
    name, _, text = made.stdout.strip().partition(" = ")
    read = Identity.read(tmp_path / "coordinator.key")
    assert name == "coordinator"
    assert PublicIdentity.parse(text.strip('"')) == read.public
    for secret in ("coordinator.key", "coordinator.tls.key"):
        assert stat.S_IMODE((tmp_path / secret).stat().st_mode) == 0o600
    with pytest.raises(InvalidParameter, match="exists"):
        read.write(tmp_path / "coordinator.key")


def test_the_node_key_follows_from_the_identity_alone() -> None:
    north = IDENTITIES["north"]
    assert north.public.node_key() == north.node_key().public_key()
    assert Identity(north.key).public == north.public != IDENTITIES["south"].public


def test_a_party_asks_for_a_colluding_party_unless_its_settings_say_otherwise(tmp_path: Path) -> None:
    curious = agreement_of(colluding=0)
    settings: dict[str, Any] = {
        "name": "north",
        "plan": tmp_path / "plan.toml",
        "identity": tmp_path / "north.key",
        "coordinator": "hub:9443",
        "certificate": tmp_path / "hub.crt",
        "ledger": "north.ledger",
        "max_epsilon": 2.0,
        "max_delta": 1e-5,
    }
    with pytest.raises(InvalidParameter, match="below this party's min_colluding 1"):
        PartySettings(**settings).check(curious)
    towards = curious.towards_a_party
    assert towards is not None
    assert towards.epsilon > 2.0
    with pytest.raises(InvalidParameter, match="towards another party, above this party's max_epsilon 2"):
        PartySettings(**settings, min_colluding=0).check(curious)
    PartySettings(**settings | {"max_epsilon": towards.epsilon}, min_colluding=0).check(curious)
    with pytest.raises(InvalidParameter, match="min_colluding 2"):
        PartySettings(**settings, min_colluding=2).check(AGREEMENT)


def test_a_plan_of_whole_noise_allows_for_all_other_parties() -> None:
    whole = agreement_of(colluding=0, algorithm="aggregation", rounds=None, delta=0.0)
    PartySettings(**LIMITS, min_colluding=2).check(whole)


TORSION = {
    "order 1": "01" + 31 * "00",
    "order 1, other sign": "01" + 30 * "00" + "80",
    "order 1, not reduced": "ee" + 30 * "ff" + "7f",
    "order 2": "ec" + 30 * "ff" + "7f",
    "order 4": 32 * "00",
    "order 4, other sign": 31 * "00" + "80",
    "order 4, not reduced": "ed" + 30 * "ff" + "7f",
    "order 8": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "order 8, other sign": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "order 8, second": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "order 8, second, other sign": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
}


@pytest.mark.parametrize("point", TORSION)
def test_a_key_that_one_signature_fits_for_many_messages_is_refused(point: str) -> None:
    key = PublicIdentity(bytes.fromhex(TORSION[point]), IDENTITIES["west"].public.node)
    with pytest.raises(InvalidParameter, match="not a public identity"):
        PublicIdentity.parse(str(key))
