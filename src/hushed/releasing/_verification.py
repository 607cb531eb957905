"""Run a certificate's sampling again and compare bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import Any, get_args

from hushed._ground.calls import called_as
from hushed._ground.printing import flat
from hushed.blocks import Blocks
from hushed.engines._choice import Workers, opens_engine
from hushed.errors import ParameterError
from hushed.mechanisms import Mechanism
from hushed.mechanisms._registry import SEARCHES, STATISTIC_MECHANISMS
from hushed.populations import Population, Promise, PublicTable, from_description
from hushed.releasing._agreement import compare_promises, compare_samples, name_unproven
from hushed.releasing._blocks import is_rebuilt_blocks, rebuild_blocks
from hushed.releasing._certificate import Certificate, MechanismRecord, SamplingRecord
from hushed.releasing._certifying import certify, certify_blocks, certify_statistic
from hushed.releasing._consistency import build_mechanism, rebuild_mechanism
from hushed.releasing._population_words import is_encoded
from hushed.releasing._statistics import is_rebuilt, rebuild
from hushed.releasing._verification_record import OF_BLOCKS, Verification
from hushed.runs import Keep
from hushed.runs._journal import read_keep
from hushed.sensitivity import Blockwise, Sensitivity, Update, sample_sensitivity
from hushed.sensitivity._plan import plan
from hushed.statistics import Statistic

MOST_DRAWS = 2**40  # rows in all tables that are asked about


@called_as("hs.releasing.verify(certificate, f)")
@opens_engine
def verify(
    certificate: Certificate | str | bytes,
    f: Callable[[Any], Any] | None = None,
    *,
    population: Population | None = None,
    mechanism: type[Mechanism] | None = None,
    update: Update | None = None,
    workers: Workers = None,
    progress: bool = False,
    keep: str | PathLike[str] | Keep | None = None,
) -> Verification:
    """Run the sampling of a certificate again, or follow its numbers from a proven sensitivity.

    Parameters
    ----------
    certificate : Certificate, str or bytes
        The certificate, or its JSON.
    f : callable, optional
        The function that was released. Not needed if the sensitivity was proven: then there is
        nothing to run.
    population : Population, optional
        The public table or simulator, which the certificate names but does not contain. Not
        needed for ranges and distributions.
    mechanism : type, optional
        The class of the mechanism, if it is not one of hushed: a certificate names it, but its code
        is loaded by nobody else. That it keeps what it promises is not checked.
    update : callable, optional
        What updated the answers where the sensitivity was sampled with ``update``, and only there.
    workers : int, str, Engine or distributed.Client, optional
        Worker processes, or a cluster: ``"dask://HOST:8786"``, ``"ray"``, a session of Spark;
        see `hushed.engines.engine_of`.
    progress : bool, default False
        Show a progress bar in a terminal or a notebook.
    keep : str, path or hushed.runs.Keep, optional
        Where finished trials are kept, as by `hushed.sample_sensitivity`. Only those of earlier
        verifications are used: what was kept when the sensitivity was sampled is run again.

    Returns
    -------
    Verification
        Whether sensitivity, movements, scale and guarantee come out bit for bit, or within
        rounding; for a proven sensitivity whether scale, accuracy and guarantee follow from it.
        The proof itself is not checked.

    Raises
    ------
    ParameterError
        If it is not a certificate or contradicts itself, the function or the population is missing,
        or the sampling it is about would take more than `MOST_DRAWS` draws.
    """
    known = certificate
    if isinstance(known, str | bytes):
        known = Certificate.from_json(known)
    if not isinstance(known, Certificate):
        raise ParameterError(
            f"verify takes a certificate or its JSON text, got {type(known).__name__}; of a "
            "release give its certificate; the answer of a query has no certificate to verify"
        )
    _check_kind(known.mechanism, mechanism)
    sampling = known.sampling
    if sampling is None:
        _refuse_unused(known, f, population=population, update=update)
    if known.mechanism.name in STATISTIC_MECHANISMS:
        return _follow_statistic(known)
    if known.mechanism.name == Blocks.name:
        return _follow_blocks(known)
    if sampling is None:
        return _follow(known, mechanism)
    if f is None:
        raise ParameterError(
            say_missing(known),
            hint="without it, hushed verify FILE of a file with the certificate checks the rest: "
            "digests, and with --key who signed it",
        )
    _check_update(sampling, update)
    _check_work(sampling)
    blocks = f.blocks(sampling.rows) if type(f) is Blockwise else 1
    by = "" if sampling.user is None else f", user={sampling.user!r}"
    if blocks != sampling.blocks:
        raise ParameterError(
            f"the certificate averages over {sampling.blocks} block(s), the function over {blocks}"
            + (f": hs.Blockwise(f, rows={sampling.rows // sampling.blocks}{by})" * (blocks == 1))
        )
    source = _rebuild_population(sampling) if population is None else population
    source = _as_recorded(source, sampling)
    again = _sample_again(
        known,
        sampling,
        f,
        source,
        update=update,
        workers=workers,
        progress=progress,
        keep=keep,
    )
    if sampling.shift:
        again = again.shifted(sampling.shift)
    rebuilt = build_mechanism(known.mechanism, again, mechanism)
    fresh = certify(rebuilt, values=math.prod(again.sampling.shape if again.sampling else ()))
    return compare_samples(known, sampling, fresh)


def say_missing(known: Certificate) -> str:
    """Say what a certificate cannot be followed without; empty if it has all of it."""
    if known.mechanism.stated:
        return _say_author(known.mechanism)
    if known.sampling is None:
        return ""
    return (
        "a PrivateEstimator of hushed.sklearn made this, whose sensitivity was sampled: make "
        "one with the same options and population, and call its verify(certificate), in Python"
        if is_encoded(known.sampling.population)
        else "give the function that was released (FILE.py:NAME on the command line): its "
        "sensitivity was sampled"
    )


def _say_author(record: MechanismRecord) -> str:
    return (
        f"the mechanism {record.name!r} is not one of hushed: give its class, mechanism=CLASS, "
        "which the certificate names but does not contain"
    )


def _check_kind(record: MechanismRecord, kind: type[Mechanism] | None) -> None:
    """Ask for the class of a caller's own mechanism, and for that alone."""
    if record.stated and kind is None:
        raise ParameterError(_say_author(record))
    if kind is not None and not record.stated:
        raise ParameterError(f"{record.name} is a mechanism of hushed: leave mechanism= out")


def _follow(known: Certificate, kind: type[Mechanism] | None) -> Verification:
    """Follow scale, accuracy and guarantee from a proven sensitivity."""
    fresh = certify(rebuild_mechanism(known, kind), values=known.mechanism.values)
    proven = known.statistic is not None and known.mechanism.name not in SEARCHES
    stated = () if proven else ("the sensitivity and its argument",)
    unproven = (*stated, *name_unproven(known))
    return compare_promises(known, fresh, unproven)


def _follow_statistic(known: Certificate) -> Verification:
    """Follow scale, accuracy and guarantee from a statistic and public choices."""
    fresh = certify_statistic(rebuild(known), chain=known.chain)
    unchecked: tuple[str, ...] = ("that this statistic was computed",)
    if known.chain:
        unchecked += ("the steps before it, and that one row changes one row of theirs",)
    if not is_rebuilt(known):  # whatever can be followed was followed when it was read
        fresh = replace(fresh, mechanism=known.mechanism)
        unchecked += ("the given candidates and prior, of which only a fingerprint is stated",)
    return compare_promises(known, fresh, unchecked)


def _follow_blocks(known: Certificate) -> Verification:
    """Follow scale, accuracy and guarantee from public choices, whatever the function is."""
    stated = known.mechanism.parameters
    unchecked: tuple[str, ...] = (
        "that the rows were dealt, and this function was asked, as it says, in processes of its "
        "own and within these limits",
        "beta, beyond that the blocks are enough for it",
        "the name of the function",
        "unsearched",
    )
    fresh = certify_blocks(rebuild_blocks(known), str(stated["function"]))
    if not is_rebuilt_blocks(known):  # whatever can be followed was followed when it was read
        fresh = replace(fresh, mechanism=known.mechanism, guarantee=known.guarantee)
        unchecked += (
            "the given candidates, prior or centre, of which only a fingerprint is stated",
        )
    return compare_promises(known, fresh, unchecked, kind=OF_BLOCKS)


def _refuse_unused(known: Certificate, f: Any, **given: Any) -> None:
    """Refuse a function that nothing is asked of: whoever gave it would take it for checked."""
    if isinstance(f, Statistic) and known.statistic is not None:
        if f.description() != known.statistic:
            raise ParameterError(
                f"the certificate is of another statistic, {flat(known.statistic.get('kind'))} "
                f"with the facts {flat(known.statistic)}: leave f out to check it"
            )
        f = None
    unused = [name for name, value in {"f": f, **given}.items() if value is not None]
    if unused:
        what = "blocks" if known.mechanism.name == Blocks.name else "a proven sensitivity"
        what = what if known.statistic is None else "a statistic, whose sensitivity is proven"
        raise ParameterError(
            f"the certificate is of {what}: no function is run and nothing is sampled, so that "
            f"what was given would not be checked: leave {' and '.join(unused)} out",
            parameter=unused[0],
        )


def _check_update(sampling: SamplingRecord, update: Update | None) -> None:
    """Ask for the update that the sensitivity was sampled with, and for none otherwise."""
    if (update is not None) != sampling.updated:
        raise ParameterError(
            "the sensitivity was sampled with an update of the caller's, which the certificate "
            "does not contain: give it, update=..."
            if sampling.updated
            else "the sensitivity was sampled without an update: leave update out",
            parameter="update",
        )


def _check_work(sampling: SamplingRecord) -> None:
    """Refuse a certificate, which anybody may have written, that would run for ever."""
    reach = replace(sampling.reach(), values=len(sampling.values))
    rank, _ = plan(
        sampling.calibration,
        reach,
        gamma=sampling.requested_gamma,
        pairs=sampling.asked_pairs,
    )
    calls = reach.count_calls() if reach.whole and not sampling.updated else 1
    if rank.pairs * reach.drawn * calls > MOST_DRAWS:
        raise ParameterError(
            f"the certificate is about {rank.pairs} pairs of tables with {sampling.rows} rows: "
            "more than is sampled again on a certificate's word; sample the sensitivity yourself "
            "and compare"
        )


def _as_recorded(population: Population, sampling: SamplingRecord) -> Population:
    """Public table with the promise and the name of the certificate: its rows do not tell them.

    A name is what somebody called it, such as its file; that the rows are the same is compared.
    """
    if not isinstance(population, Population):
        raise ParameterError(
            "the population must be a public source of rows, from hs.populations; rows that are "
            f"public are said to be so by PublicTable(rows). Got {type(population).__name__}",
            parameter="population",
        )
    told = sampling.population
    for promise in get_args(Promise):
        if isinstance(population, PublicTable) and promise == told.get("promise"):
            name = told.get("name")
            named = name if isinstance(name, str) else population.name
            return replace(population, promise=promise, name=named)
    return population


def _rebuild_population(sampling: SamplingRecord) -> Population:
    population = from_description(sampling.population)
    if population is None:
        named = sampling.population.get("name")
        name = flat(sampling.population.get("kind")) + (f" {flat(named)!r}" if named else "")
        raise ParameterError(
            f"the certificate names its population ({name}) but does not contain it; hand it in as "
            "population= (--population on the command line)"
        )
    return population


def _sample_again(
    known: Certificate,
    sampling: SamplingRecord,
    f: Callable[[Any], Any],
    population: Population,
    *,
    update: Update | None,
    workers: Workers,
    progress: bool,
    keep: str | PathLike[str] | Keep | None,
) -> Sensitivity:
    return sample_sensitivity(
        f,
        population,
        rows=sampling.sizes or sampling.rows,
        neighbours=sampling.neighbours,
        distance=sampling.distance,
        position=sampling.position,
        values=None if sampling.monotone or not sampling.values else sampling.values,
        monotone=sampling.monotone,
        norm=known.norm,
        gamma=sampling.requested_gamma,
        pairs=sampling.asked_pairs,
        calibration=sampling.calibration,
        protect=sampling.protect,
        batch=sampling.batch,
        batch_rows=sampling.batch_rows,
        symmetric=sampling.symmetric,
        update=update,
        data_dependent=not sampling.population_is_public,
        unit="person" if known.person else "row",
        user=sampling.user,
        seed=sampling.seed,
        workers=workers,
        progress=progress,
        keep=None if keep is None else replace(read_keep(keep), purpose="verification"),
    )
