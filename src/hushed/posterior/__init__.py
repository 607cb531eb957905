"""One draw from a posterior, tempered so that it promises a chosen epsilon."""

from hushed.posterior._chains import chain_guarantee
from hushed.posterior._families import bernoulli, normal_mean, poisson
from hushed.posterior._mechanism import Posterior
from hushed.posterior._range import sample_likelihood_range

__all__ = [
    "Posterior",
    "bernoulli",
    "chain_guarantee",
    "normal_mean",
    "poisson",
    "sample_likelihood_range",
]
