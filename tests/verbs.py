"""Verbs with `workers`, in Python and as commands: a cluster answers as one process does."""

import os
import re
from unittest import mock

import numpy as np
from tests.commands import ended

import hushed as hs
from hushed import zoo
from hushed._functions import _trials
from hushed.cli import _audit_zoo

UNIT = hs.populations.Uniform(low=0, high=1)
FUNCTION = """
import os
import numpy as np

def spread(rows):
    with open({path!r}, "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    return float(np.max(rows) - np.mean(rows))

def noisy(rows, rng, size):
    spread(rows)
    return sum(rows) + rng.laplace(size=size)
"""
PUBLIC = "--population uniform:0,1"
PAIRS = "--pairs extremes --low 0 --high 1"
COMMANDS = {
    "verify": "verify c.json f.py:spread",
    "compare": f"compare f.py:spread {PUBLIC} --rows 20 --trials 20 --gamma 0.4",
    "test-sensitivity": f"test-sensitivity f.py:spread {PUBLIC} --rows 5 --bound 1 --pairs 60",
    "blocks": "blocks p.csv f.py:spread --epsilon 5 --low 0 --high 1 --header --blocks 3 "
    "--aggregate mean --simulate uniform:0,1 --trials 20 --in-process",
    "audit": f"audit f.py:noisy --batch --claim-epsilon 1 --samples 1000000 {PAIRS} --no-bits",
    "estimate": f"estimate f.py:noisy --batch --epsilon 1 --samples 400000 {PAIRS}",
}


def _verify(spread, workers, folder):
    """The function that was sampled is told from another one."""
    s = hs.sample_sensitivity(spread, UNIT, rows=15, gamma=0.2, workers=1)
    with hs.Ledger(f"sqlite:///{folder}/budget.db") as ledger:
        ledger.open_budget("rows", hs.Guarantee(epsilon=1.5, gamma=0.3))
        given = {"ledger": ledger, "budget": "rows"}
        released = hs.release(spread, np.linspace(0, 1, 15), hs.Laplace(s, epsilon=1.0), **given)
    functions = (spread, lambda rows: 2 * spread(rows))
    verdicts = [hs.verify(released.certificate, f, workers=workers) for f in functions]
    assert [each.reproduced for each in verdicts] == [True, False]
    return [each.reproduced for each in verdicts]


def _compare(spread, workers, folder):
    asked = {"rows": 20, "epsilon": 1.0, "gamma": 0.4, "trials": 20}
    return str(hs.compare(spread, UNIT, workers=workers, **asked))


def _sample_likelihoods(spread, workers, folder):
    def likelihood(rows, candidates):
        spread(rows)
        return -((np.ravel(rows)[:, None] - np.ravel(candidates)[None, :]) ** 2).sum(axis=0)

    grid = np.linspace(0, 1, 4)
    asked = {"rows": 5, "pairs": 200, "workers": workers}
    found = hs.sample_likelihood_range(likelihood, grid, UNIT, **asked)
    return found.draws.tolist(), found.value


def _simulate_blocks(spread, workers, folder):
    made = hs.Blocks(low=0, high=10, epsilon=2.0, blocks=3, aggregate="mean")
    people = hs.populations.Normal(mean=5.0, std=2.0)
    return made.simulate(spread, people, 12, trials=20, isolated=False, workers=workers)


def _test_bound(spread, workers, folder):
    return hs.test_sensitivity(spread, UNIT, 5, bound=0.9, pairs=200, workers=workers).to_dict()


def _audit(spread, workers, folder):
    def noisy(rows, rng):
        return spread(rows) + rng.laplace()

    pairs = [(np.zeros(3), np.array([0.0, 0.0, 1.0]))]
    claim = hs.Guarantee(epsilon=0.1)
    found = hs.audit(noisy, pairs, claim=claim, samples=2000, bits=False, workers=workers)
    return {key: value for key, value in found.to_dict().items() if key != "seconds"}


def _judge_zoo(spread, workers, folder):
    effort = {"samples": 2000, "confidence": 0.95, "seed": 0, "sequential": False, "keep": None}
    specimens = zoo.specimens(0.1)[:5]
    made = _audit_zoo._Specimens

    def make_noting(*given):
        judged = made(*given)

        def judge(streams):
            spread([0.0])  # which notes the process; mechanisms of the zoo are its own
            return judged(streams)

        return judge

    first = mock.patch.object(_trials, "_FIRST", 1)  # of five that are fast all would run here
    with first, mock.patch.object(_audit_zoo, "_Specimens", make_noting):
        found = list(_audit_zoo.judge_all(specimens, None, effort | {"workers": workers}))
    assert len({row["epsilon_low"] for row in found}) > 1
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found]


VERBS = {
    "verify": _verify,
    "compare": _compare,
    "Blocks.simulate": _simulate_blocks,
    "audit": _audit,
    "zoo": _judge_zoo,
}
MORE_VERBS = {"sample_likelihood_range": _sample_likelihoods, "test_sensitivity": _test_bound}


def check_verb(name, workers, folder):
    """A verb finds the same with workers, and calls the function in processes of theirs."""
    calls, found = folder / "processes", []
    calls.mkdir(parents=True)

    def spread(rows, calls=str(calls)):
        open(f"{calls}/{os.getpid()}", "w").close()
        return float(np.max(rows) - np.mean(rows))

    for part in (1, workers):
        place = folder / str(len(found))
        place.mkdir()
        found.append((VERBS | MORE_VERBS)[name](spread, part, place))
        assert len(found) == 2 or not set(os.listdir(calls)) - {str(os.getpid())}
    assert found[0] == found[1], f"{name}: {found}"
    assert set(os.listdir(calls)) - {str(os.getpid())}, f"{name} ran in this process alone"


def check_command(name, workers, folder):
    """A command says all but the seconds with workers, and calls the function in theirs."""
    calls, said = folder / "calls", []
    (folder / "f.py").write_text(FUNCTION.format(path=str(calls)))
    (folder / "p.csv").write_text("x\n" + "".join(f"0.{i}\n" for i in range(10, 30)))
    if name == "verify":
        release = f"release p.csv f.py:spread --header {PUBLIC} --epsilon 1 --pairs 60"
        assert ended(*release.split(), "--out", "c.json", cwd=folder).returncode == 0
    for part in ("1", workers):
        calls.write_text("")
        done = ended(*COMMANDS[name].split(), "--workers", part, cwd=folder)
        assert done.returncode in (0, 1), done.stderr
        said.append(re.sub(r"[0-9.]+ s(econds)?\b", "seconds", done.stdout))
    assert said[0] == said[1] != "", said
    assert set(calls.read_text().split()) - {str(os.getpid())}, f"{name} ran in this process alone"
