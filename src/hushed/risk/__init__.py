"""Privacy at risk: how likely a stronger level is, over the noise and over the data."""

from hushed.risk._at_risk import Assessment, assess, belief, crossing, delta, epsilon, loss_exceeds
from hushed.risk._over_data import DataRisk, over_data
from hushed.risk._published import (
    combined_confidence,
    data_confidence,
    published_confidence,
    published_epsilon,
    samples_for_accuracy,
)

__all__ = [
    "Assessment",
    "DataRisk",
    "assess",
    "belief",
    "combined_confidence",
    "crossing",
    "data_confidence",
    "delta",
    "epsilon",
    "loss_exceeds",
    "over_data",
    "published_confidence",
    "published_epsilon",
    "samples_for_accuracy",
]
