"""Make any Python function private, and prove it."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    __version__: str

    from hushed import (
        blocks,
        cost,
        engines,
        errors,
        fitting,
        measurements,
        plots,
        populations,
        posterior,
        privacy_loss,
        risk,
        runs,
        spaces,
        statements,
        statistics,
        testing,
        transformations,
        zoo,
    )
    from hushed._functions._calls import fixed_seed
    from hushed.accounting import Composition, compose, epsilon_for_advantage, parallel
    from hushed.auditing import (
        AuditReport,
        PopulationPairs,
        PrivacyEstimate,
        Renyi,
        ZeroConcentrated,
        audit,
        check_sensitivity,
        estimate_privacy,
        test_sensitivity,
    )
    from hushed.blocks import Blocks, public_prior
    from hushed.client import connect
    from hushed.comparing import ComparedRoute, Comparison, LeftOut, compare
    from hushed.divergences import DeltaEstimate, count_outcomes, estimate_delta
    from hushed.fitting import MovementCheck, PopulationCheck, check_movement, check_population
    from hushed.guarantee import Guarantee, union_gamma
    from hushed.ledger import Ledger
    from hushed.mechanisms import (
        Bernstein,
        Exponential,
        Gaussian,
        InverseSensitivity,
        Laplace,
        Mechanism,
        NoisyMax,
        ProposeTest,
        Smooth,
        StableMode,
        TopK,
        Winner,
        lattice_points,
        on_lattice,
    )
    from hushed.posterior import Posterior, sample_likelihood_range
    from hushed.releasing import (
        AboveThreshold,
        Certificate,
        Crossing,
        Release,
        Transcript,
        find_bound,
        release,
    )
    from hushed.sensitivity import (
        Blockwise,
        Sensitivity,
        global_sensitivity,
        largest_sensitivity,
        proven_sensitivity,
        sample_sensitivity,
    )
    from hushed.statements import Statement, certify, certify_budget, certify_study, verify
    from hushed.tables import Answer, Query, Quote, Table, table

__all__ = [
    "AboveThreshold",
    "Answer",
    "AuditReport",
    "Bernstein",
    "Blocks",
    "Blockwise",
    "Certificate",
    "ComparedRoute",
    "Comparison",
    "Composition",
    "Crossing",
    "DeltaEstimate",
    "Exponential",
    "Gaussian",
    "Guarantee",
    "InverseSensitivity",
    "Laplace",
    "Ledger",
    "LeftOut",
    "Mechanism",
    "MovementCheck",
    "NoisyMax",
    "PopulationCheck",
    "PopulationPairs",
    "Posterior",
    "PrivacyEstimate",
    "ProposeTest",
    "Query",
    "Quote",
    "Release",
    "Renyi",
    "Sensitivity",
    "Smooth",
    "StableMode",
    "Statement",
    "Table",
    "TopK",
    "Transcript",
    "Winner",
    "ZeroConcentrated",
    "audit",
    "blocks",
    "certify",
    "certify_budget",
    "certify_study",
    "check_movement",
    "check_population",
    "check_sensitivity",
    "compare",
    "compose",
    "connect",
    "cost",
    "count_outcomes",
    "engines",
    "epsilon_for_advantage",
    "errors",
    "estimate_delta",
    "estimate_privacy",
    "find_bound",
    "fitting",
    "fixed_seed",
    "global_sensitivity",
    "largest_sensitivity",
    "lattice_points",
    "measurements",
    "on_lattice",
    "parallel",
    "plots",
    "populations",
    "posterior",
    "privacy_loss",
    "proven_sensitivity",
    "public_prior",
    "release",
    "risk",
    "runs",
    "sample_likelihood_range",
    "sample_sensitivity",
    "spaces",
    "statements",
    "statistics",
    "table",
    "test_sensitivity",
    "testing",
    "transformations",
    "union_gamma",
    "verify",
    "zoo",
]

_HOME = {
    name: module
    for module, names in {
        "accounting": "Composition compose epsilon_for_advantage parallel",
        "auditing": "AuditReport PopulationPairs PrivacyEstimate Renyi ZeroConcentrated audit "
        "check_sensitivity estimate_privacy test_sensitivity",
        "blocks": "Blocks public_prior",
        "client": "connect",
        "comparing": "ComparedRoute Comparison LeftOut compare",
        "divergences": "DeltaEstimate count_outcomes estimate_delta",
        "fitting": "MovementCheck PopulationCheck check_movement check_population",
        "_functions._calls": "fixed_seed",
        "guarantee": "Guarantee union_gamma",
        "ledger": "Ledger",
        "mechanisms": "Bernstein Exponential Gaussian InverseSensitivity Laplace Mechanism "
        "NoisyMax ProposeTest Smooth StableMode TopK Winner lattice_points on_lattice",
        "posterior": "Posterior sample_likelihood_range",
        "releasing": "AboveThreshold Certificate Crossing Release Transcript find_bound release",
        "sensitivity": "Blockwise Sensitivity global_sensitivity largest_sensitivity "
        "proven_sensitivity sample_sensitivity",
        "statements": "Statement certify certify_budget certify_study verify",
        "tables": "Answer Query Quote Table table",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> _Any:
    """Load a name when it is first asked for: nobody waits for what is not used."""
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

        try:
            return version("hushed")
        except PackageNotFoundError:  # a folder of sources that nobody installed
            return "unknown"
    if name not in __all__:
        raise AttributeError(f"module 'hushed' has no attribute {name!r}")
    home = _import_module(f"hushed.{_HOME.get(name, name)}")
    globals()[name] = found = getattr(home, name) if name in _HOME else home
    return found


def __dir__() -> list[str]:
    return __all__
