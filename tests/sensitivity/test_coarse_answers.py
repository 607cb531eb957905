"""Answers in coarser numbers than doubles are recorded, and a movement they hardly tell is said."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app

UNIT = hs.populations.Uniform(low=0, high=1)
ROWS = 200


def large(kind):
    """Make an answer near 1,000 that a row moves by up to 0.005."""
    return lambda rows: kind(1000 + rows.mean())


def sampled(f, **options):
    return hs.sample_sensitivity(f, UNIT, rows=ROWS, pairs=50, workers=1, **options)


@pytest.mark.parametrize(
    ("name", "f"),
    [
        ("float64", np.mean),
        ("float64", lambda rows: int(rows.sum())),
        ("float32", lambda rows: np.float32(rows.mean())),
        ("float16", lambda rows: rows.astype(np.float16)[:2]),
        ("float32", lambda rows: [np.float32(rows.mean()), 2.0]),
        ("float16", lambda rows: (rows[:2].astype(np.float32), rows[:2].astype(np.float16))),
        ("float32", hs.Blockwise(lambda rows: np.float32(rows.mean()), rows=ROWS)),
        (
            "float32",
            hs.Blockwise(lambda rows: rows[:2].astype(np.float32), rows=ROWS, relative=True),
        ),
        ("float32", hs.on_lattice(lambda rows: lambda x: x.astype("f4"), lattice=2, dims=1)),
    ],
)
def test_the_coarsest_type_of_an_answer_is_recorded(name, f):
    """Also within a list, of one block, and of a function on a lattice."""
    assert sampled(f).sampling.dtype == name


def test_a_movement_below_the_resolution_is_said_everywhere(tmp_path, monkeypatch):
    """Of answers near 1,000 float32 tells 0.0001 apart: a movement of 0.005 is 40 times that."""
    s = sampled(large(np.float32))
    words = "less than its own resolution: it comes in float32"
    assert s.value < 0.006
    assert words in s.explain()
    f = s.sampling.called
    certificate = hs.release(f, np.full(ROWS, 0.5), hs.Laplace(s, epsilon=1)).certificate
    assert words in certificate.explain()
    assert json.loads(certificate.to_json())["sampling"]["dtype"] == "float32"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(
        "import numpy as np\ndef f(rows):\n    return np.float32(1000 + rows.mean())\n"
    )
    told = CliRunner().invoke(
        app, ["sensitivity", "f.py:f", "--population", "uniform:0,1", "--rows", "200"]
    )
    assert told.exit_code == 0, told.output
    assert "resolution" in told.output


@pytest.mark.parametrize("f", [large(np.float64), lambda rows: np.float32(rows.mean()), len])
def test_enough_resolution_is_not_remarked_upon(f):
    """Doubles; a mean in float32, which moves by 40,000 times its resolution; whole numbers."""
    assert "resolution" not in sampled(f).explain()


def test_movements_are_compared_with_answers_of_a_block():
    """A part of 1/1000 of the movement reaches the average, and is no finer because of that."""
    f = hs.Blockwise(lambda rows: np.float32(rows.mean()), rows=ROWS)
    s = hs.sample_sensitivity(f, UNIT, rows=ROWS * 1000, pairs=50, workers=1)
    assert s.value < 1e-4 * s.sampling.largest  # what float32 tells, a thousand times
    assert "resolution" not in s.explain()


def rounded(tables):
    """Means in float32, whose last digit depends on how many tables are answered together."""
    means = tables.mean(axis=1).astype(np.float32)
    return means if len(tables) == 1 else np.nextafter(means, np.float32(0))


def added(rows):
    """Add up one row after the other, so that the last digits depend on their order."""
    return np.cumsum(rows.astype(np.float32))[-1] / np.float32(ROWS)


class TestDeclarations:
    """What is declared may hold but for rounding, which is then added to every movement."""

    @pytest.mark.parametrize(
        ("coarse", "exact", "declared"),
        [
            (rounded, lambda tables: tables.mean(axis=1), {"batch": True}),
            (added, np.mean, {"symmetric": True}),
            (
                lambda tables: np.cumsum(tables.astype(np.float32), axis=1)[:, -1] / ROWS,
                lambda tables: tables.mean(axis=1),
                {"batch": True, "symmetric": True},
            ),
        ],
    )
    def test_rounding_is_let_pass_and_added(self, coarse, exact, declared):
        """For each declaration, 64 last digits of the largest answer on either side of a pair."""
        s, wanted = sampled(coarse, **declared), sampled(exact, **declared)
        each = 64 * 2.0**-23 * s.sampling.largest
        apart = s.draws - wanted.draws - 2 * len(declared) * each
        assert each > 3e-6
        assert np.abs(apart).max() < 1e-6  # what the sums themselves lose
        known = hs.release(coarse, np.full(ROWS, 0.5), hs.Laplace(s, epsilon=1)).certificate
        assert "what rounding does in float32, which was added" in known.explain()
        assert hs.verify(known.to_json(), coarse, workers=1).agreement == "bits"

    def test_doubles_are_held_to_a_millionth(self):
        s = sampled(lambda tables: tables.mean(axis=1), batch=True)
        known = hs.release(s.sampling.called, np.full(ROWS, 0.5), hs.Laplace(s, epsilon=1))
        assert "what rounding does" not in known.certificate.explain()
        with pytest.raises(hs.errors.BadFunction, match="millionth"):
            sampled(lambda tables: tables.mean(axis=1) - 2e-8 * (len(tables) > 1), batch=True)

    @pytest.mark.parametrize("off", [1e-5, 1e-3])
    def test_more_than_rounding_is_refused(self, off):
        """Answers are near 1/2, of which 64 last digits are 4 millionths."""

        def other(tables):
            return (tables.mean(axis=1) - off * (len(tables) > 1)).astype(np.float32)

        with pytest.raises(hs.errors.BadFunction, match=r"with batch=True.*4\.\d+e-06 is let pass"):
            sampled(other, batch=True)

    def test_the_largest_possible_movement_is_still_a_record_that_fits(self):
        """Answers of -1 and 1, which move by 2: the rounding comes on top."""

        def signs(tables):
            return np.where(tables[:, 0] > 0.5, 1, -1).astype(np.float32)

        s = hs.sample_sensitivity(signs, UNIT, rows=2, pairs=200, batch=True, workers=1)
        assert s.draws[-1] > 2
        known = hs.release(signs, np.full(2, 0.7), hs.Laplace(s, epsilon=1)).certificate
        assert hs.Certificate.from_json(known.to_json()) == known


class TestVerifying:
    """What counts as rounding follows the type of the answers."""

    @pytest.fixture(scope="class")
    @classmethod
    def certificate(cls):
        def mean(rows):
            return np.float32(rows.mean())

        s = sampled(mean)
        return mean, hs.release(mean, np.full(ROWS, 0.5), hs.Laplace(s, epsilon=1)).certificate

    def test_a_last_digit_of_the_type_is_rounding(self, certificate):
        """One unit of float32, 500 million of a double."""
        f, known = certificate
        moved = list(known.sampling.movements)
        moved[5] += 2.0**-24
        near = replace(known, sampling=replace(known.sampling, movements=tuple(sorted(moved))))
        assert hs.verify(known, f, workers=1).agreement == "bits"
        assert hs.verify(near, f, workers=1).agreement == "rounding"

    def test_a_hundredth_of_the_movement_is_not(self, certificate):
        """Though 64 units of float16 are more than that, where all answers are below 1."""
        _, known = certificate

        def coarse(rows):
            return np.float16(rows.mean())

        s = sampled(coarse)
        known = hs.release(coarse, np.full(ROWS, 0.5), hs.Laplace(s, epsilon=1)).certificate
        moved = list(known.sampling.movements)
        moved[5] += 0.02 * known.sensitivity
        far = replace(known, sampling=replace(known.sampling, movements=tuple(sorted(moved))))
        assert 0.02 * known.sensitivity < 64 * 2.0**-10 * known.sampling.largest
        assert hs.verify(far, coarse, workers=1).agreement == "different"

    def test_another_type_is_different(self, certificate):
        """A stated type that is not the function's makes no room."""
        f, known = certificate
        other = replace(known, sampling=replace(known.sampling, dtype="bfloat16"))
        found = hs.verify(other, f, workers=1)
        assert found.agreement == "different"
        assert "dtype" in found.differences


class TestBlocksOfRows:
    """How many rows are drawn at once is a parameter of the sampling."""

    @staticmethod
    def means(tables):
        return tables.mean(axis=1)

    def test_other_blocks_give_other_draws_and_are_verified(self):
        """The block goes into the certificate, and verify draws it again."""
        usual = sampled(self.means, batch=True)
        large = sampled(self.means, batch=True, batch_rows=2000)
        assert usual.sampling.batch_rows == 65536
        assert not np.array_equal(usual.draws, large.draws)
        known = hs.release(self.means, np.full(ROWS, 0.5), hs.Laplace(large, epsilon=1)).certificate
        assert known.sampling.batch_rows == 2000
        assert hs.verify(known, self.means, workers=1).agreement == "bits"
        assert hs.verify(known.to_json(), self.means, workers=1).reproduced

    @pytest.mark.slow
    def test_the_function_is_given_so_many_rows(self):
        seen = set()

        def means(tables):
            seen.add(len(tables))
            return tables.mean(axis=1)

        sampled(means, batch=True, batch_rows=2010)
        assert max(seen) == 10  # tables of 200 rows, and the one that is put in

    @pytest.mark.parametrize("count", [0, -1, 1.5, True, 2**26 + 1, "7"])
    def test_a_number_that_makes_no_sense_is_refused(self, count):
        with pytest.raises(hs.errors.ParameterError, match="batch_rows"):
            sampled(self.means, batch=True, batch_rows=count)

    def test_it_goes_with_stacked_tables(self):
        with pytest.raises(hs.errors.ParameterError, match="batch=True"):
            sampled(np.mean, batch_rows=2000)

    @pytest.mark.parametrize("count", [0, 2**40])
    def test_a_certificate_cannot_ask_for_all_memory(self, count):
        s = sampled(self.means, batch=True)
        known = hs.release(self.means, np.full(ROWS, 0.5), hs.Laplace(s, epsilon=1)).certificate
        record = json.loads(known.to_json())
        record["sampling"]["batch_rows"] = count
        with pytest.raises(hs.errors.ParameterError, match="batch_rows"):
            hs.Certificate.from_json(json.dumps(record))
