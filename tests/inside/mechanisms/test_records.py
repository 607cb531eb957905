"""One record of each noise law: a sensitivity, a chain and a query tell the same of it.

And one place where a mechanism is entered: what is not named anywhere else is known everywhere.
"""

import json
import math
import subprocess
import sys
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar

import mpmath
import numpy as np
import pytest

import hushed as hs
from hushed import noise
from hushed.mechanisms._calibrated import Calibrated
from hushed.mechanisms._exponential import ExponentialChoice
from hushed.mechanisms._gaussian import MOST_NUMBERS, GaussianNoise
from hushed.mechanisms._laplace import LaplaceNoise
from hushed.mechanisms._registry import LAWS, MECHANISMS
from hushed.spaces import L1, L2, PRIVACY_PROFILE, PURE, SUP, ZCDP, Numbers, Space
from hushed.tables._plan import NoiseName

SIZES = [1e-300, 1e-3, 1 / 3, 7.0, 1e12]
LEVELS = [1e-6, 0.1, 1.0, 3.7]


def bound(value, norm):
    return hs.proven_sensitivity(value, norm, argument="stated")


class TestOneLaw:
    @pytest.mark.parametrize("value", SIZES)
    @pytest.mark.parametrize("epsilon", LEVELS)
    @pytest.mark.parametrize("dims", [1, 50])
    def test_what_a_mechanism_promises_is_what_its_law_loses(self, value, epsilon, dims):
        """At the bound that it was made for the law loses at most epsilon, rounding counted."""
        made = [hs.Laplace(bound(value, "l1"), epsilon=epsilon)]
        made.append(hs.Exponential(bound(value, "range"), epsilon=epsilon))
        for mechanism in made:
            lost = mechanism.noise.loss(value, dims)[PURE]
            assert 0.999 * epsilon < lost <= epsilon
        gaussian = hs.Gaussian(bound(value, "l2"), epsilon=epsilon, delta=1e-6)
        known = gaussian.noise.loss(value, dims)
        assert known[PRIVACY_PROFILE].delta(epsilon) <= 1e-6
        assert known[ZCDP] == pytest.approx((value / gaussian.scale) ** 2 / 2, rel=1e-9)

    @pytest.mark.parametrize("scale", SIZES)
    @pytest.mark.parametrize("distance", [0.0, 1e-3, 1.0, 40.0, math.inf])
    def test_a_chain_asks_the_law_of_its_scale(self, scale, distance):
        """The map of a chain is the loss of the record, for the same distance."""
        for law, metric, reach, measure in (
            (LaplaceNoise, L1, 1, PURE),
            (GaussianNoise, L2, 1, ZCDP),
            (ExponentialChoice, SUP, 2, PURE),
        ):
            space = Space(domain=Numbers(type="float", dims=5), metric=metric)
            chain = space >> hs.measurements.noisy(law.name, scale)
            moved = distance * scale
            assert chain.map(moved) == law.of_scale(scale).loss(reach * moved, 5)[measure]
            assert chain.measure == measure

    def test_on_whole_numbers_nothing_is_added_for_rounding(self):
        """The same law on a grid and on whole numbers: only the grid costs anything."""
        exact = LaplaceNoise.of_steps(Fraction(3), Fraction(1, 8))
        assert exact.scale == 24
        assert exact.loss(3.0)[PURE] == 1 / 8
        rounded = LaplaceNoise.of_scale(24.0).loss(3.0)[PURE]
        assert 1 / 8 < rounded < 1 / 8 * (1 + 1e-12)

    @pytest.mark.parametrize("beta", [0.3, 0.05, 1e-6])
    @pytest.mark.parametrize("dims", [1, 7])
    def test_the_error_of_a_law_is_the_quantile_of_its_draws(self, beta, dims):
        """The chance beyond the error, of the law that is drawn, in 40 digits."""
        for law in (LaplaceNoise(2.0, 0.5), GaussianNoise(2.0, 5.0)):
            with mpmath.workdps(40):
                allowed = 1 - (1 - mpmath.mpf(beta)) ** (mpmath.mpf(1) / dims)
                far = mpmath.mpf(law.error(beta, dims)) / law.drawn(dims)[0]
                gaussian = law.name == "gaussian"
                tail = mpmath.erfc(far / mpmath.sqrt(2)) if gaussian else mpmath.exp(-far)
                assert 0.9999 * allowed < tail <= allowed

    def test_the_error_of_a_choice_counts_the_grid(self):
        """The worst regret: one best candidate, the others at the bound; by its exact chances."""
        choice, others = ExponentialChoice(2.0, 0.5), 99
        error, scale = choice.error(0.05, others + 1), choice.drawn()[0]
        worse = others * mpmath.exp(-mpmath.mpf(error) / scale)
        assert worse / (1 + worse) <= 0.05

    def test_rounding_many_numbers_is_counted_in_rho(self):
        """Answers that move by a step are apart by sqrt(dims) steps more when they are rounded."""
        law, dims = GaussianNoise.of_scale(1.0), 10_000
        scale, exponent = law.drawn(dims)
        step = math.ldexp(1.0, exponent)
        apart = (1 + math.sqrt(dims)) * step / scale
        assert law.loss(step, dims)[ZCDP] >= apart * apart / 2 * (1 - 1e-12)

    def test_more_numbers_than_the_lemma_covers_are_refused_by_the_law(self):
        """So that no door can forget it."""
        with pytest.raises(hs.errors.ParameterError, match="at most 1048576 numbers"):
            GaussianNoise.of_scale(1.0).loss(1.0, MOST_NUMBERS + 1)

    def test_every_noise_of_queries_is_a_law(self):
        """The names that queries take are names in the registry."""
        assert set(NoiseName.__args__) <= set(LAWS)


@dataclass(frozen=True, slots=True)
class ToyNoise(LaplaceNoise):
    """A law of another name."""

    name: ClassVar[str] = "toy"


@dataclass(frozen=True, slots=True)
class Toy(Calibrated):
    """A mechanism with a parameter of its own."""

    law: ClassVar = ToyNoise
    name: ClassVar[str] = "toy"
    norms: ClassVar = ("l1",)

    sensitivity: hs.Sensitivity
    _: KW_ONLY
    epsilon: float
    factor: float = 1.0

    @property
    def noise(self):
        return ToyNoise(self.sensitivity.value * self.factor, self.epsilon)

    @property
    def scale(self):
        return self.sensitivity.value * self.factor / self.epsilon

    @property
    def loss(self):
        return hs.privacy_loss.laplace(self.epsilon)

    @classmethod
    def for_accuracy(cls, sensitivity, *, error, beta, dims):
        same = hs.Laplace.for_accuracy(sensitivity, error=error, beta=beta, dims=dims)
        return cls(sensitivity, epsilon=same.epsilon)


def mean(rows):
    return rows.mean()


class TestOnePlace:
    @pytest.fixture
    def entered(self, monkeypatch):
        """Enter a mechanism in the registry, and nowhere else."""
        monkeypatch.setitem(MECHANISMS, "toy", Toy)
        monkeypatch.setitem(LAWS, "toy", ToyNoise)

    def test_it_is_released_certified_and_verified(self, entered):
        """As one of the library: on a grid, with nothing resting on an author's word."""
        s = hs.sample_sensitivity(mean, hs.populations.Uniform(low=0, high=1), rows=50, gamma=0.1)
        made = hs.release(mean, np.linspace(0, 1, 50), Toy(s, epsilon=1.0, factor=2.0))
        text = made.certificate.to_json()
        record = json.loads(text)["mechanism"]
        assert (record["name"], record["stated"]) == ("toy", False)
        assert record["parameters"] == {"epsilon": 1.0, "factor": 2.0}
        assert record["scale"] == pytest.approx(2 * s.value)
        assert "toy noise of scale" in made.certificate.explain()
        assert hs.verify(text, mean).reproduced
        with pytest.raises(hs.errors.ParameterError, match="contradicts itself"):
            hs.Certificate.from_json(text.replace('"factor": 2.0', '"factor": 1.0'))

    def test_without_its_entry_it_is_only_its_authors(self):
        """The same object, not entered: nothing but the word of its author."""
        certificate = hs.release(mean, np.ones(5), Toy(bound(0.2, "l1"), epsilon=1.0)).certificate
        assert certificate.mechanism.stated

    def test_a_wrong_norm_names_it(self, entered):
        """Among the mechanisms that take the norm that was measured."""
        with pytest.raises(hs.errors.WrongNorm, match="or use Laplace or Toy"):
            hs.Gaussian(bound(1.0, "l1"), epsilon=1.0, delta=1e-6)

    def test_it_ends_a_chain(self, entered):
        """By its name, with the loss of its law."""
        space = Space(domain=Numbers(type="float", dims=3), metric=L1)
        one, other = (space >> hs.measurements.noisy(name, 2.0) for name in ("toy", "laplace"))
        assert one.map(5.0) == other.map(5.0)
        assert str(one).startswith("toy(2)")
        assert one(np.zeros(3)).shape == (3,)

    @pytest.mark.slow
    def test_the_command_line_offers_it(self, tmp_path):
        """By --mechanism, with --epsilon or --error; nothing in the commands names it."""
        (tmp_path / "f.py").write_text("def mean(rows):\n    return rows.mean()\n")
        np.savetxt(tmp_path / "rows.csv", np.linspace(0, 1, 50))
        code = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from test_records import Toy, ToyNoise, LAWS, MECHANISMS\n"
            "MECHANISMS['toy'], LAWS['toy'] = Toy, ToyNoise\n"
            "from hushed.cli import app\n"
            "for target in ('--epsilon', '--error'):\n"
            "    app([*sys.argv[2:], target, '1'], standalone_mode=False)\n"
        )
        arguments = ["release", "rows.csv", "f.py:mean", "--population", "uniform:0,1", "--header"]
        arguments += ["--mechanism", "toy", "--gamma", "0.1", "--json"]
        here = __file__.rpartition("/")[0]
        done = subprocess.run(
            [sys.executable, "-c", code, here, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        told = [json.loads(line)["certificate"] for line in done.stdout.splitlines()]
        assert [each["mechanism"]["name"] for each in told] == ["toy", "toy"]


def test_the_draws_of_a_law_are_those_of_its_integer_noise(monkeypatch):
    """One grid, one draw: on doubles and on whole numbers the same steps are added."""
    monkeypatch.setattr(noise, "discrete_gaussian", lambda scale, size: np.full(size, 3))
    law = GaussianNoise(1.0, 4.0, whole=True)
    step = math.ldexp(1.0, law.drawn(2)[1])
    assert law.add_to([5, -7]) == [5 + 3 * step, -7 + 3 * step]
    assert law.add_to([]) == []
