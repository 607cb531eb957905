"""The whole zoo as a list, and a look-up by name or published name."""

from __future__ import annotations

import math
from difflib import get_close_matches
from itertools import chain

from hushed.errors import NotFound, ParameterError
from hushed.zoo import defects
from hushed.zoo.curves import subsampled_epsilon
from hushed.zoo.gaussian import classic_gaussian, subsampled_gaussian, subsampled_laplace
from hushed.zoo.histograms import (
    histogram,
    histogram_wrong_scale,
    laplace,
    laplace_parallel,
    prefix_sums,
)
from hushed.zoo.integers import (
    count_above_threshold,
    leaky_geometric,
    release_threshold,
    truncated_geometric,
)
from hushed.zoo.local import daily_rappor, one_time_rappor, randomised_response, rappor
from hushed.zoo.record import Specimen
from hushed.zoo.selection import noisy_max_index, noisy_max_value
from hushed.zoo.sparse_vector import (
    numeric_sparse_vector,
    sparse_vector,
    sparse_vector_fresh_threshold,
    sparse_vector_ignores_cutoff,
    sparse_vector_shows_value,
    sparse_vector_too_little_noise,
    sparse_vector_without_query_noise,
)

__all__ = ["find", "specimens"]

_DELTA = 0.01
_RATE = 0.2


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
        In the order of the published tables. The defect twins are apart, in `defects.twins`.

    Raises
    ------
    ParameterError
        If epsilon leaves its range.
    """
    if not 0 < epsilon < 1:
        raise ParameterError(f"epsilon must lie in (0, 1), got {epsilon}")
    return [
        *_selection(epsilon),
        *_noise(epsilon),
        *_sparse(epsilon),
        *_counts(epsilon),
        *_local(epsilon),
        *_approximate(epsilon),
    ]


def find(name: str, epsilon: float = 0.1) -> Specimen:
    """Look up a specimen or a defect twin.

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


def _selection(epsilon: float) -> list[Specimen]:
    return [
        noisy_max_index(epsilon),
        noisy_max_index(epsilon, noise="exponential"),
        noisy_max_value(epsilon),
        noisy_max_value(epsilon, noise="exponential"),
    ]


def _noise(epsilon: float) -> list[Specimen]:
    return [
        laplace(epsilon),
        histogram(epsilon),
        histogram_wrong_scale(epsilon),
        laplace_parallel(epsilon),
        prefix_sums(epsilon),
        *defects.naive_laplace(epsilon),
    ]


def _sparse(epsilon: float) -> list[Specimen]:
    return [
        sparse_vector(epsilon),
        sparse_vector_fresh_threshold(epsilon),
        sparse_vector_shows_value(epsilon),
        sparse_vector_too_little_noise(epsilon),
        sparse_vector_without_query_noise(epsilon),
        sparse_vector_ignores_cutoff(epsilon),
        numeric_sparse_vector(epsilon),
    ]


def _counts(epsilon: float) -> list[Specimen]:
    bar = release_threshold(epsilon, _DELTA) - 1
    tight = math.exp(-epsilon * bar) / (1 + math.exp(-epsilon))  # of a strict comparison
    return [
        truncated_geometric(epsilon),
        leaky_geometric(epsilon),
        count_above_threshold(epsilon, tight, strict=True, threshold=bar),
        count_above_threshold(epsilon, tight, strict=False, threshold=bar),
    ]


def _local(epsilon: float) -> list[Specimen]:
    return [
        randomised_response(epsilon),
        one_time_rappor(),
        rappor(),
        daily_rappor(),
        daily_rappor(claim_permanent=True),
    ]


def _approximate(epsilon: float) -> list[Specimen]:
    return [
        classic_gaussian(epsilon, _DELTA),
        classic_gaussian(),
        subsampled_laplace(subsampled_epsilon(epsilon, _RATE), _RATE),
        subsampled_laplace(2.0, 0.5, claim=1.0),  # rate times epsilon
        subsampled_gaussian(),
    ]
