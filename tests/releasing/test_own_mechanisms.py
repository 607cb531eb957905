"""Mechanisms of the caller's own: released, certified in plain words, verified, or refused."""

import json
import math
import os
from dataclasses import dataclass, replace

import numpy as np
import pytest

import hushed as hs
from hushed import noise
from hushed.errors import BadFunction, ParameterError, WrongNorm, ZeroSensitivity

ROWS = np.linspace(0, 1, 50)
PROVEN = hs.proven_sensitivity(0.02, "l1", argument="mean of 50 values in [0, 1]")


def mean(rows):
    return rows.mean()


@dataclass(frozen=True)
class Staircase:
    """Laplace noise under another name, as somebody outside of the package would write it."""

    sensitivity: hs.Sensitivity
    epsilon: float
    name = "staircase"
    norms = ("l1",)

    @property
    def parameters(self):
        return {"epsilon": self.epsilon}

    @property
    def guarantee(self):
        return self.sensitivity.guarantee(self.epsilon)

    @property
    def loss(self):
        return hs.privacy_loss.laplace(self.epsilon)

    @property
    def scale(self):
        return self.sensitivity.value / self.epsilon

    def accuracy(self, beta=0.05, dims=1):
        return self.scale * math.log(dims / beta)

    def draw(self, value):
        moved = self.sensitivity.value
        return noise.add_laplace(np.asarray(value), sensitivity=moved, epsilon=self.epsilon)


@pytest.fixture(scope="module")
def sampled():
    return hs.sample_sensitivity(mean, hs.populations.Uniform(low=0, high=1), rows=50, gamma=0.1)


def changed(**members):
    """A Staircase class with other members."""
    return type("Staircase", (Staircase,), members)


def stored(cls=Staircase, s=PROVEN):
    """The certificate of a release by a class."""
    return hs.release(mean, ROWS, cls(s, 1.0)).certificate


def ours(s, epsilon):
    return hs.Laplace(s, epsilon=epsilon)


class TestReleased:
    def test_it_draws_and_charges_like_any_other(self, sampled, tmp_path):
        """The answer is near, the guarantee is that of the sensitivity, the ledger keeps it."""
        with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as ledger:
            ledger.open_budget("b", hs.Guarantee(epsilon=2.0, gamma=0.1))
            made = hs.release(mean, ROWS, Staircase(sampled, 1.0), ledger, budget="b", key="k")
            again = hs.release(mean, ROWS, Staircase(sampled, 1.0), ledger, budget="b", key="k")
        assert abs(made.value - 0.5) < 40 * sampled.value
        assert made.certificate.guarantee == sampled.guarantee(1.0)
        assert (again.value, again.entry) == (made.value, made.entry)

    def test_a_class_that_draws_otherwise_asks_another_question(self, sampled, tmp_path):
        """Under the key of one answer no class with the same name gets it by other noise."""
        other = changed(draw=lambda self, value: Staircase.draw(self, value) + 1)
        with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as ledger:
            ledger.open_budget("b", hs.Guarantee(epsilon=2.0, gamma=0.1))
            hs.release(mean, ROWS, Staircase(sampled, 1.0), ledger, budget="b", key="k")
            with pytest.raises(hs.errors.KeyInUse):
                hs.release(mean, ROWS, other(sampled, 1.0), ledger, budget="b", key="k")

    def test_the_certificate_says_on_whose_word_it_rests(self, sampled):
        """First of all, and before the numbers; the scale and error are called its author's."""
        for s in (PROVEN, sampled):
            certificate = stored(s=s)
            words = certificate.explain()
            assert words.startswith("THE PROMISE RESTS ON THE WORD OF AN AUTHOR. staircase is not")
            assert "neither proven nor checked" in words
            assert "hushed.noise" in words
            assert "What its author promises: epsilon = 1" in words
            assert "as its author states" in words
            assert "This holds for every" not in words
            assert certificate.mechanism.stated
            assert certificate.mechanism.grid is None
            assert hs.Certificate.from_json(certificate.to_json()) == certificate

    def test_ours_say_nothing_of_an_author(self):
        """The words of a mechanism of the library are as they were."""
        assert "AUTHOR" not in stored(ours).explain()

    def test_verify_needs_the_class_and_says_what_it_cannot_check(self, sampled):
        """It is rebuilt from the class that is handed in; its promise stays unchecked."""
        for s, function in ((PROVEN, None), (sampled, mean)):
            certificate = stored(s=s)
            with pytest.raises(ParameterError, match="give its class"):
                hs.verify(certificate, function)
            found = hs.verify(certificate, function, mechanism=Staircase)
            assert found.reproduced
            assert "that staircase keeps its guarantee" in found.explain()
            with pytest.raises(ParameterError, match="leave mechanism= out"):
                hs.verify(stored(ours, s), function, mechanism=Staircase)

    def test_verify_with_another_class_is_different(self):
        """A class with another error, or other parameters, does not reproduce."""
        wider = changed(accuracy=lambda self, beta=0.05, dims=1: 9.0)
        assert not hs.verify(stored(), mechanism=wider).reproduced
        with pytest.raises(ParameterError, match="other parameters"):
            hs.verify(stored(), mechanism=lambda s: None)

    def test_nothing_has_to_be_said_of_scale_error_or_loss(self):
        """What is not known is left open, in the words, too."""
        silent = changed(scale=None, loss=None, accuracy=lambda self, beta=0.05, dims=1: None)
        assert "not stated of staircase" in stored(silent).explain()
        assert hs.verify(stored(silent), mechanism=silent).reproduced


def _less(**fields):
    """A guarantee that says more than the sensitivity does."""
    return property(lambda self: replace(self.sensitivity.guarantee(self.epsilon), **fields))


REFUSED = {
    "a name of ours": ({"name": "Laplace"}, "name of"),
    "a name like a sentence": ({"name": "laplace noise. It is proven"}, "name of"),
    "a name that claims us": ({"name": "hushed-laplace"}, "name of"),
    "an unknown norm": ({"norms": ("l7",)}, "norms of"),
    "a gamma of its own": ({"guarantee": _less(gamma=0.0, estimates=())}, "is not that of its"),
    "people of its own": ({"guarantee": _less(protect="everyone")}, "is not that of its"),
    "neighbours of its own": ({"guarantee": _less(neighbours="add-remove")}, "is not that of its"),
    "no loss at all": ({"guarantee": _less(epsilon=0.0)}, "not both 0"),
    "an infinite epsilon": ({"guarantee": _less(epsilon=math.inf)}, "finite"),
    "another guarantee": ({"guarantee": "epsilon 1"}, "must be an hs.Guarantee"),
    "a loss that is too large": (
        {"loss": property(lambda self: hs.privacy_loss.laplace(2 * self.epsilon))},
        "does not keep its guarantee",
    ),
    "a loss that costs too little": (
        {"loss": property(lambda self: hs.privacy_loss.laplace(self.epsilon / 2))},
        "promises more than its guarantee",
    ),
    "half a loss": ({"loss": 1.0}, "privacy profile"),
    "parameters that are no plain values": ({"parameters": {"rows": ROWS}}, "parameter rows"),
    "parameters that are not finite": ({"parameters": {"epsilon": math.nan}}, "parameter epsilon"),
    "parameters of another class": ({"parameters": {"eps": 1.0}}, "cannot be built again"),
    "parameters of another instance": ({"parameters": {"epsilon": 0.5}}, "another"),
    "a negative scale": ({"scale": -1.0}, "scale must be"),
    "an error that is not a number": ({"accuracy": lambda *_: "small"}, "accuracy must be"),
    "another sensitivity": ({"sensitivity": property(lambda self: replace(PROVEN))}, "must keep"),
}


class TestRefused:
    @pytest.mark.parametrize("case", REFUSED)
    def test_what_would_make_a_certificate_say_more_than_it_may(self, case, sampled, tmp_path):
        """Told before anything is charged, or any row is seen."""
        members, words = REFUSED[case]
        mechanism = object.__new__(changed(**members))
        if "sensitivity" not in members:
            object.__setattr__(mechanism, "sensitivity", sampled)
        object.__setattr__(mechanism, "epsilon", 1.0)
        seen = []

        def watched(rows):
            seen.append(rows)
            return rows.mean()

        with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as ledger:
            ledger.open_budget("b", hs.Guarantee(epsilon=2.0, gamma=0.1))
            with pytest.raises(ParameterError, match=words):
                hs.release(watched, ROWS, mechanism, ledger, budget="b")
            assert len(ledger.entries("b")) == 0
        assert not seen

    def test_what_lacks_a_member_is_told_which(self):
        """All that is missing at once."""
        half = type("Half", (), {"sensitivity": PROVEN, "name": "half"})()
        with pytest.raises(ParameterError, match="lacks norms, parameters, guarantee, loss, scale"):
            hs.release(mean, ROWS, half)

    def test_wrong_norm_and_no_movement(self):
        """As for mechanisms of the library."""
        euclid = hs.proven_sensitivity(1.0, "l2", argument="stated")
        with pytest.raises(WrongNorm, match="Staircase needs"):
            hs.release(mean, ROWS, Staircase(euclid, 1.0))
        with pytest.raises(ZeroSensitivity):
            hs.release(
                mean, ROWS, Staircase(hs.proven_sensitivity(0.0, "l1", argument="stated"), 1.0)
            )

    def test_a_subclass_of_ours_is_not_ours(self):
        """Under our name it is refused; with one of its own it is its author's."""

        class Quiet(hs.Laplace):
            __slots__ = ()

            def draw(self, value):
                return value

        with pytest.raises(ParameterError, match="name of Quiet"):
            hs.release(mean, ROWS, Quiet(PROVEN, epsilon=1.0))
        Quiet.name = "quiet"
        assert hs.release(mean, ROWS, Quiet(PROVEN, epsilon=1.0)).certificate.mechanism.stated

    def test_a_class_that_equals_ours_is_not_ours(self):
        """A metaclass may answer any comparison; identity is asked for."""

        class Same(type):
            def __eq__(cls, other):
                return True

            def __hash__(cls):
                return hash(hs.Laplace)

        cls = Same("Staircase", (Staircase,), {})
        assert hs.release(mean, ROWS, cls(PROVEN, 1.0)).certificate.mechanism.stated


class TestWhatItLearnsStaysOut:
    def test_nothing_of_an_answer_gets_into_the_certificate(self):
        """A mechanism that remembers the exact answer certifies what it said before."""

        class Careless:
            name, norms, loss, scale = "careless", ("l1",), None, None

            def __init__(self, sensitivity, epsilon):
                self.sensitivity, self.epsilon, self.last = sensitivity, epsilon, 1.0
                self.parameters = {"epsilon": epsilon}

            guarantee = property(lambda self: self.sensitivity.guarantee(self.epsilon))

            def accuracy(self, beta=0.05, dims=1):
                return self.last

            def draw(self, value):
                self.last = self.scale = value
                self.parameters["seen"] = value
                type(self).scale = value
                return 0.0

        certificate = hs.release(mean, ROWS, Careless(PROVEN, 1.0)).certificate
        assert certificate.mechanism.accuracy == 1.0
        assert certificate.mechanism.scale is None
        assert certificate.mechanism.parameters == {"epsilon": 1.0}

    @pytest.mark.parametrize(
        "draw",
        [
            lambda self, value: (_ for _ in ()).throw(ValueError(f"it was {value}")),
            lambda self, value: (_ for _ in ()).throw(BadFunction(f"it was {value}")),
            lambda self, value: (_ for _ in ()).throw(SystemExit(f"it was {value}")),
            lambda self, value: f"it was {value}",
            lambda self, value: np.array([value, value]),
            lambda self, value: None,
        ],
    )
    def test_what_fails_tells_nothing(self, draw, tmp_path):
        """The charge stays, the failure is stored, and no message holds the answer."""
        with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as ledger:
            ledger.open_budget("b", hs.Guarantee(epsilon=2.0))
            with pytest.raises(BadFunction, match="staircase did not draw") as caught:
                hs.release(mean, ROWS, changed(draw=draw)(PROVEN, 1.0), ledger, budget="b")
            assert len(ledger.entries("b")) == 1
        assert "0.5" not in str(caught.value)
        assert caught.value.__context__ is None

    def test_what_it_prints_is_dropped(self, capfd):
        """Standard output and error stay empty."""

        def loud(self, value):
            print("it was", value)
            os.write(1, b"it was 0.5")
            return 0.0

        def loud_as_well(self, beta, dims):
            print("it may be", beta, dims)
            return 1.0

        hs.release(mean, ROWS, changed(draw=loud, accuracy=loud_as_well)(PROVEN, 1.0))
        assert capfd.readouterr() == ("", "")


class TestForged:
    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("mechanism.stated", False),
            ("mechanism.name", "laplace"),
            ("mechanism.name", "LAPLACE"),
            ("mechanism.name", "two words"),
            ("mechanism.grid", -50),
            ("mechanism.scale", -1.0),
            ("mechanism.accuracy", -1.0),
            ("mechanism.values", 0),
            ("guarantee.epsilon", 0.0),
            ("guarantee.neighbours", "add-remove"),
            ("guarantee.gamma", 0.01),
            ("sensitivity", 0.0),
        ],
    )
    def test_a_changed_certificate_contradicts_itself(self, path, value):
        """What no release writes is refused when it is read."""
        record = json.loads(stored().to_json())
        *parents, last = path.split(".")
        place = record
        for name in parents:
            place = place[name]
        place[last] = value
        with pytest.raises(ParameterError):
            hs.Certificate.from_json(json.dumps(record))

    def test_ours_cannot_pass_for_an_authors(self):
        """Nor the other way round: what hides the scale of ours is refused."""
        record = json.loads(stored(ours).to_json())
        for changes in ({"stated": True}, {"scale": None}, {"accuracy": None}, {"grid": None}):
            forged = json.dumps({**record, "mechanism": {**record["mechanism"], **changes}})
            with pytest.raises(ParameterError, match="contradicts itself"):
                hs.Certificate.from_json(forged)
