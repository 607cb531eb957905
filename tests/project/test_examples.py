"""The scripts in examples/ run, and say what is true."""

import importlib.util
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hushed

FOLDER = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(p for p in FOLDER.glob("*.py") if 'if __name__ == "__main__"' in p.read_text())
ON_TENSORS = {"kernel_method", "neural_network"}
SLOW = {"audit_own_mechanism", "demo", "scikit_learn_model"}


def marks(name):
    """Some scripts take long, and some need PyTorch or JAX."""
    if name in ON_TENSORS:
        return [pytest.mark.engines]
    return [pytest.mark.slow] if name in SLOW else []


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow_cases("simulator_population", "median_and_quantile")
@pytest.mark.parametrize(
    "script",
    [pytest.param(p, id=p.stem, marks=marks(p.stem)) for p in SCRIPTS],
)
def test_script_runs_anywhere(script, tmp_path):
    """Each script runs from a folder of its own, without a warning, and prints something."""
    options = [str(tmp_path / "out")] if script.stem == "demo" else []
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(hushed.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    if script.stem == "demo":
        assert {p.name for p in (tmp_path / "out").iterdir()} == {
            "certificate.json",
            "certificate.html",
            "movements.svg",
            "movements.png",
            "visits.csv",
        }


def test_every_file_is_run_somewhere():
    """What is no script is a file that a command in README uses."""
    readme = (FOLDER.parent / "README.md").read_text()
    for path in FOLDER.iterdir():
        if path.is_file() and path not in SCRIPTS:
            assert path.name in readme


class TestScikitLearnModel:
    def test_released_numbers_make_the_model_that_was_fitted(self):
        """The model built from the exact numbers predicts what scikit-learn's own fit predicts."""
        from sklearn.linear_model import LogisticRegression

        example = loaded("scikit_learn_model")
        rows = example.load()[0][:600]
        seen, said = example.features(rows), example.label(rows)
        fitted = LogisticRegression(C=1.0, tol=1e-8).fit(seen, said)
        built = example.model_from(example.coefficients(rows))
        chances = fitted.predict_proba(seen)[:, 1]
        assert chances.max() - chances.min() > 0.1
        np.testing.assert_allclose(built.predict_proba(seen)[:, 1], chances, rtol=1e-12)

    def test_pilot_and_private_share_no_place(self):
        """The split keeps every row once."""
        public, private = loaded("scikit_learn_model").load()
        assert (len(public), len(private)) == (4190, 16000)


class TestMedianAndQuantile:
    @pytest.mark.parametrize("level", [0.5, 0.9])
    def test_no_replacement_moves_a_score_further_than_proved(self, level):
        """All replacements of all rows by all candidates of a small table, one by one."""
        example = loaded("median_and_quantile")
        score = example.scores(level)
        places = np.array([0.0, 50.0, 75.0, 5000.0, 10_000.0])
        rows = np.array([50.0, 60.0, 5000.0, 5000.0])
        largest = 0.0
        for i in range(len(rows)):
            for place in places:
                other = rows.copy()
                other[i] = place
                largest = max(largest, np.abs(score(rows) - score(other)).max())
        assert largest == pytest.approx(1.0, abs=1e-12)

    def test_the_best_candidate_is_the_quantile(self):
        """On the rows 0..1000 times 10, the best candidates are 5000 and 9000."""
        example = loaded("median_and_quantile")
        rows = 10.0 * np.arange(1001)
        for level, wanted in ((0.5, 5000), (0.9, 9000)):
            assert example.CANDIDATES[np.argmax(example.scores(level)(rows))] == wanted


def test_chosen_levels_add_up_by_hand(capsys):
    """Laplace counts of error T at 95 % need log(20)/T each."""
    loaded("choose_epsilon").main()
    total = float(re.search(r"epsilon = ([\d.]+)", capsys.readouterr().out).group(1))
    assert total == pytest.approx(math.log(20) * (1 / 10 + 1 / 10 + 1 / 25), abs=1e-3)


def test_the_audit_tells_the_two_counts_apart(capsys):
    """The forgetful count loses 4 where it claims 1; the careful one is not refuted.

    The seed is fixed; over seeds the second verdict would be wrong with probability 0.05 at most.
    """
    loaded("audit_own_mechanism").main(20_000)
    said = capsys.readouterr().out
    assert "forgetful_count: violated" in said
    assert "careful_count: not refuted" in said
    shown = float(re.search(r"epsilon is at least ([\d.]+)", said).group(1))
    assert 1 < shown <= 4


def test_a_wrong_simulator_costs_gamma_by_the_published_sum(capsys):
    """Rubinstein and Alda 2017, Proposition 8, by hand: gamma + sqrt((n + 1) tau / 2)."""
    example = loaded("simulator_population")
    example.main()
    found = dict(re.findall(r"wrong by (\S+) nats a row: gamma ([\d.]+)", capsys.readouterr().out))
    for tau in (1e-7, 1e-6, 1e-5):
        by_hand = 0.05 + math.sqrt((example.MACHINES + 1) * tau / 2)
        assert float(found[f"{tau:g}"]) == pytest.approx(by_hand, abs=6e-4)


def test_the_simulated_rows_keep_their_range():
    """Machines draw between 0 and 40 kW, and work by day."""
    rows = loaded("simulator_population").machines(np.random.default_rng(1), 500)
    assert rows.shape == (500, 24)
    assert rows.min() >= 0
    assert rows.max() <= 40
    assert np.median(rows[:, 11]) > 3 * np.median(rows[:, 2])


def test_clinic_asks_one_unit():
    """The function of the command line examples gives three costs that rise with age."""
    example = loaded("clinic")
    rows = np.genfromtxt(FOLDER / "clinic-public.csv", delimiter=",", skip_header=1)
    costs = example.expected_costs(rows)
    assert costs.shape == (3,)
    assert costs[0] < costs[1] < costs[2]


@pytest.mark.engines
class TestNeuralNetwork:
    """The network that is trained on many tables at once is the one that is trained on each."""

    def test_training_is_plain_gradient_descent(self):
        """The optimizer of PyTorch, which goes backwards through the network itself."""
        torch = pytest.importorskip("torch", reason="make engines")
        example = loaded("neural_network")
        tables = np.stack([example.simulated(np.random.default_rng(i), 50) for i in range(3)])
        found = example.predictions(tables).cpu().numpy()
        for table, given in zip(torch.tensor(tables, device=example.DEVICE), found, strict=True):
            net = example.start()
            steps = torch.optim.SGD(net.parameters(), lr=0.3)
            for _ in range(example.STEPS):
                steps.zero_grad()
                torch.nn.functional.mse_loss(net(table[:, :1]), table[:, 1:]).backward()
                steps.step()
            with torch.no_grad():
                wanted = net(torch.tensor(example.PUBLIC, device=example.DEVICE))
            np.testing.assert_allclose(given, wanted[:, 0].cpu().numpy(), rtol=1e-9)
        assert np.ptp(found, axis=0).min() > 1e-4


@pytest.mark.engines
class TestKernelMethod:
    """The method for many tables at once is the one of scikit-learn."""

    def test_predictions_are_those_of_kernel_ridge(self):
        pytest.importorskip("jax", reason="make engines")
        from sklearn.kernel_ridge import KernelRidge

        example = loaded("kernel_method")
        tables = np.stack([example.simulated(np.random.default_rng(i), 50) for i in range(3)])
        found = np.asarray(example.predictions(tables))
        model = KernelRidge(
            kernel="rbf", gamma=1 / (2 * example.WIDTH**2), alpha=example.RIDGE * tables.shape[1]
        )
        for table, given in zip(tables, found, strict=True):
            wanted = model.fit(table[:, :1], table[:, 1]).predict(
                np.asarray(example.POINTS)[:, None]
            )
            np.testing.assert_allclose(given, wanted, rtol=1e-9)
        assert np.ptp(found, axis=0).min() > 1e-4
