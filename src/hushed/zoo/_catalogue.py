"""The whole zoo as a list, and a look-up by name or published name."""

from __future__ import annotations

import math
from difflib import get_close_matches
from itertools import chain

from hushed._ground.calls import called_as
from hushed.errors import NotFound, ParameterError
from hushed.zoo import _counts as counts
from hushed.zoo import _gaussian as gaussian
from hushed.zoo import _laplace as noise
from hushed.zoo import _local as local
from hushed.zoo import _selection as selection
from hushed.zoo import _sparse_vector as sparse
from hushed.zoo import defects
from hushed.zoo._curves import subsampled_epsilon
from hushed.zoo._flags import FORMS
from hushed.zoo._record import Specimen

_DELTA = 0.01
_RATE = 0.2


@called_as("hs.zoo.specimens()")
def specimens(epsilon: float = 0.1) -> list[Specimen]:
    """All mechanisms of the zoo, with the parameters of the published tables.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon e0 of the mechanisms that are defined by one; in (0, 1). RAPPOR and the
        Gaussian noise with the classic constant keep parameters of their own, at which they are
        known to hold or to fail.

    Returns
    -------
    list of Specimen
        In the order of the published tables. The faulty/fixed pairs are apart, in `defects.twins`.

    Raises
    ------
    ParameterError
        If epsilon leaves its range.
    """
    if not 0 < epsilon < 1:
        raise ParameterError(f"epsilon must lie in (0, 1), got {epsilon}")
    bar = counts.release_threshold(epsilon, _DELTA) - 1
    tight = math.exp(-epsilon * bar) / (1 + math.exp(-epsilon))  # of a strict comparison
    return [
        selection.noisy_max_index(epsilon),
        selection.noisy_max_index(epsilon, noise="exponential"),
        selection.noisy_max_value(epsilon),
        selection.noisy_max_value(epsilon, noise="exponential"),
        noise.laplace(epsilon),
        noise.histogram(epsilon),
        noise.histogram_wrong_scale(epsilon),
        noise.laplace_parallel(epsilon),
        noise.prefix_sums(epsilon),
        *defects.naive_laplace(epsilon),
        *(sparse.sparse_vector(algorithm, epsilon) for algorithm in FORMS),
        counts.truncated_geometric(epsilon),
        counts.leaky_geometric(epsilon),
        counts.count_above_threshold(epsilon, tight, strict=True, threshold=bar),
        counts.count_above_threshold(epsilon, tight, strict=False, threshold=bar),
        local.randomised_response(epsilon),
        local.one_time_rappor(),
        local.rappor(),
        local.daily_rappor(),
        local.daily_rappor(claim_permanent=True),
        gaussian.classic_gaussian(epsilon, _DELTA),
        gaussian.classic_gaussian(),
        gaussian.subsampled_laplace(subsampled_epsilon(epsilon, _RATE), _RATE),
        gaussian.subsampled_laplace(2.0, 0.5, claim=1.0),  # claims rate times epsilon
        gaussian.subsampled_gaussian(),
    ]


@called_as('hs.zoo.find("SVT4")')
def find(name: str, epsilon: float = 0.1) -> Specimen:
    """Look up a specimen, or one of a faulty/fixed pair.

    Parameters
    ----------
    name : str
        Name, or a name from published tables, such as ``"SVT4"``; letter case does not matter.
    epsilon : float, default 0.1
        Claimed epsilon, in (0, 1).

    Returns
    -------
    Specimen
        The specimen of that name.

    Raises
    ------
    NotFound
        If there is none; the message names similar ones.
    """
    everything = chain(specimens(epsilon), chain.from_iterable(defects.twins(epsilon)))
    known: dict[str, Specimen] = {}
    for specimen in everything:
        for each in (specimen.name, *specimen.aliases):
            known.setdefault(each.casefold(), specimen)
    if name.casefold() not in known:
        near = get_close_matches(name.casefold(), list(known), n=3, cutoff=0.4)
        hint = f"; close to it: {', '.join(near)}" if near else ""
        raise NotFound(f"the zoo has no specimen {name!r}{hint}")
    return known[name.casefold()]
