"""Chains of ours in OpenDP: built anew from its constructors.

An exported chain asks the same question in OpenDP's arithmetic, under OpenDP's map and with
OpenDP's noise. What has no equivalent there is refused, and the step is named. Functions of the
caller go over as they are, where OpenDP was told to trust them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hushed._ground.calls import called_as
from hushed.errors import MissingExtra, ParameterError
from hushed.measurements._export_spaces import NotTrusted, Place, aligned, begin, beyond
from hushed.measurements._export_steps import Maker, check_step, named, scored, step_behind
from hushed.measurements._record import Measurement
from hushed.mechanisms._registry import LAWS
from hushed.spaces import PRIVACY_PROFILE, PURE, ZCDP
from hushed.transformations._chain import Transformation

_STATED = {
    "MaxDivergence": PURE,
    "ZeroConcentratedDivergence": ZCDP,
    "Approximate(MaxDivergence)": PRIVACY_PROFILE,
    "SmoothedMaxDivergence": PRIVACY_PROFILE,
}
_NO_END = {
    "top_k": "its noisy top k loses k times what one place does, this one twice as much, "
    "however many there are; top_k(1, scale) goes out",
    "noisy_max": "its noisy max does not tell the lead; put exponential(scale) in its place",
    "inverse-sensitivity": "it knows ranks, and not how many rows must change",
    "smooth": "it has no noise that follows the rows",
    "stable-mode": "it has no test of a distance",
    "propose-test": "it has no test of a distance",
}
_ENDS = (
    *(name for name, law in LAWS.items() if law.opendp),
    "compose",
    "from_opendp",
    "a function of the answer",
)


@called_as("hs.measurements.to_opendp(measurement)")
def to_opendp(chain: Transformation | Measurement) -> Any:
    """Build a chain anew in OpenDP.

    Parameters
    ----------
    chain : Transformation or Measurement
        From a column, a table or answers; by select, clip, impute, cast (of strings and integers),
        drop_missing, resize, to_change_one, to_symmetric, count, sum_of, mean, variance and
        histogram, to laplace or gaussian; by quantile_scores, or from scores in the sup norm, to
        exponential or top_k(1, scale); several of them in `compose`; what `from_opendp` put in.
        Behind it may come a function of the answer. That, select, map_rows, filter_rows and
        declared functions are taken by OpenDP only after
        ``opendp.prelude.enable_features("honest-but-curious")``: it cannot check them.

    Returns
    -------
    opendp.Transformation or opendp.Measurement
        The same question in OpenDP's arithmetic and under OpenDP's map, in the measure of the
        chain. Exponential noise there makes `exponential`, and `top_k` of one place,
        permute-and-flip under ``PURE`` (McKenna and Sheldon, NeurIPS 2020), which is never worse;
        under ``ZCDP`` it is the exponential mechanism. Texts that spell a number with spaces or
        underscores are missing there. A composition gives a list.

    Raises
    ------
    MissingExtra
        If OpenDP is not installed.
    ParameterError
        If a step has no equivalent there; it is named.
    """
    dp = _opendp()
    try:
        place = begin(dp, chain.source)
        if isinstance(chain, Transformation):
            return _transformed(dp, place, chain).built
        return _measured(dp, place, chain)
    except NotTrusted as asked:
        _check(chain)  # it would ask in vain, where another step is refused anyway
        raise ParameterError(asked.message) from asked.__cause__


def _opendp() -> Any:
    try:
        import opendp.prelude as dp  # noqa: PLC0415  (1.5 s)
    except ImportError:
        raise MissingExtra("a chain in OpenDP", "opendp") from None
    dp.enable_features("contrib")
    return dp


def _check(chain: Transformation | Measurement) -> None:
    """Refuse a chain of which a step or the end has no equivalent in OpenDP."""
    if isinstance(chain, Transformation):
        for step in chain.steps or (chain,):
            check_step(step)
        return
    kind, *rest = chain.settings or ("",)
    if kind == "then":
        _check(_ending(chain, rest[0]))
        return
    law = LAWS.get(kind)
    chooses = (law is not None and law.selects) or (kind == "top_k" and rest[0] == 1)
    steps = () if chain.first is None else chain.first.steps or (chain.first,)
    if chooses and steps and named(steps[-1]) == "quantile_scores":
        steps = steps[:-1]
    for step in steps:
        check_step(step)
    if kind == "compose":
        for part in rest[0]:
            _check(part)
        return
    if kind != "opendp" and not chooses and not (law is not None and law.opendp):
        raise _no_equivalent(chain)


def _no_equivalent(chain: Measurement) -> ParameterError:
    kind, *_ = chain.settings or ("",)
    last = chain.name.rpartition(" >> ")[2]
    why = _NO_END.get(kind, f"a chain may end in {_ENDS}")
    return ParameterError(f"OpenDP has no equivalent of {last}: {why}")


def _transformed(dp: Any, place: Place, chain: Transformation) -> Place:
    for step in chain.steps or (chain,):
        place = step_behind(dp, place, step)
    place = aligned(dp, place, chain.target)
    if place.built is None:  # nothing was to be done
        return place.behind(beyond(dp, chain, dp.t.make_identity, place.domain, place.metric))
    return place


def _measured(dp: Any, place: Place, chain: Measurement) -> Any:
    """Build the transformations before the noise, the noise, and what follows."""
    kind, *rest = chain.settings or ("",)
    if kind == "then":
        before, function = rest
        inner = _measured(dp, place, _ending(chain, before))
        return beyond(dp, chain, inner.__rshift__, _on_ours(function, before))
    steps = () if chain.first is None else chain.first.steps or (chain.first,)
    choose = _chooses(dp, chain)
    if choose is not None and steps and named(steps[-1]) == "quantile_scores":
        for step in steps[:-1]:
            place = step_behind(dp, place, step)
        place, made = scored(dp, place, steps[-1], rest[-1], choose)
        return _stated(dp, chain, place.closed(made))
    for step in steps:
        place = step_behind(dp, place, step)
    if kind == "compose":
        parts = [_measured(dp, place.fresh(), part.to(chain.measure)) for part in rest[0]]
        return place.closed(beyond(dp, chain, dp.c.make_composition, parts))
    return _stated(dp, chain, beyond(dp, chain, place.closed, _noisy(dp, place, chain)))


def _ending(chain: Measurement, settings: tuple[Any, ...]) -> Measurement:
    return replace(chain, name=chain.name.rpartition(" >> ")[0], settings=settings)


def _noisy(dp: Any, place: Place, chain: Measurement) -> Any:
    kind, *rest = chain.settings or ("",)
    space = place.domain, place.metric
    if kind == "opendp":
        return rest[0]
    law, choose = LAWS.get(kind), _chooses(dp, chain)
    if choose is not None:
        return beyond(dp, chain, choose, *space, float(rest[-1]), False)
    if law is not None and law.opendp:
        return beyond(dp, chain, getattr(dp.m, law.opendp), *space, float(rest[0]))
    raise _no_equivalent(chain)


def _chooses(dp: Any, chain: Measurement) -> Maker | None:
    """Find the constructor of a choice of one candidate, which takes a space, scale and negate."""
    kind, *rest = chain.settings or ("",)
    by = dp.zero_concentrated_divergence() if chain.measure == ZCDP else dp.max_divergence()
    if kind == "top_k" and rest[0] == 1:
        return lambda *given: dp.m.make_noisy_top_k(*given[:2], by, 1, *given[2:])
    if kind in LAWS and LAWS[kind].selects:
        return lambda *given: getattr(dp.m, LAWS[kind].opendp)(*given[:2], by, *given[2:])
    return None


def _stated(dp: Any, chain: Measurement, made: Any) -> Any:
    """Convert what OpenDP states into the measure of the chain."""
    given = repr(made.output_measure)
    if _STATED.get(given) == chain.measure:
        return made
    converters = {
        ("MaxDivergence", ZCDP): dp.c.make_pureDP_to_zCDP,
        ("MaxDivergence", PRIVACY_PROFILE): dp.c.make_approximate,
        ("ZeroConcentratedDivergence", PRIVACY_PROFILE): dp.c.make_zCDP_to_approxDP,
    }
    convert = converters.get((given, chain.measure))
    if convert is None:
        raise ParameterError(
            f"OpenDP states the loss of {chain.name} as {given}, which says nothing in terms of "
            f"{chain.measure.constant}; give the chain another measure of hushed.spaces, as in "
            ".to(hushed.spaces.PRIVACY_PROFILE)"
        )
    return beyond(dp, chain, convert, made)


def _on_ours(function: Any, settings: tuple[Any, ...]) -> Any:
    """Give a function what it gets from a chain of ours: arrays for vectors, tuples of answers."""
    return lambda released: function(_as_ours(released, settings))


def _as_ours(released: Any, settings: tuple[Any, ...]) -> Any:
    kind, *rest = settings or ("",)
    if kind == "compose":
        return tuple(
            _as_ours(each, part.settings) for each, part in zip(released, rest[0], strict=True)
        )
    if kind == "top_k":
        return np.array(released, np.int64)
    if kind in LAWS and not LAWS[kind].selects:
        return np.array(released, float) if isinstance(released, list) else float(released)
    return released
