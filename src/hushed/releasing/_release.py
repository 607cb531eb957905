"""The one verb: charge, evaluate on the private rows, draw, certify."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MethodType
from typing import Any

import numpy as np

from hushed._functions._calls import public_name
from hushed._functions._carried import carries_rows, list_unsearched
from hushed._functions._gate import (
    Outside,
    admit_rows,
    answer_private_rows,
    refuse_private_candidates,
    refuse_private_prior,
    show_as_given,
)
from hushed._functions._row_functions import refuse_carrying_steps
from hushed._ground.calls import called_as, given_by
from hushed._ground.notebook import Card, Shown
from hushed._ground.printing import flat, format_number
from hushed._ground.read_only import make_again, read_state
from hushed.blocks import Blocks, Pool
from hushed.errors import (
    BadFunction,
    BadRows,
    HushedError,
    ParameterError,
    PrivateRowsAsPopulation,
)
from hushed.ledger._failures import write_failure
from hushed.ledger._notes import choose_note, default_note
from hushed.ledger._payments import Charges, Payment, check_ledger, explain_stops, pay
from hushed.measurements import Measurement
from hushed.mechanisms import Mechanism
from hushed.mechanisms._objective_draw import ObjectiveDraw
from hushed.mechanisms._posterior_draw import PosteriorDraw
from hushed.mechanisms._registry import SEARCHES, STATISTIC_MECHANISMS, StatisticMechanism
from hushed.posterior import Posterior
from hushed.releasing._blocks import name_function
from hushed.releasing._blocks_release import release_blocks
from hushed.releasing._certificate import Certificate
from hushed.releasing._certifying import certify
from hushed.releasing._layouts import refuse_layout
from hushed.releasing._mechanisms import Admitted, admit_mechanism
from hushed.releasing._names import list_named, name_chosen, name_numbers, name_value, names_of
from hushed.releasing._pricing import confirm_function
from hushed.releasing._questions import question_of
from hushed.releasing._stated_error import StatedError
from hushed.releasing._statistic_release import release_statistic
from hushed.releasing._stored import read_release, write_release
from hushed.sensitivity import Sensitivity
from hushed.statistics import Statistic
from hushed.transformations import Transformation

_MOST_NAMED = 20


@given_by("hs.release(f, rows, hs.Laplace(sensitivity, epsilon=1.0))")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Release(Shown):
    """What may be published.

    Parameters
    ----------
    value : float, int, ndarray, Winner, BernsteinPolynomial, a category or None
        The private answer: a number, an array, the index of the chosen candidate, the indices of
        several, a candidate with its gap, a function, a value of a parameter, or the category that
        a mode chose. An array is read-only: a copy may be changed, and what is certified is what
        was released. None if `ProposeTest` or `StableMode` refused, which is an answer, too.
    certificate : Certificate
        What it promises.
    entry : int, optional
        Number of the charge, under which ``ledger.answer`` tells the answer again; None if it is
        not stored.
    """

    value: Any
    certificate: Certificate
    entry: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.value, np.ndarray):
            released = self.value.copy()
            released.flags.writeable = False
            object.__setattr__(self, "value", released)

    def __reduce__(self) -> tuple[Any, ...]:
        return make_again(self)

    def __setstate__(self, state: Sequence[Any]) -> None:
        """Read one that was pickled before its value was frozen again."""
        read_state(self, state)
        self.__post_init__()

    @property
    def error(self) -> StatedError:
        """Error of the value, as its certificate states it: a number, its level, and its unit."""
        return self.certificate.error

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the function's numbers, as it gave them on public tables; mostly empty."""
        return names_of(self.certificate)

    @property
    def named(self) -> dict[str, float]:
        """Released numbers by name; empty if the function gave no names, or a choice was made."""
        return name_numbers(self.value, self.certificate)

    @property
    def chosen(self) -> tuple[str, ...]:
        """Names of the chosen candidates, the best first; empty if they have none."""
        return name_chosen(self.value, self.certificate)

    def _brief(self) -> str:
        value = self.named or self.chosen or self.value
        promise = self.certificate._brief().removeprefix("Certificate: ")
        return f"Release of {value!r}; {promise}"

    def _card(self) -> Card:
        text = self.certificate.explain()
        value = np.array2string(np.asarray(self.value), threshold=20, precision=8)
        scalar = self.value is None or isinstance(self.value, str) or np.ndim(self.value) == 0
        named = list_named(self.value, self.certificate)
        if scalar:
            real = isinstance(self.value, float)
            value = format_number(self.value) if real else flat(self.value)
        known = [] if self.named else [(name_value(self.certificate), value)]
        known += named[:_MOST_NAMED]
        if (more := len(named) - _MOST_NAMED) > 0:
            known.append(("and", f"{more} more, in .named"))
        entry = (("entry in the ledger", str(self.entry)),) if self.entry is not None else ()
        if self.value is not None:  # a refusal has none
            known.append(("error", self.error.explain()))
        shown = "\n".join(f"{name}: {each}" for name, each in (*known, *entry))
        facts = (*known, *entry, ("promise", self.certificate._promise()))
        return Card(title="Release", text=f"{shown}\n\n{text}", facts=facts, words=text)


@called_as("hs.release(f, rows, hs.Laplace(sensitivity, epsilon=1.0))")
def release(
    f: Callable[..., Any] | Statistic | Transformation | Pool,
    data: Any,
    mechanism: Mechanism | StatisticMechanism | Blocks | Posterior,
    ledger: Charges | None = None,
    *,
    budget: str | None = None,
    note: str = "",
    key: str | None = None,
    outside: Outside = "clamp",
) -> Release:
    """Evaluate a function on the private rows and release the answer with noise.

    Everything that can be checked without running the function is checked first. Then the ledger
    is charged, then the function sees the private rows, then the noise is drawn. A function that
    fails on the private rows stays paid for: that it failed is an answer, too. A `Ledger` stores
    the answer, or the failure, before it is shown.

    Parameters
    ----------
    f : callable, statistic or hushed.blocks.Pool
        The function whose sensitivity the mechanism was calibrated to, the statistic that it was
        made for, the ``log_likelihood`` of a `Posterior`, or for hs.Blocks a pool of processes
        that know the function. For a mechanism on a statistic also a chain of
        `hushed.transformations` to a column: the statistic is then computed from what it gives, of
        which one row must change one row.
    data : array, list or frame
        The private rows, in the container and number that were sampled. Not changed: the function
        sees a copy, in the sampled types; a cell that cannot be copied is shown as it is. Integers
        beyond 2**53 become the nearest doubles where doubles were sampled. For a statistic, a cell
        of a list that is no number counts as the low end, and nobody is told, for that is private;
        the type of an array or of a column is public, and one of texts is refused.
    mechanism : Mechanism
        The calibrated mechanism: hs.Laplace, hs.Gaussian, hs.Exponential, hs.TopK, hs.NoisyMax,
        hs.Bernstein, hs.InverseSensitivity, hs.Smooth, hs.ProposeTest, hs.StableMode, hs.Blocks,
        hs.Posterior, or one of your own, see `hushed.Mechanism`.
        What your own promises is not proven, and its certificate says so.
    ledger : Ledger or Charges, optional
        Where to charge the guarantee, and the law of the loss behind it, before anything is
        drawn; nothing is charged without it.
    budget : str, optional
        Name of the budget in the ledger; required with one.
    note : str, default ""
        Remark for the ledger; by default the mechanism and the name of the function.
    key : str, optional
        A name of your own for this release, which needs a `Ledger`: asking the same again under it
        tells the stored answer, at no cost and without a look at the rows. So may be done after a
        crash. Without a key every release is a new one.
    outside : {"clamp", "allow"}, default "clamp"
        What to do with private rows outside of the range that the population keeps to, where it
        keeps to one: move each of them into it before the function sees it, or let them pass. The
        certificate says which; rows that passed are not covered.

    Returns
    -------
    Release
        The private value and its certificate.

    Raises
    ------
    BadRows
        If the table is empty, its size or columns are not those that were sampled, or its types do
        not convert to them without loss (of 64-bit integers beyond 2**53 aside); or if its columns
        or public size are not those that a chain takes. All of it before the charge.
    PrivateRowsAsPopulation
        If the private rows served as the public population without being declared so, or a prior
        was made from them.
    BadFunction
        If the function is not the sampled one, carries the private rows with it, or no longer
        answers as it did when sampled (refused before the charge); or if it fails on the private
        rows, or its answer cannot be released: no private value is shown, and the charge stays.
    KeyInUse
        If the key belongs to another question; nothing is charged.
    KeyboardInterrupt
        If stopped from the charge on; it says what stays, and how to ask again.
    ParameterError
        If the mechanism is none, or of ledger and budget only one is given.
    """
    asked: dict[str, Any] = {"budget": budget, "note": note, "key": key, "outside": outside}
    return release_labelled(f, data, mechanism, ledger, **asked)


def release_labelled(
    f: Any,
    data: Any,
    mechanism: Any,
    ledger: Charges | None,
    *,
    budget: str | None,
    note: str,
    key: str | None,
    outside: Outside = "clamp",
    labels: tuple[str, ...] = (),
) -> Release:
    """Release, and say on the certificate what each number is, which is no part of the question."""
    _refuse_noisy(f)
    _refuse_bare_draw(mechanism)
    asked: dict[str, Any] = {"budget": budget, "key": key, "outside": outside}
    # A subclass may draw anything: it is none of ours.
    if (
        isinstance(mechanism, StatisticMechanism)
        and type(mechanism) in STATISTIC_MECHANISMS.values()
    ):
        named = default_note(f"{type(mechanism).__name__}: {mechanism.statistic.kind}")
        found = release_statistic(
            f, data, mechanism, ledger, note=choose_note(note, named), **asked
        )
    elif type(mechanism) is Blocks:
        function = f.function if isinstance(f, Pool) else f
        named = default_note(f"Blocks: {name_function(function)}")
        asked |= {"note": choose_note(note, named), "labels": labels}
        found = release_blocks(f, data, mechanism, ledger, **asked)
    else:
        return _release_function(f, data, mechanism, ledger, note=note, labels=labels, **asked)
    value, certificate, entry = found
    return Release(value=value, certificate=certificate, entry=entry)


def _release_function(
    f: Any,
    data: Any,
    mechanism: Any,
    ledger: Charges | None,
    *,
    budget: str | None,
    note: str,
    key: str | None,
    outside: Outside,
    labels: tuple[str, ...],
) -> Release:
    """Release a function of the rows, whose movement is proven or sampled."""
    hidden: tuple[str, ...] = ()
    if type(mechanism) is Posterior:
        hidden = list_unsearched(f)
        f, mechanism = _prepare_posterior(f, data, mechanism)
    if not callable(f):
        raise ParameterError(f"the first argument must be a function, got {type(f).__name__}")
    if isinstance(f, Statistic):
        f.check(data)  # its size is public, and refused before the charge
        refuse_private_candidates(getattr(f, "categories", None), data)
    admitted = admit_mechanism(mechanism)
    if admitted.name in SEARCHES:
        raise ParameterError(
            f"{admitted.name} is asked by hs.AboveThreshold or hs.find_bound, and not released"
        )
    check_ledger(ledger, budget, key)
    rows = _read_rows(f, data, admitted.sensitivity, outside)
    said: dict[str, Any] = {"unsearched": hidden, "labels": labels}
    agreed, _ = confirm_function(f, admitted, **said)
    remark = choose_note(note, default_note(f"{admitted.label}: {_describe_question(f, admitted)}"))
    question = "" if ledger is None else question_of(f, admitted, outside)
    promise, law = admitted.guarantee, admitted.loss
    with explain_stops(ledger, budget, key):
        paid = pay(ledger, budget, promise, remark, loss=law, key=key, question=question)
        if paid.kept is not None:
            return _read_stored(paid, paid.kept)
        said |= {"outside": outside, "confirmed": agreed}
        return _evaluate_and_store(f, rows, admitted, paid, said)


def _read_rows(f: Any, data: Any, carried: Sensitivity, outside: Outside) -> Any:
    """Read the private rows as the function is given them; what is refused is unpaid."""
    sampling = carried.sampling
    own = None if sampling is None else f  # what a proof says of others is its author's word
    rows = admit_rows(data, sampling, function=own, outside=outside)
    if sampling is None:
        refuse_carrying_steps(f, data)
        rows = show_as_given(rows, data)
    refuse_layout(f, rows)
    if len(rows) == 0 and carried.neighbours == "replace-one":  # else a row more is a neighbour
        raise BadRows("the table is empty")
    return rows


def _refuse_noisy(f: object) -> None:
    """Refuse a chain that ends in noise: no sensitivity bounds how far its answers move."""
    if isinstance(f, Measurement):
        raise ParameterError(
            f"{f.name} ends in noise already, and how far its answers move is not bounded: give "
            "the chain before the noise, or call the whole one on the rows and charge its "
            "guarantee()"
        )


def _refuse_bare_draw(mechanism: object) -> None:
    """Refuse the draw of a posterior without it: its argument is about the posterior's scores."""
    if type(mechanism) is PosteriorDraw:
        raise ParameterError(
            "give the hs.Posterior itself: what its draw is made for are the scores of its own "
            "log likelihood, and no other function"
        )


def _prepare_posterior(f: Any, data: Any, posterior: Posterior) -> tuple[Any, PosteriorDraw]:
    """Take the scores of a posterior for the function, and its draw for the mechanism."""
    own = posterior.log_likelihood
    if f is not own and not (type(f) is MethodType and f == own):  # each look at one makes it anew
        raise ParameterError(
            "the posterior was made for another function: give its own, posterior.log_likelihood"
        )
    posterior.check(data)
    refuse_private_prior(posterior.prior, data)
    refuse_private_candidates(posterior.given, data)
    if carries_rows(posterior.public_rows, data):
        raise PrivateRowsAsPopulation(
            "public_rows are the private rows, and what the function does on them was told: give "
            "public ones",
            parameter="public_rows",
        )
    if carries_rows(f, data):  # and could say so in words, where it is tried
        raise BadFunction(
            "log_likelihood carries the private rows with it, in a global, a closure or an "
            "attribute, so that each row would see all of them: let it use its arguments alone"
        )
    posterior.check_function(data)
    return posterior.scores, posterior.mechanism


def _evaluate_and_store(
    f: Callable[[Any], Any],
    rows: Any,
    mechanism: Admitted,
    paid: Payment,
    said: Mapping[str, Any],
) -> Release:
    """Evaluate, certify with what is said, draw; it is stored first, a failure, too.

    The time of the certificate is one before: else it would tell how long the private rows took.
    """
    begun = datetime.now(UTC).isoformat(timespec="seconds")

    def certified(values: int) -> Certificate:
        made = certify(mechanism, values=values, charged=paid.terms, **said)
        return replace(made, created=begun)

    try:
        value, certificate = _evaluate_and_draw(
            f, rows, mechanism, certified, charged=paid.ledger is not None, key=paid.key
        )
    except BadFunction as failure:
        if paid.number is None:
            raise
        text = write_failure(failure)
    else:
        if paid.number is None:
            return Release(value=value, certificate=certificate)
        text = write_release(value, certificate)
    return _read_stored(paid, paid.keep(text))


def _evaluate_and_draw(
    f: Callable[[Any], Any],
    rows: Any,
    mechanism: Admitted,
    certified: Callable[[int], Certificate],
    *,
    charged: bool,
    key: str | None,
) -> tuple[Any, Certificate]:
    """Evaluate and draw: what fails from here on fails on private rows, and stays paid for.

    The certificate is written before the draw: nothing that a mechanism learns there gets into it.
    """
    paid = "the charge stays" if charged else "count the budget as spent"
    problem = ""
    try:
        exact = answer_private_rows(f, rows, mechanism.sensitivity.sampling)
        certificate = certified(mechanism.values_of(exact.shape))
        return mechanism.draw(exact), certificate
    except KeyboardInterrupt:
        pass
    except BadFunction as error:
        problem = str(error)
    except HushedError:  # its text may tell the shape of the answer
        problem = (
            f"{mechanism.label} cannot release the answer on the private rows, which has "
            "another shape or more numbers than it can"
        )
    except Exception as cause:  # as when the memory is too small, told with the size of the answer
        problem = f"the noise was not drawn ({public_name(type(cause), 'an exception')})"
    if not problem:
        again = "" if key is None else f": ask again under the key {key!r}, at no cost"
        raise KeyboardInterrupt(f"stopped; nothing was released, but {paid}{again}")
    raise BadFunction(
        f"{problem}; {paid}, because that it failed on the private rows is an answer, too"
    )


def _read_stored(paid: Payment, text: str) -> Release:
    """Release as it is stored; a stored failure is raised."""
    value, certificate = read_release(text)
    return Release(value=value, certificate=certificate, entry=paid.number)


def _describe_question(f: Any, admitted: Admitted) -> str:
    """Name what is released as its certificate does; of a fit, which gives rows, by the fit."""
    if admitted.name == ObjectiveDraw.name:
        return name_function(f)
    carried = admitted.sensitivity
    return carried.argument if carried.sampling is None else carried.sampling.function
