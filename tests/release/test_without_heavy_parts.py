"""Whoever predicts and verifies needs neither OpenDP nor scikit-learn, the largest parts but Arrow and scipy."""

from __future__ import annotations

import subprocess
import sys

from tests.support.release_files import release_file

_ALONE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in "opendp sklearn joblib dp_accounting sqlalchemy alembic pandas".split():
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from privlearn.release import Release, verify
assert verify(sys.argv[1]).is_private
assert len(Release.load(sys.argv[1]).model.predict({"age": [41], "dose": [2.0], "sex": ["female"]})) == 1
"""


def test_predict_and_verify() -> None:
    subprocess.run([sys.executable, "-c", _ALONE, str(release_file("logistic"))], check=True)
