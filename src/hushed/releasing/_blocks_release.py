"""Release of any function by blocks: checked, charged, asked in processes of its own, drawn."""

from __future__ import annotations

from typing import Any

from hushed._functions._carried import list_unsearched
from hushed._functions._gate import (
    Outside,
    admit_rows,
    refuse_private_candidates,
    refuse_private_centre,
    refuse_private_prior,
    show_as_given,
)
from hushed._functions._isolation import Isolation
from hushed._ground.printing import name_count, tell_seconds
from hushed._ground.progress import show_elapsed, tell_note, tell_wait
from hushed._rows import _containers as containers
from hushed.blocks import Blocks, Pool
from hushed.blocks._calls import open_calls
from hushed.blocks._tried import was_tried
from hushed.errors import ParameterError
from hushed.ledger._payments import Charges, check_ledger, explain_stops, pay
from hushed.releasing._blocks import digest_blocks, name_function, name_silent
from hushed.releasing._certifying import certify_blocks
from hushed.releasing._layouts import refuse_blocks
from hushed.releasing._statistic_release import Released, draw_and_store
from hushed.statistics import Statistic


def release_blocks(
    f: Any,
    data: Any,
    mechanism: Blocks,
    ledger: Charges | None,
    *,
    budget: str | None,
    note: str,
    key: str | None,
    outside: Outside,
    labels: tuple[str, ...] = (),
) -> Released:
    """Charge, ask the function about each block, and draw; value, certificate and number.

    Processes that have loaded the function are there before the charge: one that cannot be loaded
    costs nothing. A pool that the user keeps stands in place of the function. What the function
    does with private rows is never told, not even that it failed.
    """
    pool = f if isinstance(f, Pool) else None
    f = f if pool is None else pool.function
    if isinstance(f, Statistic):
        raise ParameterError(
            "hs.Blocks releases functions: give one that computes the statistic on however many "
            "rows. hs.InverseSensitivity and hs.Smooth release the statistic itself, and are more "
            "accurate on most tables"
        )
    if not callable(f):
        raise ParameterError(f"the first argument must be a function, got {type(f).__name__}")
    if outside != "clamp":
        raise ParameterError(
            "blocks have no population, and so no range: leave outside= out", parameter="outside"
        )
    check_ledger(ledger, budget, key)
    rows = show_as_given(admit_rows(data, None, function=f), data)
    refuse_private_prior(mechanism.prior, data)
    refuse_private_candidates(mechanism.candidates, data)
    refuse_private_centre(mechanism.centre, data)
    mechanism.check(rows)
    refuse_blocks(f, rows, mechanism.blocks or 1, even=mechanism.even)
    name = name_function(f)
    hidden = list_unsearched(f)
    held = containers.container(rows)
    if pool is not None:
        pool.check(mechanism, held)
    said: dict[str, Any] = {"unsearched": hidden, "labels": labels}
    certify_blocks(mechanism, name, **said).to_json()  # whatever it refuses is unpaid
    question = "" if ledger is None else digest_blocks(mechanism, f)
    promise, law = mechanism.guarantee, mechanism.loss
    if not was_tried(f):
        _tell_untried(mechanism)
    opened = open_calls(mechanism, f, 1, held) if pool is None else pool.lend()
    with opened as calls, explain_stops(ledger, budget, key):
        paid = pay(ledger, budget, promise, note, loss=law, key=key, question=question)
        if paid.kept is None:
            _tell_wait(calls, mechanism.blocks or 1)
        asking = f"asking about {name_count(mechanism.blocks or 1, 'block')}"
        with show_elapsed(asking, None, shown=paid.kept is None):
            return draw_and_store(
                lambda: _ask_and_draw(mechanism, calls, rows),
                lambda: certify_blocks(mechanism, name, charged=paid.terms, **said),
                paid,
                "answer",
            )


def _tell_untried(mechanism: Blocks) -> None:
    """Tell who asks, before the charge, what nobody is told after it; no private row is read."""
    wanted = mechanism.aggregation.shape
    answer = f"an array of {wanted[0]}" if wanted else "one number"
    answer = "a label" if mechanism.labelled else answer
    tell_note(
        "hs.Blocks: in this session the function was not tried on public rows. A call that fails, "
        f"or answers with anything but {answer}, counts as {name_silent(mechanism.aggregate)}, "
        "costs as much, and is told to nobody: try it first, by simulate (hushed blocks --simulate)"
    )


def _tell_wait(calls: Isolation, blocks: int) -> None:
    """Tell beforehand what takes long: how far the calls are follows from the rows, and is not."""
    seconds, workers = calls.foresee(blocks)
    tell_wait(
        f"hs.Blocks asks about {name_count(blocks, 'block')}, "
        f"{workers} at a time, each in a new process. To "
        f"start these takes some {tell_seconds(seconds)}. What the function imports in its own "
        "lines comes on top, in each call. How long a call takes depends on its rows: the time "
        "that has passed is shown, and not how many are done",
        seconds,
    )


def _ask_and_draw(mechanism: Blocks, calls: Isolation, rows: Any) -> Any:
    """Ask about each block, and draw from the answers."""
    return mechanism.aggregation.draw(calls.call(mechanism.split(rows)))
