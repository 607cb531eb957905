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
