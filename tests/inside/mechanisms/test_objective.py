"""Objective perturbation: what it loses, counted; how near the minimum is; what is covered.

Every oracle is computed from the objective itself, by its gradient alone: neither second
derivatives nor the bound of the code is used.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed.errors import ParameterError
from hushed.mechanisms import _objective_solver as solver
from hushed.mechanisms._objective_draw import MOST_ROWS, ObjectiveDraw
from hushed.mechanisms._objective_loss import LOSSES, compute_jacobian_loss
from hushed.mechanisms._objective_solver import Problem, compute_error, minimise


def made(family="logistic", *, epsilon=1.0, neighbours="replace-one", **options):
    """Make a mechanism of the sensitivity that it asks for."""
    facts = {"features": 1, "rows": 3, "penalty": 1e-3, "clip": 1.0, "intercept": False}
    facts |= {"epsilon": epsilon, "family": family} | options
    if neighbours == "add-remove":
        facts["rows"] = MOST_ROWS
    loose = hs.proven_sensitivity(1e300, neighbours=neighbours, argument="any")
    bound = ObjectiveDraw(loose, **facts).gradient_bound(neighbours)
    s = hs.proven_sensitivity(bound, neighbours=neighbours, argument="slopes")
    return ObjectiveDraw(s, **facts)


def pull(family, rows, at, cutoff):
    """Sum of the slopes of all rows (x, y) at one coefficient: the textbook formulas."""
    total = 0.0
    for x, y in rows:
        if family == "logistic":
            total += -y * x / (1 + math.exp(y * x * at))
        else:
            total += x * min(max(x * at - y, -cutoff), cutoff)
    return total


def chance_below(family, rows, at, scale, penalty, cutoff):
    """Chance that the minimum is at most a number.

    The minimum falls as the noise rises: it is at most ``at`` where the noise is at least that for
    which the gradient vanishes there.
    """
    noise = -pull(family, rows, at, cutoff) - penalty * at
    return 1 - 0.5 * math.exp(noise / scale) if noise < 0 else 0.5 * math.exp(-noise / scale)


def gradients(family, table, places, penalty, cutoff=1.0):
    """Noise at which the gradient vanishes, at many places in the plane."""
    total = -penalty * places
    for x, y in table:
        margin = places @ x
        if family == "logistic":
            slope = -y / (1 + np.exp(y * margin))
        else:
            slope = np.clip(margin - y, -cutoff, cutoff)
        total = total - slope[:, None] * np.array(x)
    return total


def log_masses(family, table, scale, penalty):
    """Logarithms of the chances of tiny squares of minima: noise there, times its area.

    The area of the noise that puts the minimum into a square is that of its four moved corners.
    """
    side = np.linspace(-9, 9, 61) + 0.0123
    places = np.array(list(itertools.product(side, side)))
    step = 1e-5
    corners = [
        gradients(family, table, places + step * np.array(corner), penalty)
        for corner in ((0, 0), (1, 0), (1, 1), (0, 1))
    ]
    sides = [each - corners[0] for each in corners]
    turned = [*sides[1:], sides[0]]
    area = sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0] for a, b in zip(sides, turned, strict=True))
    return np.log(np.abs(area)) - np.abs(corners[0]).sum(axis=1) / scale


def worst_loss(family, scale, penalty, *, change):
    """Largest log ratio of such chances, over tables of one row of l1 length 1, or of none."""
    rows = [
        (np.array(x), y)
        for x in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.5, -0.5), (0.1, 0.0))
        for y in (-1.0, 1.0)
    ]
    masses = [log_masses(family, [row], scale, penalty) for row in rows]
    if change == "add-remove":
        bare = log_masses(family, [], scale, penalty)
        return max(np.abs(bare - other).max() for other in masses)
    return max(np.abs(a - b).max() for a, b in itertools.combinations(masses, 2))


class TestWhatItLoses:
    @pytest.mark.parametrize("change", ["replace-one", "add-remove"])
    @pytest.mark.parametrize("family", ["logistic", "huber"])
    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    def test_the_exact_minimum_loses_no_more_than_its_share_of_epsilon(
        self, family, change, epsilon
    ):
        """Chances of tiny squares of minima, from the law of the noise and moved corners."""
        m = made(family, epsilon=epsilon, neighbours=change, features=2)
        scale = m.noise.drawn(2)[0]
        lost = worst_loss(family, scale, m.used_penalty, change=change)
        assert lost <= m.epsilon - m.gap_epsilon + 1e-4
        # Slopes are largest where a logistic loss is straight: there the volume costs nothing.
        assert lost > m.noise_epsilon * (1.3 if family == "huber" else 0.99)

    @pytest.mark.parametrize("family", ["logistic", "huber"])
    def test_without_the_volume_it_would_lose_more_than_epsilon(self, family):
        """A twin that spends all of epsilon on the noise, with the penalty that was asked for."""
        m = made(family, epsilon=1.0, features=2)
        assert m.used_penalty > m.penalty
        twin = m.sensitivity.value / m.epsilon
        assert worst_loss(family, twin, m.penalty, change="replace-one") > 3

    @pytest.mark.parametrize("family", ["logistic", "huber"])
    def test_the_constant_of_added_rows_would_not_do_for_replaced_ones(self, family):
        """A replaced row moves the gradient twice as far as an added one."""
        m = made(family, epsilon=4.0, neighbours="add-remove", features=2, penalty=5.0)
        scale = m.noise.drawn(2)[0]
        assert worst_loss(family, scale, m.used_penalty, change="replace-one") > 1.3 * m.epsilon

    @pytest.mark.slow_cases("5", "2")
    @pytest.mark.parametrize("classes", [2, 3, 5])
    def test_a_row_changes_the_volume_by_no_more_than_is_paid(self, classes):
        """Determinants of random sums of second derivatives, taken by differences of slopes."""
        rng = np.random.default_rng(classes)
        loss, penalty, features = LOSSES["softmax"](classes, 1.0), 0.3, 3
        worst = 0.0
        for _ in range(150):
            theta = rng.normal(size=(features, classes)) * rng.choice([0.0, 0.1, 3.0])
            x = rng.normal(size=(1, features))
            x /= np.linalg.norm(x)
            others = rng.normal(size=(rng.integers(0, 3), features))
            hessian = penalty * np.eye(theta.size) + _second(loss, others, theta)
            more = hessian + _second(loss, x, theta)
            worst = max(worst, np.linalg.slogdet(more)[1] - np.linalg.slogdet(hessian)[1])
        paid = compute_jacobian_loss(loss, 1.0, penalty)
        assert 0.9 * paid < worst <= paid + 1e-4

    @pytest.mark.parametrize("family", ["logistic", "softmax", "huber"])
    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
    def test_the_parts_of_epsilon_add_up_to_less_than_it(self, family, epsilon):
        """Noise in the objective, volume and noise on the answer; nearly all of it is used."""
        many = {"classes": 4} if family == "softmax" else {}
        m = made(family, epsilon=epsilon, features=7, clip=2.0, intercept=True, **many)
        volume = compute_jacobian_loss(m.row_loss, m.squared_length, m.used_penalty)
        total = m.noise_epsilon + volume + m.gap_epsilon
        assert 0.999999 * epsilon < total < epsilon


def _second(loss, rows, theta, step=1e-5):
    """Second derivatives of a sum of losses by central differences of its gradient."""

    def gradient(at):
        return (rows.T @ loss.slopes(rows @ at, np.zeros(len(rows)))).ravel()

    columns = []
    for i in range(theta.size):
        moved = np.zeros(theta.size)
        moved[i] = step
        moved = moved.reshape(theta.shape)
        columns.append((gradient(theta + moved) - gradient(theta - moved)) / (2 * step))
    return np.array(columns).T


class TestHowNear:
    @pytest.mark.parametrize("size", [1.0, 1e4, 1e9, 1e100])
    def test_the_minimum_of_ridge_is_met_to_the_stated_distance(self, size):
        """Against the normal equations in 60 digits, both moved into the ball; all that size."""
        rng = np.random.default_rng(3)
        m = made("huber", rows=40, features=3, penalty=0.5, clip=1.5, cutoff=1e12, epsilon=5.0)
        x, y = rng.uniform(-0.5, 0.5, (40, 3)), rng.uniform(-1, 1, 40)
        b = size * rng.normal(size=(3, 1))
        if size > 1e10:  # beyond the cutoff only the penalty holds it
            x[:] = 0.0
        problem = Problem(
            features=x,
            labels=y,
            loss=m.row_loss,
            penalty=m.used_penalty,
            perturbation=b,
            length=math.sqrt(m.squared_length),
            half_step=0.0,
        )
        found = minimise(problem, reach=m.reach, within=m.gap)
        with mpmath.workdps(60):
            left = mpmath.matrix(x.T.tolist()) * mpmath.matrix(x.tolist())
            left += mpmath.mpf(m.used_penalty) * mpmath.eye(3)
            right = mpmath.matrix(x.T.tolist()) * mpmath.matrix(y.tolist()) - mpmath.matrix(b)
            exact = mpmath.lu_solve(left, right)
            exact *= min(1, m.reach / mpmath.norm(exact))
            apart = float(mpmath.norm(exact - mpmath.matrix(found)))
        assert apart <= m.gap

    def test_the_minimum_of_a_logistic_loss_is_met_to_the_stated_distance(self):
        """Against the root of the gradient in 40 digits."""
        rng = np.random.default_rng(4)
        m = made(rows=30, penalty=0.1, epsilon=4.0)
        x, y = rng.uniform(-1, 1, (30, 1)), rng.choice([-1.0, 1.0], 30)
        problem = Problem(
            features=x,
            labels=y,
            loss=m.row_loss,
            penalty=m.used_penalty,
            perturbation=np.array([[1.7]]),
            length=1.0,
            half_step=0.0,
        )
        found = float(minimise(problem, reach=m.reach, within=m.gap)[0, 0])
        with mpmath.workdps(40):
            slope = lambda t: (  # noqa: E731
                mpmath.fsum(
                    -v * u / (1 + mpmath.exp(v * u * t)) for u, v in zip(x[:, 0], y, strict=True)
                )
                + mpmath.mpf(m.used_penalty) * t
                + mpmath.mpf(1.7)
            )
            exact = mpmath.findroot(slope, found)
        assert abs(float(exact - found)) <= m.gap
        assert m.gap < 1e-9

    @pytest.mark.slow_cases("softmax", "logistic")
    @pytest.mark.parametrize("family", ["logistic", "softmax", "huber"])
    def test_a_gradient_in_doubles_is_within_its_bound(self, family):
        """Against sums of products in 50 digits, at large and small coefficients."""
        rng = np.random.default_rng(5)
        k = 3 if family == "softmax" else 1
        loss = LOSSES[family](3, 1.0)
        x = rng.uniform(-1, 1, (700, 4)) / 2
        y = rng.integers(0, 2, 700).astype(float) * 2 - 1 if k == 1 else rng.integers(0, 3, 700)
        for size in (1.0, 50.0):
            theta = rng.normal(size=(4, k))
            theta *= size / np.linalg.norm(theta)
            problem = Problem(
                features=x,
                labels=np.asarray(y, float),
                loss=loss,
                penalty=0.7,
                perturbation=np.ones((4, k)),
                length=1.0,
                half_step=0.0,
            )
            got = solver._gradient(problem, theta)
            exact = _exact_gradient(family, x, y, theta)
            off = float(
                np.linalg.norm(
                    [
                        [float(mpmath.mpf(g) - e) for g, e in zip(a, b, strict=True)]
                        for a, b in zip(got, exact, strict=True)
                    ]
                )
            )
            bound = compute_error(
                loss,
                rows=700,
                shape=(4, k),
                length=1.0,
                penalty=0.7,
                reach=size,
                noise=math.sqrt(4 * k),
                half_step=0.0,
            )
            assert off <= bound < 1e-7


def _exact_gradient(family, x, y, theta):
    with mpmath.workdps(50):
        total = [[mpmath.mpf(1) + mpmath.mpf(0.7) * mpmath.mpf(t) for t in row] for row in theta]
        for row, label in zip(x.tolist(), np.asarray(y).tolist(), strict=True):
            margins = [
                mpmath.fsum(mpmath.mpf(a) * mpmath.mpf(b) for a, b in zip(row, column, strict=True))
                for column in theta.T.tolist()
            ]
            if family == "softmax":
                weights = [mpmath.exp(t) for t in margins]
                slopes = [w / mpmath.fsum(weights) - (i == label) for i, w in enumerate(weights)]
            elif family == "logistic":
                slopes = [-label / (1 + mpmath.exp(label * margins[0]))]
            else:
                slopes = [min(max(margins[0] - label, -1), 1)]
            for j, a in enumerate(row):
                for i, slope in enumerate(slopes):
                    total[j][i] += mpmath.mpf(a) * slope
        return total


class TestWhatIsDrawn:
    @pytest.mark.slow
    def test_coefficients_have_the_law_that_the_proof_is_about(self):
        """600 draws against the distribution function; a right one fails once in 10^6."""
        rows = [(1.0, 1.0), (-0.5, 1.0), (0.25, -1.0)]
        m = made(epsilon=2.0)
        drawn = [float(m.draw(np.array(rows))[0]) for _ in range(600)]
        scale, _ = m.noise.drawn(1)
        law = np.vectorize(
            lambda at: chance_below("logistic", rows, at, scale, m.used_penalty, 1.0)
        )
        assert stats.kstest(drawn, law).pvalue > 1e-6

    def test_rows_beyond_the_public_length_are_shortened_by_themselves(self):
        """However large a private row is, it moves no gradient by more than the bound."""
        m = made(features=3, clip=1.5, intercept=True)
        wild = np.array([[1e9, -1e9, 3.0, 7.0], [0.2, 0.1, -0.3, 1.0], [0.0, 0.0, 0.0, -4.0]])
        kept = m._clip(wild)
        assert np.abs(kept[:, :3]).sum(axis=1).max() <= 1.5
        assert np.array_equal(kept[1], wild[1])
        assert kept[:, 3].tolist() == [1.0, 1.0, 0.0]

    def test_a_table_of_another_shape_is_refused(self):
        """Where rows are counted in public, a table of more or fewer is none of that promise."""
        m = made()
        for wrong in (np.zeros((2, 2)), np.zeros((4, 2)), np.zeros((3, 3)), np.zeros(2)):
            with pytest.raises(ParameterError):
                m.draw(wrong)


class TestItsCertificate:
    def release(self):
        m = made(features=2, clip=1.0, intercept=True, epsilon=3.0)
        rows = np.array([[0.1, 0.2, 1.0, 1.0], [0.3, -0.2, 1.0, -1.0], [0.0, 0.5, 1.0, 1.0]])
        return hs.release(_same, rows, m)

    def test_a_certificate_is_verified_from_its_parameters(self):
        """Whoever reads it follows scale, grid, accuracy and promise again."""
        certificate = self.release().certificate
        assert hs.verify(certificate.to_json()).reproduced
        assert certificate.guarantee == hs.Guarantee(epsilon=3.0)
        assert "in every table; no population is assumed" in certificate.explain()

    @pytest.mark.parametrize(
        ("known", "forged"),
        [
            ('"epsilon": 3.0', '"epsilon": 1.0'),
            ('"clip": 1.0', '"clip": 5.0'),
            ('"features": 2', '"features": 3'),
        ],
    )
    def test_a_forged_certificate_contradicts_itself(self, known, forged):
        """A smaller epsilon, a longer row and more features each need another noise."""
        text = self.release().certificate.to_json()
        assert known in text
        with pytest.raises(ParameterError, match=r"contradicts itself"):
            hs.verify(text.replace(known, forged, 1))


def _same(rows):
    return rows
