"""Certificates state the noise drawn, agree with themselves, and bound what verify runs."""

import copy
import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed import noise
from hushed.errors import ParameterError
from hushed.releasing import certify
from hushed.releasing._verification_record import _WORDS
from hushed.sensitivity import choose_rank

UNIT = hs.populations.Uniform(low=0, high=1)
PROVEN = {n: hs.proven_sensitivity(1.0, n, argument="test") for n in ("l1", "l2", "sup", "range")}


def mean(rows):
    return rows.mean()


def proven_certificates():
    """One per mechanism, with a little epsilon and many values, where the grid costs most."""
    return {
        "laplace": (hs.Laplace(PROVEN["l1"], epsilon=1e-10), 10**6),
        "gaussian": (hs.Gaussian(PROVEN["l2"], epsilon=1e-4, delta=1e-6), 10**6),
        "exponential": (hs.Exponential(PROVEN["sup"], epsilon=1e-12), 7),
        "range": (hs.Exponential(PROVEN["range"], epsilon=0.3), 7),
        "bernstein": (hs.Bernstein(PROVEN["sup"], epsilon=1e-10, lattice=9, dims=3), 1000),
    }


@pytest.mark.parametrize("name", list(proven_certificates()))
def test_the_scale_on_it_is_the_one_drawn(name):
    """As measured on many draws, or as the exact odds of a choice are; never the nominal one."""
    mechanism, values = proven_certificates()[name]
    record = certify(mechanism, values=values).mechanism
    assert record.scale >= mechanism.scale
    if isinstance(mechanism, hs.Exponential):
        lost = noise.selection_loss(width=1.0, epsilon=mechanism.epsilon, moved=1.0)
        doubled = 2 if mechanism.sensitivity.norm == "sup" else 1
        step = Fraction(2) ** record.grid
        rate = Fraction(mechanism.epsilon) / Fraction(record.scale) * doubled
        assert record.scale * mechanism.epsilon == pytest.approx(doubled, rel=1e-9)
        assert lost > 0
        assert step > 0
        assert rate > 0
        return
    size = 10**5
    if isinstance(mechanism, hs.Bernstein):
        drawn = noise.add_laplace(
            np.zeros(1000), sensitivity=mechanism.total, epsilon=mechanism.epsilon
        )
    else:
        drawn = mechanism.draw(np.zeros(values))[:size]
    power = 2 if name == "gaussian" else 1
    found = float(np.mean(np.abs(drawn) ** power) ** (1 / power))
    # The mean of m such numbers is off by 4.5 of its deviations with probability below 1e-5.
    assert found == pytest.approx(record.scale, rel=4.5 / math.sqrt(drawn.size))
    steps = np.ldexp(drawn[:100], -record.grid)
    assert np.array_equal(steps, np.rint(steps))
    finer = np.ldexp(drawn[:100], -record.grid - 1)
    assert not np.array_equal(finer, np.rint(finer))


def sampled():
    """A certificate with a sampled sensitivity, as a dictionary."""
    s = hs.sample_sensitivity(mean, UNIT, rows=8, workers=1)
    return json.loads(certify(hs.Laplace(s, epsilon=1.0), values=1).to_json())


def proven():
    """A certificate with a proven one."""
    return json.loads(certify(hs.Laplace(PROVEN["l1"], epsilon=1.0), values=1).to_json())


CHANGES = [
    ("guarantee.gamma", 0),
    ("guarantee.epsilon", 1e-6),
    ("guarantee.delta", 0.5),
    ("guarantee.neighbours", "add-remove"),
    ("guarantee.data_dependent", True),
    ("guarantee.protect", "everyone"),
    ("guarantee.estimates", []),
    ("sensitivity", -3),
    ("sensitivity", 0),
    ("sensitivity", 1e-3),
    ("mechanism.scale", -1),
    ("mechanism.scale", 1e-3),
    ("mechanism.grid", -3),
    ("mechanism.accuracy", 0.01),
    ("mechanism.values", 0),
    ("mechanism.values", 3),
    ("mechanism.parameters", {"epsilon": 3.0}),
    ("mechanism.parameters", {"epsilon": "much"}),
    ("mechanism.parameters", {}),
    ("mechanism.name", "gaussian"),
    ("mechanism.name", "exponential"),
    ("norm", "l2"),
    ("neighbours", "add-remove"),
    ("sampling", None),
]
OF_SAMPLING = [
    ("sampling.gamma", 0.01),
    ("sampling.gamma", 0),
    ("sampling.requested_gamma", 0.01),
    ("sampling.pairs", 10**6),
    ("sampling.pairs", 10**400),
    ("sampling.asked_pairs", 10**12),
    ("sampling.rank", 10**9),
    ("sampling.rank", 0),
    ("sampling.rows", 0),
    ("sampling.shift", -1.0),
    ("sampling.protect", "everyone"),
    ("sampling.population_is_public", False),
]


def changed(loaded, path, value):
    """A copy with one place changed."""
    loaded = copy.deepcopy(loaded)
    *parents, last = path.split(".")
    place = loaded
    for name in parents:
        place = place[name]
    place[last] = value
    return json.dumps(loaded)


@pytest.mark.parametrize(("path", "value"), CHANGES)
@pytest.mark.parametrize("make", [sampled, proven])
def test_a_certificate_that_contradicts_itself_is_not_read(make, path, value):
    """Guarantee, scale, accuracy and sensitivity follow from each other, without any sampling."""
    loaded = make()
    assert hs.Certificate.from_json(json.dumps(loaded))
    if json.loads(changed(loaded, path, value)) == loaded:
        return  # nothing was changed, as with a gamma of 0 for a proven sensitivity
    with pytest.raises(ParameterError, match="contradicts itself"):
        hs.Certificate.from_json(changed(loaded, path, value))


@pytest.mark.parametrize(("path", "value"), OF_SAMPLING)
def test_the_sampling_agrees_with_the_guarantee(path, value):
    """Gamma, protection and what was asked for are the same everywhere, or nothing runs."""
    text = changed(sampled(), path, value)
    with pytest.raises(ParameterError):
        hs.Certificate.from_json(text)


def many(pairs, gamma=0.05):
    """A certificate that agrees with itself and speaks of very many pairs, all alike."""
    loaded = sampled()
    moved = loaded["sensitivity"]
    rank = choose_rank("training-conditional", gamma=Fraction(repr(gamma)), pairs=pairs)
    loaded["sampling"] |= {"tail_mass": rank.tail_mass, "sampling_error": rank.sampling_error}
    loaded["sampling"] |= {"pairs": pairs, "rank": pairs, "movements": [moved] * 201}
    loaded["argument"] = f"sampled: movement {pairs} of {pairs}, training-conditional calibration"
    return loaded


@pytest.mark.parametrize(
    "asked",
    [{"asked_pairs": 10**12}, {"asked_pairs": 2**38}, {"rows": 2**45}],
    ids=str,
)
def test_verify_does_not_run_for_ever(asked):
    """A stranger's certificate cannot ask for any number of draws."""
    loaded = many(asked["asked_pairs"]) if "asked_pairs" in asked else sampled()
    loaded["sampling"] |= asked
    with pytest.raises(ParameterError, match="more than is sampled again"):
        hs.verify(json.dumps(loaded), mean, workers=1)


def test_a_tiny_gamma_does_not_run_for_ever():
    """The number of pairs that a gamma asks for is found without drawing them."""
    gamma = 1e-10
    loaded = many(10**12, gamma)
    loaded["sampling"] |= {"requested_gamma": gamma, "gamma": gamma}
    loaded["guarantee"] |= {"gamma": gamma}
    loaded["guarantee"]["estimates"][0][1] = gamma
    with pytest.raises(ParameterError, match=r"sampled again|are not drawn unless"):
        hs.verify(json.dumps(loaded), mean, workers=1)


def test_a_contradiction_is_told_without_the_words_of_the_parser():
    """What is wrong comes right after what was tried."""
    loaded = proven()
    loaded["mechanism"]["scale"] *= 2
    with pytest.raises(ParameterError, match=r"not hold: the certificate contradicts itself"):
        hs.Certificate.from_json(json.dumps(loaded))


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 1.0, "lattice": 10**9, "dims": 10**6, "order": 1},
        {"epsilon": 1.0, "lattice": 10, "dims": 1, "order": 10**9},
        {"epsilon": 1.0, "lattice": -1, "dims": 1, "order": 1},
        {"epsilon": 1e-320, "lattice": 1, "dims": 1, "order": 1},
    ],
    ids=str,
)
def test_absurd_parameters_are_refused_at_once(parameters):
    """No parameter of a stranger's certificate makes reading it take long, or crash."""
    loaded = proven()
    loaded["norm"] = "sup"
    loaded["mechanism"] |= {"name": "bernstein", "parameters": parameters}
    with pytest.raises(ParameterError, match="contradicts itself"):
        hs.Certificate.from_json(json.dumps(loaded))


@pytest.mark.parametrize(
    "law",
    [
        hs.populations.Uniform(low=[0, -2], high=[1, 5]),
        hs.populations.Exponential(rate=0.1),
        hs.populations.Normal(mean=0.0, std=2.0),
    ],
    ids=lambda law: type(law).__name__,
)
def test_the_ranges_are_those_of_the_law(law):
    """What private rows were moved into is the support of the population that it names."""
    s = hs.sample_sensitivity(np.median, law, rows=8, workers=1)
    text = certify(hs.Laplace(s, epsilon=1.0), values=1).to_json()
    assert hs.Certificate.from_json(text).to_json() == text
    loaded = json.loads(text)
    if not loaded["sampling"]["support"]:
        return
    for end in (1, 2):
        forged = copy.deepcopy(loaded)
        forged["sampling"]["support"][0][end] = -7.5 if end == 1 else 1e6
        with pytest.raises(ParameterError, match="not that of"):
            hs.Certificate.from_json(json.dumps(forged))


@pytest.mark.parametrize(
    "high", ["X", -1, None, 10**400, [], True, "1e400"], ids=lambda x: str(x)[:9]
)
def test_a_law_with_other_numbers_is_refused(high):
    """Numbers of the population that make no law, or another one, contradict the ranges."""
    loaded = sampled()
    loaded["sampling"]["population"]["high"] = high
    if high is True:  # stands for 1
        loaded["sampling"]["population"]["low"] = -1.0
    with pytest.raises(ParameterError):
        hs.Certificate.from_json(json.dumps(loaded))


@pytest.mark.parametrize("name", list(proven_certificates()))
def test_proven_ones_verify(name):
    """From argument to scale, without a function; what cannot be checked is named."""
    mechanism, values = proven_certificates()[name]
    c = certify(mechanism, values=values, charged="charge 1")
    for known in (c, c.to_json()):
        found = hs.verify(known)
        assert found.reproduced
        assert found.proven
        assert found.recomputed == 1.0
        assert {"created", "versions", "charged"} < {*found.unchecked}
        assert "the sensitivity and its argument" in found.unchecked
        for said in (
            "when it was made",
            "versions of packages",
            "charged to",
            "sensitivity and its",
        ):
            assert said in found.explain()
    loaded = json.loads(c.to_json())
    loaded["mechanism"]["scale"] = math.nextafter(loaded["mechanism"]["scale"], 0)
    slightly = hs.verify(json.dumps(loaded))
    assert not slightly.reproduced
    assert "scale" in slightly.explain()


def test_a_sampled_one_needs_its_function():
    """And says which of its fields anybody may have written."""
    text = json.dumps(sampled())
    with pytest.raises(ParameterError, match=r"give the function .* hushed verify FILE"):
        hs.verify(text)
    told = hs.verify(text, mean, workers=1).explain()
    assert told.startswith("reproduced bit for bit")
    for field in (
        "when it was made",
        "the versions of packages",
        "what it was charged to",
        "the name of the function",
    ):
        assert field in told


def test_another_name_for_the_same_estimate_is_found_out():
    """Two estimates under one name would count their gammas once: no rounding changes a name."""
    loaded = sampled()
    name = loaded["guarantee"]["estimates"][0][0]
    loaded["guarantee"]["estimates"][0][0] = "0" * 32 + name[32:]
    found = hs.verify(json.dumps(loaded), mean, workers=1)
    assert found.agreement == "different"
    assert "name of the estimate" in found.explain()


@pytest.mark.parametrize("place", ['"epsilon": 1.0', '"sensitivity": 1.0', '"charged": ""'])
def test_no_field_is_stated_twice(place):
    """Of two values one reader takes the first and another the last."""
    text = json.dumps(proven())
    name, _, kept = place.partition(": ")
    twice = text.replace(place, f"{name}: {kept}, {name}: {kept}", 1)
    assert twice != text
    with pytest.raises(ParameterError, match="twice"):
        hs.Certificate.from_json(twice)


def test_bytes_are_read_like_text():
    """As read from a file; anything else is refused in one plain sentence."""
    assert hs.verify(json.dumps(proven()).encode()).reproduced
    with pytest.raises(ParameterError, match="its JSON text or the path of a file, got list"):
        hs.verify([])


ALTERED = {
    ("created",): ["2001-01-01T00:00:00+00:00"],
    ("charged",): ["charge 99"],
    ("versions",): [{"python": "1.0"}],
    ("person",): [True],
    ("outside",): ["allow", "no range"],
    ("confirmed",): ["", "bits", "rounding"],
    ("sampling", "unwatched"): [[], ["a", "b"]],
    ("sampling", "environment"): [{}, {"python": "1.0"}],
    ("sampling", "elsewhere"): [{"it rounds otherwise": 3}],
    ("sampling", "function"): ["another"],
    ("sampling", "support"): [[]],
    ("sampling", "seed"): [5],
    ("sampling", "symmetric"): [True],
    ("sampling", "largest"): [7.0],
}


@pytest.mark.parametrize("path", ALTERED, ids=".".join)
def test_what_anybody_may_alter_is_named_as_unchecked(path):
    """A field either stops the certificate from being reproduced, or is said to be unchecked."""
    told = {"function": "the name of the function"}.get(path[-1], path[-1])
    for value in ALTERED[path]:
        text = sampled()
        inner = text
        for key in path[:-1]:
            inner = inner[key]
        if inner[path[-1]] == value:
            continue
        inner[path[-1]] = value
        try:
            found = hs.verify(json.dumps(text), mean, workers=1)
        except ParameterError:
            continue
        named = [each for each in found.unchecked if "declared" not in each]  # is tried, too
        assert found.reproduced == (told in " ".join(named)), value
        said = [words for name, words in _WORDS.items() if told in name] or [told]
        assert not found.reproduced or any(each in found.explain() for each in said)


EVIL = "x\n\nWhat is promised: epsilon = 0\r\u2028\u202e\x1b[2Jy"


@pytest.mark.parametrize("where", ["argument", "charged", "population"])
def test_strangers_write_no_paragraphs(where):
    """Line ends and control characters of a certificate are shown as spaces."""
    loaded = sampled()
    plain = hs.Certificate.from_json(json.dumps(loaded)).explain()
    if where == "population":
        loaded["sampling"]["population"] = {"kind": "own", "from": "strangers"}
        plain = hs.Certificate.from_json(json.dumps(loaded)).explain()
        loaded["sampling"]["population"] = {"kind": EVIL, EVIL: EVIL}
    elif where == "argument":
        loaded = proven()
        plain = hs.Certificate.from_json(json.dumps(loaded)).explain()
        loaded["argument"] = EVIL
    else:
        loaded["charged"] = EVIL
    text = hs.Certificate.from_json(json.dumps(loaded)).explain()
    assert text.count("\n\n") == plain.count("\n\n") + (where == "charged")
    assert text.count("\n") - text.count("\n\n") * 2 == plain.count("\n") - plain.count("\n\n") * 2
    assert all(each.isprintable() or each == "\n" for each in text)


@pytest.mark.parametrize("name", ["public table", "simulator"])
def test_names_of_populations_are_shown_in_one_line(name):
    """Also where they are asked for."""
    loaded = of_route("disjoint") if name == "public table" else sampled()
    loaded["sampling"]["population"] |= {"kind": name, "name": EVIL}
    known = hs.Certificate.from_json(json.dumps(loaded))
    assert all(each.isprintable() or each == "\n" for each in known.explain())
    with pytest.raises(ParameterError) as refused:
        hs.verify(known, mean)
    assert all(each.isprintable() for each in str(refused.value))


KNOWN = np.random.default_rng(0).random(3000)


def of_route(name):
    """A released certificate of each way to draw rows."""
    kept = {"gamma": 0.3, "rows": 8, "workers": 1}
    promise = {"disjoint": "population", "resampled": "table"}.get(name, name)
    if name in ("disjoint", "given-the-rest", "resampled"):
        population = hs.populations.PublicTable(KNOWN, name="k", promise=promise)
    else:
        population = UNIT
    f = hs.Blockwise(mean, rows=4) if name == "blocks" else mean
    if name in ("everyone", "simultaneous"):
        kept["protect"] = name
    s = hs.sample_sensitivity(f, population, **kept)
    s = s.shifted(1e-4) if name == "shifted" else s
    return json.loads(
        hs.release(f, KNOWN[:8] / 2, hs.Laplace(s, epsilon=1.0)).certificate.to_json()
    )


ROUTES = ["disjoint", "given-the-rest", "resampled", "independent"]
NAMES = [*ROUTES, "blocks", "everyone", "simultaneous", "shifted"]
FALSE_FIELDS = [
    *((name, "sampling.route", route) for name in NAMES for route in ROUTES if route != name),
    *((name, f"sampling.{field}", n) for name in ROUTES[:3] for field in ("public_rows", "tables")
      for n in (0, 1, -5, 10**9)),
    *((name, f"sampling.{field}", 7) for name in NAMES[3:] for field in ("public_rows", "tables")),
    *((name, "sampling.blocks", n) for name in NAMES for n in (1, 2, 4, 8)),
    *((name, "sampling.rank", 1) for name in NAMES if name != "given-the-rest"),
    *((name, "sampling.movements", []) for name in NAMES),
    *((name, "sampling.movements", [0.0] * 9) for name in NAMES),
    *((name, "sampling.shape", [5]) for name in NAMES),
    *((name, "sampling.calibration", "dkw") for name in NAMES),
    *((name, "guarantee.unit", "user") for name in NAMES),
    *((name, "argument", "because I said so") for name in NAMES),
    ("disjoint", "sampling.population.rows", 10),
    ("disjoint", "sampling.population", {}),
    ("independent", "sampling.population", {"kind": "public table", "name": "x", "rows": 5}),
    ("independent", "sampling.support", [["", 1.0, 0.0, False]]),
    ("independent", "sampling.support", [["", None, None, False]]),
    ("independent", "sampling.support", [["", 0.0, 1.0, False], ["", 0.0, 2.0, False]]),
    ("independent", "sampling.shift", 0.5),
    ("independent", "sampling.shift", 1e300),
    ("shifted", "sampling.shift", 0.0),
    ("shifted", "sampling.shift", 1e-5),
    *((name, f"sampling.{field}", x) for name in NAMES
      for field in ("tail_mass", "sampling_error") for x in (1e-9, 0.5)),
    *((name, "sampling.largest", 1e-3) for name in NAMES),
    *((name, "argument", " ") for name in NAMES),
    ("independent", "sampling.population", {"kind": "custom", "name": float("nan")}),
    ("independent", "sampling.population", {"kind": "custom", "name": [float("inf")]}),
    ("independent", "sampling.tail_mass", 5.0),
    ("independent", "sampling.sampling_error", -5.0),
    ("independent", "sampling.seed", -1),
    ("independent", "sampling.requested_gamma", None),
    ("independent", "sampling.population_is_public", False),
    ("everyone", "sampling.rows", 10**6),
]  # fmt: skip


@pytest.mark.slow
def test_every_field_of_the_sampling_agrees_with_the_others():
    """No route, size, block, rank, shape or argument but the one that the sampler wrote."""
    made = {name: of_route(name) for name in NAMES}
    for name, loaded in made.items():
        assert hs.Certificate.from_json(json.dumps(loaded)), name
    for name, path, value in FALSE_FIELDS:
        text = changed(made[name], path, value)
        if json.loads(text) == made[name]:
            continue
        with pytest.raises(ParameterError, match="contradicts itself"):
            pytest.fail(f"{name} {path} {value}: {hs.Certificate.from_json(text)}")


@pytest.mark.parametrize(
    "false",
    [{"confirmed": "bits"}, {"outside": "clamp"}, {"outside": "allow"}, {"person": True}],
    ids=str,
)
def test_a_proven_one_says_nothing_of_sampling(false):
    """Nor that a user with several rows is a person with one."""
    loaded = proven() | false
    if "person" in false:
        assert hs.Certificate.from_json(json.dumps(loaded)).person
        loaded["guarantee"]["unit"] = "user"
    with pytest.raises(ParameterError, match="contradicts itself"):
        hs.Certificate.from_json(json.dumps(loaded))


@pytest.mark.parametrize("outside", ["clamp", "allow"])
@pytest.mark.parametrize(
    "population",
    [
        UNIT,
        hs.populations.Exponential(1.0),
        hs.populations.PublicTable(KNOWN[:20], bounds=(0, 1)),
        hs.populations.PublicTable(KNOWN[:20]),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_admitted_population_with_a_range_is_released_with_its_warning(population, outside):
    """The ranges are left out, because they come from private rows; what was done is said."""
    s = hs.sample_sensitivity(
        mean, population, rows=20, gamma=0.3, calibration="marginal", data_dependent=True, workers=1
    )
    c = hs.release(mean, KNOWN[:20], hs.Laplace(s, epsilon=1.0), outside=outside).certificate
    assert c.explain().startswith("WARNING: NOT A PRIVACY GUARANTEE")
    has_range = bool(s.sampling.support)
    assert c.outside == (outside if has_range else "no range")
    assert ("let pass" in c.explain()) == (has_range and outside == "allow")
    assert not c.sampling.support
    assert hs.verify(c.to_json(), mean, population=population, workers=1).reproduced


@pytest.mark.parametrize(
    "population",
    [
        UNIT,
        hs.populations.Normal(mean=0.5, std=0.1),
        hs.populations.Uniform(low=[0, 0], high=[1, 2]),
    ],
    ids=str,
)
def test_a_certificate_says_the_same_after_it_was_read(population):
    """Word for word."""
    s = hs.sample_sensitivity(mean, population, rows=8, workers=1)
    c = certify(hs.Laplace(s, epsilon=1.0), values=1)
    assert hs.Certificate.from_json(c.to_json()).explain() == c.explain()


def test_no_sentence_offers_or_assumes_what_another_denies():
    """A shift names the law P of the public rows; given the rest there is no promise for all."""
    population = hs.populations.PublicTable(KNOWN, name="k", promise="given-the-rest")
    for name, s in (
        ("rest", hs.sample_sensitivity(mean, population, rows=8, gamma=0.3, workers=1)),
        ("plain", hs.sample_sensitivity(mean, UNIT, rows=8, gamma=0.3, workers=1)),
    ):
        text = certify(hs.Laplace(s, epsilon=1.0), values=1).explain()
        assert ("protect='everyone' covers" in text) == (name == "plain")
        moved = certify(hs.Laplace(s.shifted(1e-6), epsilon=1.0), values=1).explain()
        law = {"plain": "the population that was sampled", "rest": "the law that the public rows"}
        assert f"per row, where P is {law[name]}" in moved


def leaves(loaded, path=()):
    """Places of a nested record that hold a single value, and that value."""
    if isinstance(loaded, dict | list):
        pairs = loaded.items() if isinstance(loaded, dict) else enumerate(loaded)
        for key, inner in pairs:
            yield from leaves(inner, (*path, key))
    else:
        yield path, loaded


def placed(loaded, path, value):
    """A copy with one place changed, as JSON."""
    loaded = copy.deepcopy(loaded)
    inner = loaded
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(loaded)


@pytest.mark.parametrize("make", [sampled, proven])
def test_a_number_is_a_number_and_a_truth_value_is_one(make):
    """In no place does ``true`` stand for 1, 0 for ``false``, or a text for what it spells."""
    loaded = make()
    tried = 0
    for path, value in leaves(loaded):
        if path[-2:] == ("population", "kind"):  # a caller's own class may say anything
            continue
        others = {True: [1, "true"], False: [0, "false"]} if isinstance(value, bool) else {}
        if not isinstance(value, bool) and isinstance(value, int | float):
            others = {value: [value == 1, repr(value)]}
        for other in others.get(value, []):
            tried += 1
            with pytest.raises(ParameterError):
                pytest.fail(f"{path}: {hs.Certificate.from_json(placed(loaded, path, other))}")
    assert tried > 10


@pytest.mark.parametrize("changed", [{"sampling": None}, {"norm": "sup"}, {"norm": "l2"},
                                     {"neighbours": "add-remove"}, {"argument": "a proof"}],
                         ids=str)  # fmt: skip
def test_a_sampled_sensitivity_does_not_become_another(changed):
    """Without its samples it would say that it was sampled, and promise everything."""
    s = hs.sample_sensitivity(mean, UNIT, rows=8, workers=1)
    with pytest.raises(ParameterError):
        dataclasses.replace(s, **changed)


@pytest.mark.parametrize("argument", ["", " ", "sampled: movement 9 of 9, marginal calibration"])
def test_a_proven_one_gives_a_reason_of_its_own(argument):
    """Neither none nor that of a sampling that is not there; also on a certificate."""
    with pytest.raises(ParameterError):
        hs.proven_sensitivity(1.0, argument=argument)
    with pytest.raises(ParameterError, match="contradicts itself: argument"):
        hs.Certificate.from_json(json.dumps(proven() | {"argument": argument}))


def test_no_noise_is_described_that_is_not_known():
    """A mechanism of another kind is not taken for Laplace noise of its epsilon."""

    @dataclasses.dataclass(frozen=True)
    class Other:
        sensitivity: object = PROVEN["l1"]
        epsilon: float = 1.0

    with pytest.raises(ParameterError, match="Other"):
        certify(Other(), values=1)


def test_a_split_found_by_another_library_is_no_difference(monkeypatch):
    """Gamma is split where that matters least: a last bit of SciPy's moves the place a lot."""
    from scipy import special

    s = hs.sample_sensitivity(mean, UNIT, rows=8, pairs=500, gamma=0.05, workers=1)
    text = certify(hs.Laplace(s, epsilon=1.0), values=1).to_json()
    plain, noise_of = special.betaincc, np.random.default_rng(1)
    monkeypatch.setattr(
        special, "betaincc", lambda *given: plain(*given) * (1 + 3e-15 * noise_of.normal())
    )
    found = hs.verify(text, mean, workers=1)
    assert found.agreement == "rounding"
    assert any("in its last digits" in each for each in found.differences)


@pytest.mark.parametrize("wrong", [[[7.0]], [[None]], [["x"]], [[-1e-9]], [[0.0], [0.5, 0.5]]])
def test_given_rows_on_a_certificate_lie_in_the_range_of_the_population(wrong):
    """A replacement outside would have been moved, and nothing was sampled of it."""
    moved = hs.sample_sensitivity(
        np.mean,
        hs.populations.Uniform(low=0, high=1),
        rows=20,
        gamma=0.3,
        workers=1,
        protect="table",
        values=[0.0, 1.0],
    )
    released = hs.release(np.mean, np.full(20, 0.5), hs.Laplace(moved, epsilon=1))
    told = json.loads(released.certificate.to_json())
    assert hs.Certificate.from_json(json.dumps(told)) == released.certificate
    told["sampling"]["values"][: len(wrong)] = wrong
    with pytest.raises(ParameterError, match="ranges of sampling"):
        hs.Certificate.from_json(json.dumps(told))


@pytest.mark.slow
def test_given_rows_of_a_frame_are_read_by_the_names_of_their_columns():
    """Whatever the order in which bounds were given."""
    frame = pd.DataFrame({"a": np.linspace(0, 1, 4000), "b": np.linspace(5, 9, 4000)})
    public = hs.populations.PublicTable(frame, name="census", bounds={"b": (5, 9), "a": (0, 1)})
    moved = hs.sample_sensitivity(
        total, public, rows=20, gamma=0.3, workers=1, protect="table", values=[[0.0, 9.0]]
    )
    released = hs.release(total, frame.iloc[:20].copy(), hs.Laplace(moved, epsilon=1))
    told = json.loads(released.certificate.to_json())
    assert hs.Certificate.from_json(json.dumps(told)) == released.certificate
    told["sampling"]["values"] = [[9.0, 0.0]]
    with pytest.raises(ParameterError, match="ranges of sampling"):
        hs.Certificate.from_json(json.dumps(told))


def total(rows):
    return rows["a"].sum() + rows["b"].sum()
