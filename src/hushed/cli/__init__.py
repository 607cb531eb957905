"""The command line: parse, call, print."""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from typing import Annotated, Any, Never

import typer

import hushed
from hushed.cli._spelling import PlainGroup, SpellingCommand

__all__ = ["COMMANDS", "EXAMPLES", "app", "exit_codes", "load", "main"]

# Name: module, and what ``hushed --help`` says. A module is loaded when its command is run, for
# most of them take longer to load than anyone should wait for a help text.
COMMANDS = {
    "compare": (
        "comparing",
        "Compare every way to release an answer, on public rows: promise, error and calls.",
    ),
    "sensitivity": (
        "releasing",
        "Measure how far a function moves between neighbouring tables.",
    ),
    "release": ("releasing", "Release a private answer and its certificate."),
    "statistic": (
        "statistics",
        "Release a median, a quantile, a trimmed mean or a mode: no population is needed.",
    ),
    "blocks": (
        "blocks",
        "Release the answer of any function for any table: from its answers on blocks of rows.",
    ),
    "posterior": (
        "posterior",
        "Release one draw from a posterior: the function gives the log likelihoods of a row.",
    ),
    "find-bound": ("find_bound", "Find a bound to clip a column at, where no range is known."),
    "verify": (
        "verifying",
        "Check a certificate: what follows from it, and its sampling again, bit for bit.",
    ),
    "certify": (
        "certifying",
        "Certify what was released: value, promise, data set, person and charge.",
    ),
    "study": ("certifying", "Certify what several releases from the same rows promise together."),
    "report": ("certifying", "Show everything that was released under a budget, on one page."),
    "check-population": (
        "checking",
        "Test privately whether private rows contradict a public population.",
    ),
    "check-movement": (
        "checking_movement",
        "Count privately how often a function moves further than a population lets expect.",
    ),
    "risk": ("risks", "Show how likely a stronger level is: as published, and exactly."),
    "cost": ("costs", "Find the level for a tolerated error and a budget, or price a level."),
    "compose": ("composing", "Say what several releases on the same rows promise together."),
    "audit": (
        "auditing",
        "Judge what a mechanism claims: violated with a witness, or not refuted.",
    ),
    "estimate": (
        "estimating",
        "Estimate the delta of a mechanism on pairs of tables, in both directions: no verdict.",
    ),
    "test-sensitivity": (
        "test_sensitivity",
        "Test a declared sensitivity on pairs of tables drawn from a population.",
    ),
    "query": ("querying", "Query a private table for noisy aggregates."),
    "ledger": ("ledgers", "Budgets that cannot be overspent."),
    "keys": ("keys", "Keys to sign certificates with: make one, show its public part."),
    "runs": ("keeping", "Runs that were kept with --keep: list them, remove them."),
    "workbench": ("workbench", "Open a page on this computer to ask tables, without Python."),
    "serve": ("serving", "Serve a team: answers over HTTP against a budget. Experimental."),
}

# One use of each command, as a page of the documentation shows and runs it.
EXAMPLES = {
    "compare": "hushed compare median --low 0 --high 5000 --population clinic-public.csv "
    "--column cost --rows 400 --epsilon 1 --promise table",
    "sensitivity": "hushed sensitivity clinic.py:expected_costs --population clinic-public.csv "
    "--rows 3000 --block-rows 60 --gamma 0.05 --calibration marginal --symmetric",
    "release": "hushed release clinic-private.csv clinic.py:expected_costs --population "
    "clinic-public.csv --block-rows 60 --gamma 0.05 --calibration marginal --epsilon 1 --symmetric "
    "--out certificate.json --html certificate.html",
    "statistic": "hushed statistic median clinic-private.csv --column cost --low 0 --high 5000 "
    "--epsilon 1 --out median.json",
    "blocks": "hushed blocks clinic-private.csv premium.py:premium --header --low 0 --high 1000 "
    "--epsilon 2 --out premium.json",
    "posterior": "hushed posterior clinic-private.csv stays.py:log_likelihood --header "
    "--grid 50:3000:60 --clip 4 --epsilon 1 --out draw.json",
    "find-bound": "hushed find-bound clinic-private.csv --column cost --epsilon 0.5 --out "
    "bound.json",
    "verify": "hushed verify certificate.json clinic.py:expected_costs --population "
    "clinic-public.csv",
    "certify": "hushed certify --ledger sqlite:///budget.db --budget clinic --entry 1 --data "
    '"Clinic 2024" --actor Ada --out answer.json --html answer.html',
    "study": "hushed study answer.json mean.json --delta 1e-6 --out study.json",
    "report": 'hushed report sqlite:///budget.db clinic --data "Clinic 2024" --html report.html',
    "check-population": "hushed check-population clinic-private.csv --population "
    "clinic-public.csv --epsilon 0.1 --level 0.001 --ledger sqlite:///budget.db --budget clinic",
    "check-movement": "hushed check-movement clinic-private.csv dearest.py:dearest --population "
    "clinic-public.csv --rows 9 --epsilon 0.5 --symmetric --plot moved.svg",
    "risk": "hushed risk --epsilon0 2 --epsilon 1.9",
    "cost": "hushed cost --error 2 --beta 0.05 --budget 300000 --per-person 5500 --people 100",
    "compose": "hushed compose laplace:0.1x300 gaussian:0.05x200 --delta 1e-5",
    "audit": "hushed audit count.py:noisy_count --claim-epsilon 1 --batch --pairs extremes --low 0 "
    "--high 1 --samples 20000 --no-bits",
    "estimate": "hushed estimate count.py:noisy_count --epsilon 0.5 --batch --pairs extremes "
    "--low 0 --high 1 --samples 20000",
    "test-sensitivity": "hushed test-sensitivity clinic.py:expected_costs --population "
    "clinic-public.csv --rows 60 --promise table --bound 200 --pairs 200",
    "query": "hushed query clinic-private.csv --type cost=float --median cost:0:1000 --epsilon 1",
    "ledger open": "hushed ledger open sqlite:///budget.db clinic --epsilon 2 --delta 1e-6 "
    "--gamma 0.1",
    "ledger show": "hushed ledger show sqlite:///budget.db clinic --plot budget.svg",
    "ledger charge": "hushed ledger charge sqlite:///budget.db clinic --epsilon 0.5 --loss "
    'laplace:0.5 --note "released elsewhere"',
    "ledger retire": "hushed ledger retire sqlite:///budget.db mistyped",
    "ledger export": "hushed ledger export sqlite:///budget.db --out budget.json",
    "ledger answer": "hushed ledger answer sqlite:///budget.db clinic 1",
    "ledger verify": "hushed ledger verify sqlite:///budget.db",
    "ledger backup": "hushed ledger backup sqlite:///budget.db copy.db",
    "ledger roles": "hushed ledger roles",
    "keys new": "hushed keys new steward.key",
    "keys show": "hushed keys show steward.key.pub",
    "runs list": "hushed runs list kept",
    "runs remove": "hushed runs remove kept --all",
    "workbench": "hushed workbench clinic",
    "serve init": "hushed serve init stats",
    "serve add": "hushed serve add stays stays.csv --epsilon 3 --user patient --type cost=float "
    "--range cost=0:5000 --folder stats",
    "serve add-function": "hushed serve add-function trimmed stays fees.py:trimmed_mean "
    "--population public-fees.csv --rows 6000 --gamma 0.05 --symmetric --folder stats",
    "serve remove-function": "hushed serve remove-function trimmed --folder stats",
    "serve invite": "hushed serve invite ana --share stays=1.5 --folder stats",
    "serve people": "hushed serve people --folder stats",
    "serve revoke": "hushed serve revoke ana --folder stats",
    "serve trail": "hushed serve trail --folder stats",
    "serve confirm": "hushed serve confirm stays --folder stats",
    "serve check": "hushed serve check --folder stats",
    "serve rotate-key": "hushed serve rotate-key --folder stats",
    "serve restore": "hushed serve restore copies/2027-01-31.db --folder stats",
    "serve move": "hushed serve move --to postgresql://USER@HOST/DATABASE --folder stats",
    "serve waiting": "hushed serve waiting --url https://stats.example.org",
    "serve approve": "hushed serve approve REQUEST --url https://stats.example.org",
    "serve decline": "hushed serve decline REQUEST --reason 'ask for fewer groups' --url "
    "https://stats.example.org",
}

# What 0 and 1 say of a command whose 1 is an answer; such a one ends with 2 whenever it has none.
_ANSWERS = {
    "check-population": "0 not contradicted; 1 contradicted",
    "check-movement": "0 not contradicted; 1 contradicted",
    "audit": "0 not refuted; 1 violated (of the zoo: a private mechanism was accused)",
    "verify": "0 what was checked holds; 1 changed, or not reproduced",
    "test-sensitivity": "0 not refuted; 1 refuted",
}
_DONE = {
    "compare": "0 done; 1 no way applies, or refused",
    "cost": "0 done; 1 not feasible, or refused",
}
_NO_ANSWER = "2 no verdict: bad use, refused, or something could not be read or written"
_FAILED = "2 bad use, or something could not be read or written"


def exit_codes(name: str) -> str:
    """Say in one line how a command may end."""
    if name in _ANSWERS:
        first = f"{_ANSWERS[name]}; {_NO_ANSWER}"
    else:
        first = f"{_DONE.get(name, '0 done; 1 refused')}; {_FAILED}"
    return f"Exit codes: {first}; 3 a failure that was not foreseen; 130 stopped."


def load(name: str) -> typer.Typer:
    """Load a command, or a group of them."""
    found = getattr(import_module(f"hushed.cli._{COMMANDS[name][0]}"), name.replace("-", "_"))
    below = ""
    if isinstance(found, typer.Typer):
        below = f"{name} "
        found.info.cls = PlainGroup
    else:
        alone = typer.Typer(pretty_exceptions_show_locals=False, add_completion=False)
        alone.command(name)(found)
        found = alone
    for command in found.registered_commands:
        called = f"{below}{command.name}"
        example = f"Example: {EXAMPLES[called]}\n\n" if called in EXAMPLES else ""
        command.epilog = example + exit_codes(name)
        command.cls = SpellingCommand
    return found


class _Loading(PlainGroup):
    """A group whose commands are names and help texts until one is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and typer.main.get_command(load(str(found.name))), rest


app = typer.Typer(
    name="hushed",
    cls=_Loading,
    help="Make any Python function private, and prove it.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"hushed {hushed.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    _: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_tell_version, is_eager=True),
    ] = False,
) -> None:
    """Make any Python function private, and prove it."""


for _name, (_, _help) in COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)


def main() -> None:
    """Run the command line; SIGTERM stops it as Ctrl-C does, so that nothing is left behind."""
    signal.signal(signal.SIGTERM, _stop)
    from hushed.cli._outcome import run  # noqa: PLC0415

    code = run(app)
    # A stop while Python ran a string, as it does to make a dataclass, is remembered until another
    # one is run: the process would end by the signal, and not with our code.
    exec("")  # noqa: S102
    sys.exit(code)


def _stop(number: int, frame: object) -> Never:  # noqa: ARG001
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: a second one would cut the cleaning short
    raise KeyboardInterrupt
