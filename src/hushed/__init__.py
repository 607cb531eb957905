"""Make any Python function private, and prove it."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from hushed import errors, populations, privacy_loss
from hushed.accounting import Composition, compose, epsilon_for_advantage, parallel
from hushed.audit import (
    AuditReport,
    PopulationPairs,
    Renyi,
    ZeroConcentrated,
    audit,
    check_sensitivity,
)
from hushed.certificate import Certificate, verify
from hushed.divergences import DeltaEstimate, count_outcomes, estimate_delta
from hushed.functions import fixed_seed
from hushed.guarantee import Guarantee, union_gamma
from hushed.ledger import Ledger
from hushed.mechanisms import Bernstein, Exponential, Gaussian, Laplace, lattice_points, on_lattice
from hushed.release import Release, release
from hushed.sensitivity import Sensitivity, proven_sensitivity, sample_sensitivity

if _TYPE_CHECKING:
    from types import ModuleType as _ModuleType

    from hushed import cost, measurements, risk, spaces, transformations, zoo

__all__ = [
    "AuditReport",
    "Bernstein",
    "Certificate",
    "Composition",
    "DeltaEstimate",
    "Exponential",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Ledger",
    "PopulationPairs",
    "Release",
    "Renyi",
    "Sensitivity",
    "ZeroConcentrated",
    "audit",
    "check_sensitivity",
    "compose",
    "cost",
    "count_outcomes",
    "epsilon_for_advantage",
    "errors",
    "estimate_delta",
    "fixed_seed",
    "lattice_points",
    "measurements",
    "on_lattice",
    "parallel",
    "populations",
    "privacy_loss",
    "proven_sensitivity",
    "release",
    "risk",
    "sample_sensitivity",
    "spaces",
    "transformations",
    "union_gamma",
    "verify",
    "zoo",
]


def __getattr__(name: str) -> "_ModuleType":
    """Load the modules that few need when they are first asked for."""
    if name in {"cost", "measurements", "risk", "spaces", "transformations", "zoo"}:
        return _import_module(f"hushed.{name}")
    raise AttributeError(f"module 'hushed' has no attribute {name!r}")
