"""What a release costs and asks, found before it is charged: no private row is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from hushed._functions._gate import Outside
from hushed.guarantee import Guarantee
from hushed.mechanisms import Mechanism
from hushed.privacy_loss import PrivacyProfile
from hushed.releasing._certificate import Certificate
from hushed.releasing._certifying import certify
from hushed.releasing._mechanisms import Admitted, admit_mechanism
from hushed.releasing._questions import question_of
from hushed.spaces._bound import require_own_statistic
from hushed.transformations._chain import require_own_chain


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedRelease:
    """A release that `hushed.release` would not refuse, whatever the rows."""

    guarantee: Guarantee  # what it promises, and is charged
    loss: PrivacyProfile | None
    question: str  # digest, the same in every process
    certificate: Certificate  # as it would be, but for the charge


def confirm_function(
    f: Callable[[Any], Any],
    mechanism: Admitted,
    *,
    unsearched: tuple[str, ...] = (),
    labels: tuple[str, ...] = (),
) -> tuple[Literal["", "bits", "rounding"], Certificate]:
    """Refuse, unpaid, a function that is not the sampled one, and what no certificate holds."""
    require_own_statistic(f, mechanism.sensitivity)
    require_own_chain(f, mechanism.sensitivity)
    sampling = mechanism.sensitivity.sampling
    agreed: Literal["", "bits", "rounding"] = ""
    if sampling is not None:
        agreed = sampling.confirm(f).agreement
    mechanism.check_function(f)
    found = foresee(mechanism, unsearched=unsearched, labels=labels)
    found.to_json()  # whatever cannot be written is unpaid
    return agreed, found


def foresee(
    mechanism: Admitted, *, unsearched: tuple[str, ...] = (), labels: tuple[str, ...] = ()
) -> Certificate:
    """Write the certificate of a release that is not charged yet."""
    sampling = mechanism.sensitivity.sampling
    values = mechanism.values_of(None if sampling is None else sampling.shape)
    return certify(mechanism, values=values, unsearched=unsearched, labels=labels)


def price_release(
    f: Callable[[Any], Any], mechanism: Mechanism, *, outside: Outside = "clamp"
) -> PricedRelease:
    """Do all of a release that no private row decides: for whoever charges in another process."""
    admitted = admit_mechanism(mechanism)
    _, certificate = confirm_function(f, admitted)
    return PricedRelease(
        guarantee=admitted.guarantee,
        loss=admitted.loss,
        question=question_of(f, admitted, outside),
        certificate=certificate,
    )
