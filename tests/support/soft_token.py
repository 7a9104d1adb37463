"""A token of PKCS#11 that is software (SoftHSM), with keys of both kinds that a server may sign with, and others."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pkcs11
import pytest
from pkcs11.util.ec import encode_named_curve_parameters

PIN = "correct-horse"
_MODULES = ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/pkcs11/libsofthsm2.so")
_ED25519 = "1.3.101.112"


def soft_token(folder: Path) -> str:
    """Return the module's path; a process reads the configuration once, so this token is its only one."""
    module = next((path for path in _MODULES if Path(path).exists()), None)
    if shutil.which("softhsm2-util") is None or module is None:
        pytest.skip("needs softhsm2: `make test` installs it")
    (folder / "tokens").mkdir()
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder}/tokens\n")
    os.environ["SOFTHSM2_CONF"] = str(folder / "softhsm2.conf")
    command = [
        "softhsm2-util",
        "--init-token",
        "--free",
        "--label",
        "clinic",
        "--pin",
        PIN,
        "--so-pin",
        "0000",
    ]
    subprocess.run(command, check=True, capture_output=True)
    with pkcs11.lib(module).get_token(token_label="clinic").open(rw=True, user_pin=PIN) as session:
        kinds, mechanisms = pkcs11.KeyType, pkcs11.Mechanism
        for label, kind, curve, mechanism in (
            ("p256", kinds.EC, "secp256r1", mechanisms.EC_KEY_PAIR_GEN),
            ("half", kinds.EC, "secp256r1", mechanisms.EC_KEY_PAIR_GEN),
            ("p384", kinds.EC, "secp384r1", mechanisms.EC_KEY_PAIR_GEN),
            ("ed25519", kinds.EC_EDWARDS, _ED25519, mechanisms.EC_EDWARDS_KEY_PAIR_GEN),
        ):
            named = {pkcs11.Attribute.EC_PARAMS: encode_named_curve_parameters(curve)}
            parameters = session.create_domain_parameters(kind, named, local=True)
            _, private = parameters.generate_keypair(mechanism=mechanism, label=label, store=True)
            if label == "half":
                private.destroy()
    return module
