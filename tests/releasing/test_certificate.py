"""Certificates come back from JSON exactly, explain themselves, and can be verified or fail."""

import json
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed.errors import ParameterError
from hushed.releasing import Verification, _certifying, _release, _statistic_release, certify

UNIT = hs.populations.Uniform(low=0, high=1)


def mean(rows):
    return rows.mean()


def stacked_mean(tables):
    return tables.mean(axis=1)


def certificate(f=mean, population=UNIT, *, epsilon=0.7, shift=0.0, **settings):
    s = hs.sample_sensitivity(f, population, **({"rows": 8, "workers": 1} | settings))
    return certify(hs.Laplace(s.shifted(shift) if shift else s, epsilon=epsilon), values=1)


def all_mechanisms():
    vector = lambda r: np.array([r.mean(), r.max()])  # noqa: E731
    measured = {
        norm: hs.sample_sensitivity(vector, UNIT, rows=8, norm=norm, workers=1)
        for norm in ("l1", "l2", "sup", "range")
    }
    count = hs.proven_sensitivity(1, "sup", neighbours="add-remove", argument="counts")
    return [
        (vector, hs.Laplace(measured["l1"], epsilon=1 / 3)),
        (vector, hs.Gaussian(measured["l2"], epsilon=1 / 3, delta=1e-7)),
        (vector, hs.Gaussian(measured["l2"], epsilon=1 / 3, delta=1e-7, variant="classic")),
        (vector, hs.Exponential(measured["sup"], epsilon=1 / 3)),
        (vector, hs.Exponential(measured["range"], epsilon=1 / 3)),
        (vector, hs.Exponential(count, epsilon=1 / 3, monotone=True)),
        (vector, hs.Bernstein(measured["sup"], epsilon=1 / 3, lattice=1, order=2)),
        (vector, hs.Laplace(hs.proven_sensitivity(0.1, argument="clipped to [0, 0.1]"), epsilon=2)),
    ]


@pytest.mark.parametrize("number", range(8))
def test_json_is_exact_for_every_mechanism(number):
    """Reading what was written gives an equal certificate, and writing it the same text."""
    _, m = all_mechanisms()[number]
    c = certify(m, values=2)
    text = c.to_json()
    again = hs.Certificate.from_json(text)
    assert again == c
    assert again.to_json() == text
    assert hs.Certificate.from_json(text.encode()) == c
    loaded = json.loads(text)
    assert loaded["schema_version"] == 1
    assert list(loaded) == sorted(loaded)
    assert loaded["guarantee"]["epsilon"] == 1 / 3 or number == 7
    assert c.guarantee == m.guarantee
    assert m.scale < c.mechanism.scale < m.scale * (1 + 1e-11)  # as drawn: with the enlargement


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 6])
def test_every_sampled_mechanism_is_reproduced(number):
    """The sampling, the scale and the guarantee come out bit for bit from JSON alone."""
    f, m = all_mechanisms()[number]
    assert hs.verify(certify(m, values=2).to_json(), f, workers=1).reproduced


GIVEN = [{"gamma": 0.35}, {"pairs": 90}, {"gamma": 0.4, "pairs": 200}, {}]


@pytest.mark.parametrize("given", GIVEN, ids=str)
@pytest.mark.parametrize("protect", ["record", "everyone", "simultaneous"])
@pytest.mark.parametrize("calibration", ["training-conditional", "marginal", "dkw"])
def test_every_way_of_sampling_is_reproduced(calibration, protect, given):
    """Each calibration, protection and choice of gamma and pairs verifies bit for bit."""
    if calibration == "dkw" and protect == "everyone":
        given = {"gamma": 0.9, **({"pairs": 900} if "pairs" in given else {})}
    if calibration == "dkw" and protect == "simultaneous" and not given:
        given = {"gamma": 0.2}
    settings = {"calibration": calibration, "protect": protect, "rows": 3, **given}
    c = certificate(**settings, seed=11)
    result = hs.verify(c.to_json(), mean, workers=1)
    assert result.reproduced, result.explain()
    assert result.recomputed == c.sensitivity == result.recorded
    assert result.explain().startswith("reproduced bit for bit")


@pytest.mark.parametrize(
    ("f", "settings"),
    [
        (stacked_mean, {"batch": True}),
        (stacked_mean, {"batch": True, "symmetric": True, "pairs": 3000}),
        (mean, {"symmetric": True}),
        (mean, {"shift": 1e-4}),
        (mean, {"shift": 1e-5, "protect": "simultaneous"}),
        (mean, {"gamma": 0.18, "pairs": 149, "calibration": "marginal"}),
        (mean, {"seed": np.random.default_rng(5)}),
        (mean, {"seed": 2**130 + 1}),
        (mean, {"pairs": 1000}),
        (mean, {"population": hs.populations.Normal(mean=1 / 3, std=0.1)}),
        (mean, {"population": hs.populations.Exponential(rate=[1.0, 2.0])}),
    ],
    ids=lambda v: "-".join(v) if isinstance(v, dict) else v.__name__,
)
def test_other_settings_are_reproduced(f, settings):
    """Batches, declared symmetry, shifts, long seeds and other populations verify from JSON."""
    result = hs.verify(certificate(f, **settings).to_json(), f, workers=1)
    assert result.reproduced, result.explain()


def test_tables_and_simulators_are_handed_in():
    """They are named but not contained; the right one verifies, another does not."""
    public = np.random.default_rng(0).random(5000)
    cases = [
        (hs.populations.PublicTable(public), hs.populations.PublicTable(public[:4999])),
        (
            hs.populations.Simulator(lambda rng, n: rng.random(n), name="unit"),
            hs.populations.Simulator(lambda rng, n: rng.random(n) * 0.9, name="unit"),
        ),
    ]
    for right, wrong in cases:
        text = certificate(population=right).to_json()
        with pytest.raises(ParameterError, match="population="):
            hs.verify(text, mean)
        assert hs.verify(text, mean, population=right).reproduced
        assert not hs.verify(text, mean, population=wrong).reproduced


def test_a_custom_population_survives_json():
    """Tuples in a description do not make verification fail."""

    class Pair:
        def draw(self, rng, count):
            return rng.random(count)

        def describe(self):
            return {"kind": "pair", "ends": (0, 1)}

    text = certificate(population=Pair()).to_json()
    assert hs.verify(text, mean, population=Pair()).reproduced


@pytest.mark.parametrize(
    ("f", "population"),
    [
        (lambda r: r.mean() * (1 + 1e-15), None),
        (np.median, None),
        (mean, hs.populations.Uniform(low=0, high=1.0000001)),
        (mean, hs.populations.Normal()),
    ],
)
def test_another_function_or_population_is_found_out(f, population):
    """A change in the last digits of the function, or of the range, is no reproduction."""
    result = hs.verify(certificate(pairs=300), f, population=population, workers=1)
    assert not result.reproduced
    assert result.explain().startswith(("not reproduced: ", "not bit for bit"))


def nudged(value):
    """A slightly different value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return float(np.nextafter(value, np.inf))
    return None


@pytest.mark.parametrize(
    "path",
    [
        "sensitivity",
        "guarantee.epsilon",
        "guarantee.gamma",
        "guarantee.delta",
        "guarantee.data_dependent",
        "mechanism.scale",
        "mechanism.accuracy",
        "mechanism.values",
        "mechanism.parameters.epsilon",
        "sampling.pairs",
        "sampling.rank",
        "sampling.gamma",
        "sampling.tail_mass",
        "sampling.sampling_error",
        "sampling.rows",
        "sampling.seed",
        "sampling.symmetric",
        "sampling.population_is_public",
        "sampling.population.high",
        "sampling.movements.0",
        "sampling.movements.111",
        "sampling.requested_gamma",
        "sampling.shift",
    ],
)
def test_any_nudged_number_is_found_out(path):
    """One changed bit or flag anywhere is refused or not reproduced."""
    loaded = json.loads(certificate().to_json())
    *parents, last = path.split(".")
    place = loaded
    for name in parents:
        place = place[name]
    last = int(last) if isinstance(place, list) else last
    place[last] = nudged(place[last])
    found_out = False
    try:
        found_out = not hs.verify(json.dumps(loaded), mean, workers=1).reproduced
    except ParameterError:
        found_out = True
    if path != "sampling.requested_gamma":  # a hair more gamma asked for is the same rank
        assert found_out


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("neighbours", "add-remove"),
        ("guarantee.neighbours", "add-remove"),
        ("guarantee.protect", "everyone"),
        ("guarantee.estimates", []),
        ("argument", "proved by hand"),
        ("norm", "l2"),
        ("sampling.protect", "simultaneous"),
        ("sampling.calibration", "marginal"),
        ("sampling.shape", [2]),
        ("sampling.container", "list"),
        ("sampling.movements", []),
        ("mechanism.name", "bernstein"),
    ],
)
def test_any_changed_word_is_found_out(path, value):
    """Another relation, protection, calibration, norm or argument is not reproduced."""
    loaded = json.loads(certificate().to_json())
    *parents, last = path.split(".")
    place = loaded
    for name in parents:
        place = place[name]
    place[last] = value
    try:
        found_out = not hs.verify(json.dumps(loaded), mean, workers=1).reproduced
    except ParameterError:
        found_out = True
    assert found_out


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "3",
        "nonsense",
        "NaN",
        b"\xff\xfe",
        "[" * 10_000,
        '{"schema_version": 1}',
    ],
)
def test_garbage_is_refused_clearly(text):
    """Anything but a certificate is a ParameterError, never something raw."""
    with pytest.raises(ParameterError, match="not a hushed certificate of version 1"):
        hs.Certificate.from_json(text)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("schema_version", 2, "schema_version"),
        ("schema_version", None, "schema_version"),
        ("surprise", 1, "surprise"),
        ("guarantee.surprise", 1, "guarantee.surprise"),
        ("sampling.surprise", 1, "sampling.surprise"),
        ("mechanism.surprise", 1, "mechanism.surprise"),
        ("guarantee.gamma", 1.5, "gamma must lie in"),
        ("guarantee.epsilon", -1, "epsilon must be 0 or more"),
        ("guarantee.protect", "nobody", "protect"),
        ("mechanism.name", "magic", "mechanism.name"),
        ("sampling.seed", "x", "sampling.seed"),
        ("sensitivity", None, "sensitivity"),
    ],
)
def test_bad_fields_are_named(path, value, words):
    """Unknown keys at any depth, other versions and values out of range are named."""
    loaded = json.loads(certificate().to_json())
    *parents, last = path.split(".")
    place = loaded
    for name in parents:
        place = place[name]
    place[last] = value
    with pytest.raises(ParameterError, match=words):
        hs.Certificate.from_json(json.dumps(loaded))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_are_refused(number):
    """JSON's unofficial NaN and infinities make no certificate."""
    text = certificate().to_json()
    place = text.index('"sensitivity": ') + len('"sensitivity": ')
    broken = text[:place] + number + text[text.index(",", place) :]
    with pytest.raises(ParameterError, match="not a hushed certificate"):
        hs.Certificate.from_json(broken)


def test_a_strange_population_in_a_certificate_is_refused():
    """Descriptions that cannot be rebuilt ask for the population, and never run anything."""
    for told in ({"kind": "uniform"}, {"kind": ["uniform"]}, {"kind": "os.system"}, {}):
        loaded = json.loads(certificate().to_json())
        loaded["sampling"]["population"] = told
        with pytest.raises(ParameterError, match="population="):
            hs.verify(json.dumps(loaded), mean)


def test_a_level_is_not_printed_smaller_than_it_is():
    """Epsilon and the movement that the noise covers are rounded up to six digits."""
    s = hs.proven_sensitivity(1.0000004, argument="proof")
    words = certify(hs.Laplace(s, epsilon=1.0000004), values=1).explain()
    assert "epsilon = 1.00001, delta = 0, gamma = 0." in words
    assert "at most 1.00001 in the l1 norm" in words
    assert "e^epsilon = 2.719" in words  # e is 2.7182...


def test_the_unit_of_a_promise_is_written_down():
    """It is in the text and in the words; there is one version."""
    for unit in ("row", "user"):
        s = hs.proven_sensitivity(1.0, neighbours="add-remove", unit=unit, argument="proof")
        c = certify(hs.Laplace(s, epsilon=1.0), values=1)
        loaded = json.loads(c.to_json())
        assert loaded["schema_version"] == 1
        assert loaded["guarantee"]["unit"] == unit
        again = hs.Certificate.from_json(c.to_json())
        assert again == c
        assert again.guarantee.unit == unit
        assert ("all rows of one user added or removed" in c.explain()) == (unit == "user")


def test_a_proven_sensitivity_is_followed_not_run():
    """Scale, accuracy and guarantee follow from it; its proof and other fields are not checked."""
    m = hs.Laplace(hs.proven_sensitivity(0.1, argument="clipped"), epsilon=2)
    found = hs.verify(certify(m, values=1).to_json())
    assert found.reproduced
    assert found.proven
    assert "its proof is not checked here" in found.explain()
    for field in (
        "when it was made",
        "the versions of packages",
        "what it was charged to",
        "argument",
    ):
        assert field in found.explain()


def test_other_versions_are_told_as_a_possible_reason():
    """A difference names the software that changed since."""
    loaded = json.loads(certificate().to_json())
    loaded["versions"]["numpy"] = "0.1"
    loaded["sampling"]["movements"][0] /= 2
    result = hs.verify(json.dumps(loaded), mean)
    assert isinstance(result, Verification)
    assert any("numpy 0.1 then" in each for each in result.environments)
    assert "numpy 0.1 then" in result.explain()


def test_the_words_say_what_gamma_means_for_the_rows():
    """Per record: gamma n rows on average, the unusual ones, and the remedy."""
    words = certificate(rows=200, gamma=0.05).explain()
    assert "per record" in words
    assert "Among the 200 rows of the table, up to 10 on average" in words
    assert "unusual" in words
    assert "protect='everyone'" in words
    assert "adding or removing a row, are not covered" in words
    assert "epsilon = 0.7" in words
    assert "gamma = 0.05" in words


@pytest.mark.parametrize("protect", ["everyone", "simultaneous"])
def test_the_words_for_all_at_once(protect):
    """Both protections speak of all rows of the table, and not per record."""
    words = certificate(protect=protect, gamma=0.1).explain()
    assert "probability at least 0.9" in words
    assert "at once for all 8 rows" in words
    assert "per record" not in words
    assert "not covered" in words


def test_the_words_name_what_is_assumed():
    """Population, seed, determinism, position or symmetry, and the shift."""
    plain = certificate().explain()
    for words in (
        "the uniform population (low 0.0, high 1.0)",
        "seed",
        "deterministic",
        "random position",
    ):
        assert words in plain
    assert "as declared" in certificate(symmetric=True).explain()
    assert "KL(P || Q) of at most 0.0001 per row" in certificate(shift=1e-4).explain()
    proven = certify(
        hs.Laplace(hs.proven_sensitivity(0.1, argument="clipped"), epsilon=2), values=1
    )
    assert "because: clipped" in proven.explain()
    assert "stands as it was given: nothing was sampled to check it" in proven.explain()
    assert "every such pair" in proven.explain()


def test_the_accuracy_in_the_words_is_that_of_all_values():
    """Two released numbers are together within the accuracy for two."""
    _, m = all_mechanisms()[0]
    c = certify(m, values=2)
    assert c.mechanism.accuracy == m.accuracy(0.05, 2)
    assert "all 2 released numbers are within 5.076" in c.explain()


def test_movements_are_thinned_but_keep_the_ends():
    """Of 5,000 movements 201 are recorded, the smallest and the largest among them."""
    s = hs.sample_sensitivity(mean, UNIT, rows=8, pairs=5000, workers=1)
    c = certify(hs.Laplace(s, epsilon=1), values=1)
    assert len(c.sampling.movements) == 201
    assert c.sampling.movements[0] == s.draws[0]
    assert c.sampling.movements[-1] == s.draws[-1]


def test_single_precision_and_numpy_parameters_are_written_as_plain_numbers():
    """Parameters from arrays survive the JSON round trip."""
    s = hs.sample_sensitivity(mean, UNIT, rows=np.int64(8), pairs=np.int64(200), workers=1)
    for m in (hs.Laplace(s, epsilon=np.float32(0.5)), hs.Laplace(s, epsilon=np.int64(1))):
        c = certify(m, values=1)
        assert hs.Certificate.from_json(c.to_json()) == c


def test_only_own_sensitivities_are_certified():
    """A look-alike with a norm and a value carries no argument."""

    class Movement:
        value, norm, neighbours = 1.0, "l1", "replace-one"

        def guarantee(self, epsilon, delta=0.0):
            return hs.Guarantee(epsilon=epsilon)

    with pytest.raises(ParameterError, match="certified"):
        certify(hs.Laplace(Movement(), epsilon=1.0), values=1)


@pytest.mark.parametrize("route", ["sampled", "statistic", "bound"])
def test_a_certificate_does_not_tell_how_long_the_private_rows_took(monkeypatch, route):
    """Beside the time of a charge, a time after the rows would tell it."""
    hours = [1]

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 1, 1, hours[-1], tzinfo=tz)

    def takes_an_hour(ask):
        def asked(*given, **named):
            hours.append(2)
            return ask(*given, **named)

        return asked

    for module in (_certifying, _release):
        monkeypatch.setattr(module, "datetime", Clock)
    for module, name in ((_release, "answer_private_rows"), (_statistic_release, "_draw")):
        monkeypatch.setattr(module, name, takes_an_hour(getattr(module, name)))
    rows = np.full(8, 0.5)
    if route == "sampled":
        s = hs.sample_sensitivity(mean, UNIT, rows=8, workers=1)
        released = hs.release(mean, rows, hs.Laplace(s, epsilon=0.7))
    elif route == "statistic":
        median = hs.statistics.median(rows=8, low=0, high=1)
        released = hs.release(median, rows, hs.InverseSensitivity(median, epsilon=0.7))
    else:
        released = hs.find_bound(rows, epsilon=0.7)
    assert hours == [1, 2]  # somebody asked the private rows, once
    assert released.certificate.created == datetime(2026, 1, 1, 1, tzinfo=UTC).isoformat()


def test_a_public_table_may_be_called_otherwise_when_it_is_verified():
    """By its name alone it is no other one; and what is no population is told so."""
    rows = np.random.default_rng(1).random(400)
    survey = hs.populations.PublicTable(rows, name="survey")
    settings = {"rows": 10, "gamma": 0.3, "seed": 1, "workers": 1}
    sampled = hs.sample_sensitivity(np.mean, survey, **settings)
    known = hs.release(np.mean, np.full(10, 0.5), hs.Laplace(sampled, epsilon=1.0)).certificate
    for table, same in ((rows, True), (rows[::-1], False)):
        renamed = hs.populations.PublicTable(table, name="survey2026.csv")
        assert hs.verify(known, np.mean, population=renamed, workers=1).reproduced is same
    for wrong in (rows, pd.DataFrame({"x": rows})):
        with pytest.raises(ParameterError, match=r"so by PublicTable\(rows\)\. Got"):
            hs.verify(known, np.mean, population=wrong)
