"""Measure how far a function moves between neighbours drawn from a public population."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, get_args

import numpy as np

from hushed._functions._trials import seed_from
from hushed._ground.calls import called_as
from hushed._ground.checks import is_whole, require_count, require_one_of
from hushed._ground.printing import as_given
from hushed._ground.warned import warn_caller
from hushed.engines._choice import Workers, opens_engine
from hushed.errors import ParameterError
from hushed.guarantee import Neighbours, Protect, RowUnit
from hushed.populations import Population, by_user
from hushed.populations._users import column_of_users
from hushed.runs import Keep
from hushed.sensitivity._blockwise import Blockwise
from hushed.sensitivity._keeping import check_keep
from hushed.sensitivity._neighbourhood import Neighbourhood, Position
from hushed.sensitivity._origin import describe_sampling
from hushed.sensitivity._pairs import Function
from hushed.sensitivity._plan import plan
from hushed.sensitivity._ranks import Calibration
from hushed.sensitivity._record import BATCH_ROWS, MOST_BATCH_ROWS, Sensitivity
from hushed.sensitivity._remarks import warn_of_places
from hushed.sensitivity._sampler import run_sampling
from hushed.sensitivity._start import Request, start_sampling
from hushed.sensitivity._updates import Update, check_update
from hushed.sensitivity._values import Row, read_values
from hushed.spaces import NORMS, Norm

_MOST_PAIRS = 10_000_000  # drawn without being asked for: minutes at least


@called_as("hs.sample_sensitivity(f, population, rows=100, gamma=0.05)")
@opens_engine
def sample_sensitivity(
    f: Function,
    population: Population,
    *,
    rows: int | Sequence[int],
    norm: Norm = "l1",
    neighbours: Neighbours = "replace-one",
    distance: int = 1,
    position: Position = "random",
    gamma: float | None = None,
    calibration: Calibration = "training-conditional",
    pairs: int | None = None,
    protect: Protect = "record",
    values: Any = None,
    monotone: bool = False,
    batch: bool = False,
    batch_rows: int = BATCH_ROWS,
    symmetric: bool = False,
    update: Update | None = None,
    data_dependent: bool = False,
    unit: RowUnit = "row",
    user: str | int | None = None,
    seed: int | np.random.Generator | None = 0,
    workers: Workers = None,
    progress: bool = False,
    keep: str | PathLike[str] | Keep | None = None,
) -> Sensitivity:
    """Measure how far a function moves between neighbours, for all but a gamma share of them.

    Draws pairs of tables that differ in one row from a public population, evaluates the function
    on both, and keeps one of the largest movements: which one follows from gamma.

    Parameters
    ----------
    f : callable
        The function of the rows: deterministic, returning a number or an array of numbers of
        fixed shape. It is given the container that the population yields and must not change it.
        A dict or a pandas Series names its numbers, alike on every table.
        A `Blockwise` function is measured on tables of one block.
    population : Population
        Public source of independent rows. Never the private rows, nor anything fitted to them.
        The pairs drawn from a `PublicTable` have no row in common, so that it must be larger than
        the private table many times over; `Blockwise` and its ``promise`` are the ways out.
    rows : int or sequence of int
        Rows in the private table, or users in it where `user` is given; 2 or more. A release on
        another number of them is refused. With ``neighbours="add-remove"`` the private number is
        private: these are public numbers, and the promise is for tables of exactly so many rows
        against tables of one row more or less. No release is refused for its number of rows.
    norm : {"l1", "l2", "sup", "range"}, default "l1"
        How movement is measured: l1 for Laplace, l2 for Gaussian, sup for exponential and
        Bernstein, range (largest minus smallest change) for the exponential mechanism.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        Neighbours have one row replaced; or a fresh row added, or one of the rows removed
        (three evaluations for each of the numbers of rows).
    distance : int, default 1
        Rows that are replaced at once, by fresh draws: epsilon is then for all of them together.
    position : {"random", "worst"}, default "random"
        Where the row is replaced (or added and removed): at one place, drawn at random unless the
        function is ``symmetric``, or at every place in turn, of which the largest movement
        counts (n + 1 evaluations). ``"worst"`` covers whoever stands at a certain place.
    gamma : float, optional
        Probability with which the promise may fail; in (0, 1). Without ``gamma`` and ``pairs``
        it is 0.05; with ``pairs`` alone it is the smallest that they support.
    calibration : {"training-conditional", "marginal", "dkw"}, default "training-conditional"
        How the rank is chosen; see `choose_rank`.
    pairs : int, optional
        Pairs to draw (tables, where each has many neighbours); as few as gamma allows by
        default, but more than ten million only if the number is given.
    protect : {"record", "everyone", "simultaneous", "table"}, default "record"
        ``"record"``: gamma is per record. ``"everyone"``: gamma covers all n records at once, by
        the union bound (level gamma / n per pair). ``"simultaneous"``: the same statement, by
        taking the largest movement over the n rows of each drawn table, each replaced by its own
        fresh draw (n + 1 evaluations per table). ``"table"``: with probability 1 - gamma over the
        table, all of its neighbours whose new row is among ``values`` are covered (1 + n times
        the number of values evaluations per table), and not a second replaced row.
    values : list, array or frame, optional
        Public rows that a record may be replaced by, under ``protect="table"``: a list of numbers
        or of lists of cells, in the range of the population where it has one.
    monotone : bool, default False
        Declare, in place of ``values``, that each number of the answer goes only up or only down
        when a cell of a row goes up, whatever the other cells: then the ends of the public range
        of the population cover every row inside. Tried on random rows of random tables. An answer
        of several numbers needs the sup norm on rows of several columns, and under add-remove.
    batch : bool, default False
        Hand the function an array (tables, rows, columns) at once; it returns one answer for
        each table along the first axis. Tried: some tables of a block are asked on their own.
    batch_rows : int, default 65536
        With ``batch``, rows that are drawn and handed over at once, about; up to ``2**26``. More
        feed a graphics processor better, and need their memory several times over. Other blocks
        give other draws, so that it is recorded.
    symmetric : bool, default False
        Declare that the order of the rows does not matter: the last row is then replaced instead
        of a random one. Tried: on three tables, rows are reversed and shuffled, and the last one
        changes places with a random one; none may move the answer by more than a millionth of
        the sensitivity.
    update : callable, optional
        Declare how one replaced row changes the answer, so that neighbours need not be evaluated:
        ``update(answer, rows, places, new_rows)`` gives the answer of the table with the row at
        ``places[i]`` replaced by ``new_rows[i]``, for each i on its own, stacked along the first
        axis. ``rows`` is the table as the function saw it, ``answer`` what it answered. With
        ``user`` places are those of users, and ``new_rows`` has all rows of each new one, with 0,
        1, 2, ... in the column of users. It pays where a table has many neighbours: with
        ``protect`` ``"simultaneous"`` or ``"table"``, and ``position="worst"``; a pair has one
        evaluation less, of two, where a mean of rows needs no table: see `Blockwise`. Tried: the
        function is evaluated on the neighbour that moves furthest and on a random one, or on the
        first 16 pairs and a 16th of the others; the gap may be a millionth of the sensitivity, and
        each movement is enlarged by the largest.
    data_dependent : bool, default False
        Admit that the population was made from the private rows. Guarantee and certificate are
        then marked as nominal.
    unit : {"row", "person"}, default "row"
        ``"person"`` declares that each row is one person: certificates then speak of people. What
        is promised is the same, for rows.
    user : str or int, optional
        Column that says whose a row is, by its name, or its position in an array or in tuples.
        Neighbours then differ in all rows of one user: people with several rows are protected as
        a whole. Whatever is said of rows holds for users: `rows` counts them, the population
        draws them (see `hushed.populations.Users`; a public table needs the column; anything else
        gives all rows of as many users as it is asked for), and a symmetric function is one to
        which their order means nothing. The function is given the rows of one user after the
        other, and in the column of users 0, 1, 2, ...: never how users are called.
    seed : int, numpy.random.Generator or None, default 0
        Seed of the sampler, which must not depend on the private rows; None draws a fresh one.
        The result is the same for any number of workers.
    workers : int, str, Engine or distributed.Client, optional
        Worker processes, or a cluster: ``"dask://HOST:8786"``, ``"ray"``, a session of Spark;
        see `hushed.engines.engine_of`.
    progress : bool, default False
        Show a progress bar in a terminal or a notebook.
    keep : str, path or hushed.runs.Keep, optional
        Folder, or address of an object store, in which finished trials are kept: the same call
        goes on where an earlier one was interrupted, and one with more pairs runs only the new
        ones. With ``data_dependent`` they are private: `hushed.runs.Keep` must say so.

    Returns
    -------
    Sensitivity
        The kept movement, in the units of the answer, with gamma and all that is needed to
        measure it again.

    Raises
    ------
    ParameterError
        If a parameter leaves its range.
    TooFewPairs
        If ``pairs`` cannot support ``gamma``; the message says how many can.
    TooFewRows
        If a public table has too few rows for ``gamma``; the message says how many would be
        enough, and which gamma they support.
    BadFunction, RandomFunction
        If the function raises, changes its input, is random, returns something else than finite
        numbers of one shape, or is not what it was declared to be.
    BadRows
        If the population gives a wrong number of rows or an unknown container, or its rows do
        not follow from the generator it is given.
    DamagedRun
        If what is kept contradicts itself, or is not what the function gives.

    Warns
    -----
    PlacesLeftOut
        If the function is not declared ``symmetric``, and gamma leaves room for whole places of
        the table: see ``position``. It stands in `Sensitivity.explain` and on certificates, too.

    Notes
    -----
    Rubinstein and Alda, *Pain-Free Random Differential Privacy with Sensitivity Sampling*,
    ICML 2017, Algorithm 1, with the replaced position drawn at random, so that statements hold
    for every position on average when the order of the rows matters.

    Examples
    --------
    >>> import numpy as np
    >>> import hushed as hs
    >>> ages = hs.populations.Uniform(low=0, high=100)
    >>> s = hs.sample_sensitivity(np.mean, ages, rows=500, gamma=0.05, symmetric=True)
    >>> s.pairs, s.value < 100 / 500
    (112, True)
    """
    _check(norm, pairs, unit)
    check_keep(keep, private=data_dependent)
    given = population
    if user is not None:
        _check_user(user, unit, batch=batch)
        user = user if isinstance(user, str) else int(user)
        population = by_user(population, user)
    elif (named := column_of_users(population)) is not None:
        raise ParameterError(f"the population draws users: say user={named!r}", parameter="user")
    reach = read_reach(
        f,
        rows,
        neighbours=neighbours,
        distance=distance,
        position=position,
        protect=protect,
        user=user,
        norm=norm,
        batch=batch,
    )
    if update is not None:
        check_update(update, f, reach, batch=batch)
    chosen = _check_values(
        values,
        protect=protect,
        monotone=monotone,
        norm=norm,
        data_dependent=data_dependent,
    )
    seed = seed_from(seed)
    rank, total = plan(calibration, reach, gamma=gamma, pairs=pairs)
    if pairs is None:
        _check_cost(rank.pairs, total, reach)
    request = Request(
        function=f,
        population=population,
        given=given if values is None else (given, values),
        reach=reach,
        values=chosen,
        monotone=monotone,
        norm=norm,
        calibration=calibration,
        rank=rank,
        gamma=total,
        requested_gamma=total if gamma is not None or pairs is None else None,
        asked_pairs=None if pairs is None else int(pairs),
        batch=batch,
        batch_rows=_read_batch_rows(batch_rows, batch=batch),
        symmetric=symmetric,
        update=update,
        data_dependent=data_dependent,
        seed=seed,
        user=user,
    )
    start = start_sampling(request)
    if (left_out := warn_of_places(reach, total, symmetric=symmetric)) is not None:
        warn_caller(left_out, __name__, opens_engine.__module__)  # before the long run
    sampling = run_sampling(request, start, workers=workers, progress=progress, keep=keep)
    return Sensitivity(
        value=float(sampling.draws[rank.rank - 1]),
        norm=norm,
        neighbours=neighbours,
        argument=describe_sampling(rank.rank, rank.pairs, calibration, reach.blocks),
        unit="row" if user is None else "user",
        sampling=sampling,
        person=unit == "person",
    )


def _check(norm: Norm, pairs: int | None, unit: RowUnit) -> None:
    """Refuse parameters that make no sense before anything is drawn."""
    require_one_of("norm", norm, NORMS)
    if pairs is not None and not is_whole(pairs):
        raise ParameterError(f"pairs must be an integer, got {as_given(pairs)}", parameter="pairs")
    if not isinstance(unit, str) or unit not in get_args(RowUnit):
        raise ParameterError(
            f"unit must be one of {get_args(RowUnit)}, "
            f"got {as_given(unit)}; for people with several rows "
            "say user=COLUMN",
            parameter="unit",
        )


def _check_user(user: str | int, unit: RowUnit, *, batch: bool) -> None:
    """Refuse what does not go with people who have several rows."""
    if not isinstance(user, str) and not (is_whole(user) and user >= 0):
        raise ParameterError(
            f"user must be the name or the position of a column, got {as_given(user)}",
            parameter="user",
        )
    if unit != "row":
        raise ParameterError(
            "each row is one person, or a user has several: not both", parameter="user"
        )
    if batch:
        raise ParameterError(
            "batch=True stacks tables of one length, and users have different numbers of rows: "
            "leave it out",
            parameter="batch",
        )


def _read_batch_rows(batch_rows: int, *, batch: bool) -> int:
    """Read how many rows are drawn at once, where tables are stacked."""
    count = require_count("batch_rows", batch_rows)
    if count > MOST_BATCH_ROWS:
        raise ParameterError(
            f"batch_rows must be {MOST_BATCH_ROWS} at most, got {batch_rows}: so many rows are "
            "held in memory at once",
            parameter="batch_rows",
        )
    if count != BATCH_ROWS and not batch:
        raise ParameterError(
            "batch_rows goes with batch=True: else the function is given one table at a time",
            parameter="batch_rows",
        )
    return count


def read_reach(
    f: Function,
    rows: int | Sequence[int],
    *,
    neighbours: Neighbours,
    distance: int,
    position: Position,
    protect: Protect,
    user: str | int | None,
    norm: Norm,
    batch: bool,
) -> Neighbourhood:
    """Read which neighbours are to be compared, of tables of which sizes."""
    many = isinstance(rows, Sequence) and not isinstance(rows, str)
    sizes: list[Any] = list(rows) if many else [rows]  # type: ignore[arg-type]
    if not sizes or not all(is_whole(each) and each >= 2 for each in sizes):
        raise ParameterError(
            "rows must be an integer of 2 or more, "
            f"got {as_given(rows)}: neighbours differ in one row "
            "and share the others",
            parameter="rows",
        )
    require_one_of("neighbours", neighbours, get_args(Neighbours))
    if many and neighbours != "add-remove":
        raise ParameterError(
            "rows is one number where rows are replaced, for then the number of rows is public: "
            "several go with neighbours='add-remove'",
            parameter="rows",
        )
    most = int(max(sizes))
    return Neighbourhood(
        rows=most,
        blocks=_blocks(f, most, user, norm, batch=batch),
        neighbours=neighbours,
        distance=distance,
        position=position,
        protect=protect,
        sizes=tuple(sorted({int(each) for each in sizes})) if neighbours == "add-remove" else (),
        user=user,
    )


def _check_values(
    values: Any, *, protect: Protect, monotone: bool, norm: Norm, data_dependent: bool
) -> tuple[Row, ...]:
    """Read the rows that a record may be replaced by; they go with ``protect="table"`` alone."""
    if protect != "table":
        if values is not None or monotone:
            raise ParameterError("values and monotone go with protect='table' alone")
        return ()
    if (values is None) == (not monotone):
        raise ParameterError(
            "protect='table' is about given replacements: give values, the public rows that a "
            "record may be replaced by, or say monotone=True (the ends of the public range are "
            "then enough), one of the two",
            parameter="values",
        )
    if data_dependent:
        raise ParameterError("protect='table' promises nothing with data_dependent=True")
    if monotone and norm == "range":
        raise ParameterError(
            "the range norm may be largest between the ends of the range of a row: monotone=True "
            "goes with the norms l1, l2 and sup"
        )
    return read_values(values)


def _check_cost(pairs: int, gamma: float, reach: Neighbourhood) -> None:
    """Refuse to start what nobody would wait for, unless the number is asked for."""
    if pairs > _MOST_PAIRS:
        drawn = "tables" if reach.whole else "pairs of tables"
        part = "" if reach.protect == "record" else f" with protect={reach.protect!r}"
        raise ParameterError(
            f"gamma={gamma:g}{part} takes {pairs:,} {drawn}, and more than {_MOST_PAIRS:,} are not "
            "drawn unless they are asked for: take a larger gamma, or give the number of pairs",
            parameter="pairs",
            hint=f"as in pairs={pairs}",
        )


def _blocks(f: Function, rows: int, user: str | int | None, norm: Norm, *, batch: bool) -> int:
    """Count the blocks whose answers the function averages; 1 if it takes the table whole."""
    if type(f) is not Blockwise:  # a subclass may do something else than average
        return 1
    if f.user != user:
        raise ParameterError(
            f"the blocks are of {'rows' if f.user is None else 'users'}, and user={user!r}: give "
            f"the same to both, as in hs.Blockwise(f, rows={f.rows}, user={user!r})",
            parameter="user",
        )
    if batch != f.batch:
        raise ParameterError(
            "batch=True stacks tables: with hs.Blockwise say it there, too, batch=True in both"
        )
    # An average is held to a limit, which keeps ranges if no score is above the best one's 0.
    if norm == "range" and not f.relative:
        raise ParameterError(
            "averages over blocks need scores that are counted from the best of each block in the "
            "norm 'range': hs.Blockwise(f, rows=..., relative=True)",
            parameter="norm",
        )
    return f.blocks(rows)
