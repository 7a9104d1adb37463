"""What certificates say about attackers: of each relation its own question, of each kind of person its own words."""

from __future__ import annotations

import pytest
from scipy.stats import norm

from privlearn import Guarantee, verify
from privlearn.accounting import Curve, GaussianCurve, GaussianObjectiveCurve, PureCurve, ZcdpCurve
from privlearn.guarantee import RELATIONS
from privlearn.release import meaning_of
from tests.support.release_files import NAMES, SESSIONS, release_file, session_certificate


def test_the_numbers_are_those_of_the_mechanism_and_not_of_the_claim() -> None:
    promise = Guarantee(1.0, 1e-6)
    exact, stated = meaning_of(promise, GaussianCurve(0.27)), meaning_of(promise)
    assert exact is not None
    assert stated is not None
    assert exact.mu == 0.27
    assert stated.mu is None
    assert exact.true_positives == pytest.approx([norm.cdf(norm.ppf(rate) + 0.27) for rate in (0.01, 0.001)])
    assert all(own < claim for own, claim in zip(exact.true_positives, stated.true_positives, strict=True))
    assert (
        "1.99 % of cases if false alarms are 1 %; 0.24 % of cases if false alarms are 0.1 %"
        in exact.in_words()
    )
    assert "mu is unknown" in stated.in_words()


@pytest.mark.parametrize("name", ["replace_one", "zero_out", "add_remove"])
def test_each_relation_has_its_own_question(name: str) -> None:
    meaning = meaning_of(Guarantee(1.0, 0.0, name))
    assert meaning is not None
    assert (
        meaning.question
        == f"whether one person's record is in the data as before, or {RELATIONS[name].change}"
    )
    assert ("which of two records" in meaning.in_words()) == (name != "replace_one")


def test_a_person_may_have_several_records() -> None:
    for rows, words in ((3, "one person's records (up to 3) are"), (None, "one person's records (all) are")):
        meaning = meaning_of(Guarantee(1.0), rows_per_person=rows)
        assert meaning is not None
        assert words in meaning.question


def test_nothing_promised_means_nothing() -> None:
    assert meaning_of(Guarantee(float("inf"))) is None


@pytest.mark.parametrize(
    "curve",
    [PureCurve(0.3), PureCurve(1.0), PureCurve(4.0), GaussianObjectiveCurve(0.2, 0.3), ZcdpCurve(0.05)],
)
def test_mu_is_called_what_it_is_an_upper_bound(curve: Curve) -> None:
    meaning = meaning_of(Guarantee(1.0, 1e-6), curve)
    assert meaning is not None
    assert meaning.mu is not None
    gaussian = [norm.cdf(norm.ppf(rate) + meaning.mu) for rate in (0.01, 0.001)]
    assert all(own <= most for own, most in zip(meaning.true_positives, gaussian, strict=True))
    harder = any(own < 0.999 * most for own, most in zip(meaning.true_positives, gaussian, strict=True))
    assert "at least as hard as" in meaning.in_words()
    assert ("harder at the rates" in meaning.in_words()) == harder
    assert harder or not isinstance(curve, PureCurve)


def test_gaussian_noise_is_just_as_hard() -> None:
    meaning = meaning_of(Guarantee(1.0, 1e-6), GaussianCurve(1.24))
    assert meaning is not None
    assert "harder at the rates" not in meaning.in_words()


def test_numbers_are_rounded_upwards() -> None:
    meaning = meaning_of(Guarantee(1.0, 1e-6), GaussianCurve(0.27001))
    assert meaning is not None
    assert "mu = 0.271," in meaning.properties["Gaussian privacy"]


@pytest.mark.parametrize("name", [*NAMES, *(f"session {name}" for name in SESSIONS)])
def test_every_file_says_it(name: str) -> None:
    mechanism = name.removeprefix("session ")
    proven = verify(release_file(name) if mechanism == name else session_certificate(mechanism))
    meaning = proven.certificate.meaning
    assert meaning is not None
    assert meaning.properties.items() <= proven.certificate.properties.items()
    both = proven.certificate.together
    stated = meaning_of(both)
    assert stated is not None
    # No mechanism lets more through than its claim, with what was bought, says.
    assert all(
        own <= 1.0001 * most for own, most in zip(meaning.true_positives, stated.true_positives, strict=True)
    )


def test_what_was_bought_of_the_schema_counts() -> None:
    certificate = verify(release_file("private_bounds")).certificate
    alone = meaning_of(certificate.guarantee, certificate.mechanism.curve())
    meaning = certificate.meaning
    assert alone is not None
    assert meaning is not None
    assert meaning.true_positives > alone.true_positives
    assert meaning.exception == 2.0 * certificate.together.delta
