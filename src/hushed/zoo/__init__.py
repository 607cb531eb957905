"""Mechanisms with known verdicts, right and broken, each with the pair that shows its truth.

The zoo is what an auditor is tested on. Its randomness is seeded and not floating-point safe: no
mechanism here may touch private rows. Truths are about the mechanism over the real numbers; only
"Laplace on doubles" and its correction are stated for the doubles that come out. An audit that
looks at the last bits may rightly refute any specimen with continuous noise.
"""

from hushed.zoo import defects
from hushed.zoo._catalogue import find, specimens
from hushed.zoo._counts import (
    count_above_threshold,
    leaky_geometric,
    release_threshold,
    truncated_geometric,
)
from hushed.zoo._flags import FlagLaw
from hushed.zoo._gaussian import classic_gaussian, subsampled_gaussian, subsampled_laplace
from hushed.zoo._laplace import (
    histogram,
    histogram_wrong_scale,
    laplace,
    laplace_parallel,
    prefix_sums,
)
from hushed.zoo._local import daily_rappor, one_time_rappor, randomised_response, rappor
from hushed.zoo._record import BatchMechanism, Curve, Event, Pair, Relation, Rows, Specimen
from hushed.zoo._selection import noisy_max_index, noisy_max_value
from hushed.zoo._sparse_vector import (
    numeric_sparse_vector,
    sparse_vector,
    sparse_vector_fresh_threshold,
    sparse_vector_ignores_cutoff,
    sparse_vector_shows_value,
    sparse_vector_too_little_noise,
    sparse_vector_without_query_noise,
)

__all__ = [
    "BatchMechanism",
    "Curve",
    "Event",
    "FlagLaw",
    "Pair",
    "Relation",
    "Rows",
    "Specimen",
    "classic_gaussian",
    "count_above_threshold",
    "daily_rappor",
    "defects",
    "find",
    "histogram",
    "histogram_wrong_scale",
    "laplace",
    "laplace_parallel",
    "leaky_geometric",
    "noisy_max_index",
    "noisy_max_value",
    "numeric_sparse_vector",
    "one_time_rappor",
    "prefix_sums",
    "randomised_response",
    "rappor",
    "release_threshold",
    "sparse_vector",
    "sparse_vector_fresh_threshold",
    "sparse_vector_ignores_cutoff",
    "sparse_vector_shows_value",
    "sparse_vector_too_little_noise",
    "sparse_vector_without_query_noise",
    "specimens",
    "subsampled_gaussian",
    "subsampled_laplace",
    "truncated_geometric",
]
