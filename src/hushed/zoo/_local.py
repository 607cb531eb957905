"""Local mechanisms: randomised response, and RAPPOR once, on one day and on many days."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.zoo._curves import discrete_epsilon, discrete_truth, sum_of_losses_delta
from hushed.zoo._events import compare
from hushed.zoo._record import Curve, Pair, Rows, Specimen

_SOURCE = "Erlingsson, Pihur, Korolova, *RAPPOR*, CCS 2014, sections 2 and 3"
_WORD = 0xFFFFFFFFFFFFFFFF
Values = NDArray[np.float64]


def randomised_response(epsilon: float = 1.0) -> Specimen:
    """One bit that is told truthfully with probability ``e^eps / (1 + e^eps)``: private.

    Outputs are bits, shape ``(size,)``; the loss equals the claim.
    """
    truth = 1 / (1 + math.exp(-epsilon))
    told, flipped = np.array([1 - truth, truth]), np.array([truth, 1 - truth])
    return Specimen(
        name="randomised response",
        aliases=("randomized response",),
        mechanism=partial(_respond, truth=truth),
        claim=Guarantee(epsilon=epsilon),
        relation="one-row",
        pairs=((np.array([1.0]), np.array([0.0])),),
        private=True,
        epsilon=epsilon,
        supremum=epsilon,
        delta=discrete_truth(told, flipped).delta,
        event=compare("==", 1.0),
        output="bit, shape (size,)",
        source="Warner, JASA 60(309), 1965",
        argument="two outcomes",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reports:
    """The mechanism: a Bloom filter, replaced at random once, then reported on so many days."""

    hashes: int
    bits: int
    f: float
    p: float = 0.0
    q: float = 1.0
    days: int = 1

    def __call__(self, rows: Rows, rng: np.random.Generator, size: int, /) -> Values:
        """Draw the days on which each bit was 1, of shape (size, bits)."""
        true = bloom_bits(int(rows[0]), self.hashes, self.bits)
        shape = (size, self.bits)
        permanent = rng.random(shape) < np.where(true, 1 - self.f / 2, self.f / 2)
        if (self.p, self.q) == (0.0, 1.0):
            return permanent.astype(np.float64)
        if self.days == 1:
            return (rng.random(shape) < np.where(permanent, self.q, self.p)).astype(np.float64)
        counts = np.empty(shape)
        ones = int(permanent.sum())
        counts[permanent] = rng.binomial(self.days, self.q, size=ones)
        counts[~permanent] = rng.binomial(self.days, self.p, size=permanent.size - ones)
        return counts


def bloom_bits(value: int, hashes: int, bits: int) -> NDArray[np.bool_]:
    """Fill the Bloom filter of one value of 0 or more; collisions leave fewer ones than hashes.

    Notes
    -----
    The hash is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): any fixed hash
    serves, since the truth depends on the filters of the pair only.
    """
    filled = np.zeros(bits, dtype=np.bool_)
    for i in range(hashes):
        z = (value * 0x9E3779B97F4A7C15 + (i + 1) * 0xD1B54A32D192ED03) & _WORD
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
        filled[(z ^ (z >> 31)) % bits] = True
    return filled


def one_time_rappor(hashes: int = 4, bits: int = 20, f: float = 0.95) -> Specimen:
    """Bloom filter whose bits are replaced at random once, which is private.

    Outputs are bits, shape ``(size, bits)``. The loss ``2h log((1 - f/2)/(f/2))``, 0.8007 at the
    defaults, is reached by two values whose filters do not overlap.
    """
    return _rappor("one-time RAPPOR", ("OneTimeRappor",), _Reports(hashes=hashes, bits=bits, f=f))


def rappor(
    hashes: int = 4, bits: int = 20, f: float = 0.75, p: float = 0.45, q: float = 0.55
) -> Specimen:
    """Bloom filter whose bits are replaced at random twice, reported once: private.

    Outputs are bits, shape ``(size, bits)``; the loss is 0.4001 at the defaults.
    """
    reports = _Reports(hashes=hashes, bits=bits, f=f, p=p, q=q)
    return _rappor("RAPPOR", ("Rappor",), reports)


def daily_rappor(
    days: int = 7,
    hashes: int = 4,
    bits: int = 20,
    f: float = 0.75,
    p: float = 0.45,
    q: float = 0.55,
    *,
    claim_permanent: bool = False,
) -> Specimen:
    """RAPPOR reports of the same value on many days, from one permanent filter.

    Outputs are the numbers of days on which each bit was 1, shape ``(size, bits)``.
    """
    reports = _Reports(hashes=hashes, bits=bits, f=f, p=p, q=q, days=days)
    if not claim_permanent:
        return _rappor("daily RAPPOR", (), reports, rappor(hashes, bits, f, p, q).claim.epsilon)
    claim = 2 * hashes * math.log((1 - f / 2) / (f / 2))
    return _rappor("daily RAPPOR, claim of the filter", (), reports, claim)


def _rappor(
    name: str, aliases: tuple[str, ...], reports: _Reports, claim: float | None = None
) -> Specimen:
    """Build a specimen that claims its true loss, unless another claim is given."""
    hashes, bits = reports.hashes, reports.bits
    pair = _apart(hashes, bits)
    zero, one = _bit_laws(reports)
    # h bits are 1 on the rows and 0 on the neighbour, h more the other way round.
    joint_p, joint_q = np.outer(one, zero).ravel(), np.outer(zero, one).ravel()
    loss = hashes * (discrete_epsilon(one, zero) + discrete_epsilon(zero, one))
    own, other = (bloom_bits(int(rows[0]), hashes, bits) for rows in pair)
    return Specimen(
        name=name,
        aliases=aliases,
        mechanism=reports,
        claim=Guarantee(epsilon=loss if claim is None else claim),
        relation="one-row",
        pairs=(pair,),
        private=claim is None or loss <= claim,
        epsilon=loss,
        supremum=loss,
        delta=_bits_curve(joint_p, joint_q, hashes) if reports.days <= 7 else None,
        event=compare(">", 0, of=partial(_excess_of_own, own=own, other=other)),
        output="bits, or days on which each bit was 1, shape (size, bits)",
        source=_SOURCE,
        argument="bits are independent; the two filters of the pair differ in 2h bits",
    )


def _bits_curve(p: Values, q: Values, copies: int) -> Curve | None:
    """Make the curve of ``copies`` pairs of bits; outcomes of equal loss are merged first."""
    if copies % 2:
        return None
    loss = np.round(np.log(p) - np.log(q), 12)
    levels, where = np.unique(loss, return_inverse=True)
    merged_p, merged_q = np.zeros(levels.size), np.zeros(levels.size)
    np.add.at(merged_p, where, p)
    np.add.at(merged_q, where, q)
    return partial(sum_of_losses_delta, merged_p, merged_q, copies)


def _bit_laws(reports: _Reports) -> tuple[Values, Values]:
    """Law of the number of days on which a bit is reported as 1, for a true 0 and a true 1."""
    from scipy.special import gammaln, xlogy  # noqa: PLC0415

    f, p, q, days = reports.f, reports.p, reports.q, reports.days
    ones = np.arange(days + 1.0)
    ways = gammaln(days + 1) - gammaln(ones + 1) - gammaln(days - ones + 1)
    low = np.exp(ways + xlogy(ones, p) + xlogy(days - ones, 1 - p))
    high = np.exp(ways + xlogy(ones, q) + xlogy(days - ones, 1 - q))
    return low * (1 - f / 2) + high * f / 2, low * f / 2 + high * (1 - f / 2)


def _apart(hashes: int, bits: int) -> Pair:
    """Two values whose filters have all bits distinct; the smallest such pair."""
    full = [v for v in range(400) if bloom_bits(v, hashes, bits).sum() == hashes]
    for i, first in enumerate(full):
        own = bloom_bits(first, hashes, bits)
        for second in full[i + 1 :]:
            if not (own & bloom_bits(second, hashes, bits)).any():
                return np.array([float(first)]), np.array([float(second)])
    raise ParameterError(
        f"no two values have disjoint filters of {hashes} of {bits} bits; use more bits"
    )


def _respond(rows: Rows, rng: np.random.Generator, size: int, /, *, truth: float) -> Values:
    honest = rng.random(size) < truth
    return np.asarray(np.where(honest, rows[0], 1 - rows[0]))


def _excess_of_own(
    outputs: Values, /, *, own: NDArray[np.bool_], other: NDArray[np.bool_]
) -> Values:
    """Count the ones on the bits of the rows, less those on the bits of the neighbour."""
    return np.asarray(outputs[:, own].sum(axis=1) - outputs[:, other].sum(axis=1))
