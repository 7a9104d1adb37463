"""Formulas of regression models, as R and statsmodels write them.

    readmitted ~ age + I(age^2) + sex + smoker*bmi + C(ward, "surgery") + scale(income) + log(dose)

A formula has an outcome and a sum of terms. ``a:b`` is an interaction, ``a*b`` means ``a + b + a:b``, ``I(x^2)`` or
``x^2`` is a power, and ``poly(x, 3)`` means ``x + x^2 + x^3``. ``scale(x)`` measures x in standard deviations.
``C(x)`` has one coefficient for each value of x except the reference, which is the first value unless it is given.
Names with spaces or signs are written between backticks. The intercept is always included.

>>> formula = parse_formula("y ~ a*b + I(a^2)")
>>> formula.outcome, [str(term) for term in formula.terms]
('y', ['a', 'b', 'a:b', 'a^2'])
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from privlearn.errors import InvalidParameter

FUNCTIONS = ("log", "log1p", "sqrt", "scale", "C")
MAX_POWER = 4
_BACKTICKS = (
    "; a name with blanks or signs between backticks, in single quotes for the shell: 'dead ~ `CRP [mg/l]`'"
)

_TOKEN = re.compile(
    r"""\s*(?:(?P<name>`[^`]+`|[^\W\d][\w.]*)|(?P<number>\d+)|"(?P<double>[^"]*)"|'(?P<single>[^']*)'"""
    r"""|(?P<sign>\*\*|[-+*:()^,=~]))"""
)


@dataclass(frozen=True)
class Variable:
    """A column, or a function of one.

    Parameters
    ----------
    column : str
    function : str, default=""
        One of `FUNCTIONS`; empty for the column itself.
    reference : str, optional
        For categories: the value that the others are compared with.
    """

    column: str
    function: str = ""
    reference: str | None = None

    def __str__(self) -> str:
        return f"{self.function}({self.column})" if self.function not in ("", "C") else self.column


@dataclass(frozen=True)
class Term:
    """A product of powers of variables."""

    powers: tuple[tuple[Variable, int], ...]

    def __str__(self) -> str:
        return ":".join(f"{name}^{power}" if power > 1 else str(name) for name, power in self.powers)

    def times(self, other: Term) -> Term:
        """Return the product of two terms."""
        powers = dict(self.powers)
        for variable, power in other.powers:
            powers[variable] = powers.get(variable, 0) + power
        return Term(tuple(powers.items()))


@dataclass(frozen=True)
class Formula:
    """An outcome and the terms that explain it; the intercept is not listed."""

    outcome: str
    terms: tuple[Term, ...]


def parse_formula(text: str) -> Formula:
    """Return the formula that a text describes; refuse a text that does not follow the grammar of `_Reader`."""
    reader = _Reader(text)
    outcome = reader.name()
    reader.expect("~")
    terms = reader.sum()
    if reader.tokens:
        raise _unreadable(text, f"near {reader.tokens[0][1]!r}")
    distinct = tuple(dict.fromkeys(term for term in terms if term.powers))
    if not distinct:
        raise _unreadable(text, "as it has no term")
    _check_power(max(power for term in distinct for _, power in term.powers))
    return Formula(outcome, distinct)


def _unreadable(text: str, reason: str) -> InvalidParameter:
    return InvalidParameter(
        f"the formula {text!r} cannot be read {reason}. Write it like: outcome ~ age + sex + age:sex + I(age^2)"
        f"{_BACKTICKS}"
    )


def _check_power(power: int) -> None:
    if not 1 <= power <= MAX_POWER:
        raise InvalidParameter(f"powers in a formula must lie between 1 and {MAX_POWER}")


class _Reader:
    """Recursive descent over the tokens, one method for each rule of the grammar.

        formula     = name "~" sum
        sum         = product {"+" product}
        product     = interaction {"*" interaction}      a*b is a + b + a:b
        interaction = atom {":" atom}
        atom        = "(" sum ")" | "1" | variable | function "(" ... ")"

    A rule returns a list of terms and removes its tokens from the front of ``tokens``.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.tokens = self._split(text)

    def _split(self, text: str) -> list[tuple[str, str]]:
        tokens, position = [], 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise _unreadable(text, f"near {text[position : position + 10]!r}")
            kind = str(match.lastgroup)
            tokens.append(("text" if kind in ("double", "single") else kind, match.group(kind).strip("`")))
            position = match.end()
        return tokens

    def _next(self, *signs: str) -> str | None:
        """Remove and return the next token if it is one of the signs; otherwise return None."""
        if self.tokens and self.tokens[0][0] == "sign" and self.tokens[0][1] in signs:
            return self.tokens.pop(0)[1]
        return None

    def expect(self, sign: str) -> None:
        """Remove the next token, which must be this sign."""
        if self._next(sign) is None:
            if sign == "~" and self._next("(", "+", "*", ":") is not None:
                raise InvalidParameter(
                    f"the outcome of the formula {self._text!r} must be one column. For the logarithm of an outcome, "
                    "add a column with it to the table and to the schema, or use the family poisson."
                )
            raise _unreadable(self._text, f"without {sign!r}")

    def _take(self, *kinds: str) -> str:
        """Remove and return the next token, which must be of one of the kinds."""
        if not self.tokens or self.tokens[0][0] not in kinds:
            raise _unreadable(self._text, f"near {self.tokens[0][1]!r}" if self.tokens else "to its end")
        return self.tokens.pop(0)[1]

    def name(self) -> str:
        return self._take("name")

    def sum(self) -> list[Term]:
        terms = self._product()
        while self._next("+"):
            terms += self._product()
        return terms

    def _product(self) -> list[Term]:
        terms = self._interaction()
        while self._next("*"):
            others = self._interaction()
            terms = [*terms, *others, *_interactions(terms, others)]
        return terms

    def _interaction(self) -> list[Term]:
        terms = self._atom()
        while self._next(":"):
            terms = _interactions(terms, self._atom())
        return terms

    def _atom(self) -> list[Term]:
        if self._next("("):
            terms = self.sum()
            self.expect(")")
            return terms
        if self.tokens and self.tokens[0] == ("number", "1"):
            self.tokens.pop(0)
            return [Term(())]
        name = self.name()
        if not self._next("("):
            return [self._powered(Variable(name))]
        return self._call(name)

    def _call(self, function: str) -> list[Term]:
        if function == "I":
            terms = [self._powered(Variable(self.name()))]
        elif function == "poly":
            variable = Variable(self.name())
            self.expect(",")
            degree = self._power(self._take("number"))
            terms = [Term(((variable, power),)) for power in range(1, degree + 1)]
        elif function in FUNCTIONS:
            column, reference = self.name(), None
            if function == "C" and self._next(","):
                if self.tokens[:2] == [("name", "ref"), ("sign", "=")]:
                    del self.tokens[:2]
                reference = self._take("text", "number", "name")
            terms = [Term(((Variable(column, function, reference), 1),))]
        else:
            known = ", ".join(("I", "poly", *FUNCTIONS))
            raise InvalidParameter(f"formulas have no function {function}(). Use one of {known}{_BACKTICKS}")
        self.expect(")")
        return terms

    def _powered(self, variable: Variable) -> Term:
        power = self._power(self._take("number")) if self._next("^", "**") else 1
        return Term(((variable, power),))

    def _power(self, number: str) -> int:
        _check_power(int(number))
        return int(number)


def _interactions(terms: Sequence[Term], others: Sequence[Term]) -> list[Term]:
    return [term.times(other) for term in terms for other in others]
