"""Functions in PyTorch and JAX, with the libraries themselves: `make engines`."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hushed as hs

pytestmark = pytest.mark.engines
torch = pytest.importorskip("torch", reason="make engines")
jax = pytest.importorskip("jax", reason="make engines")
jnp = pytest.importorskip("jax.numpy", reason="make engines")

BOX = hs.populations.Uniform(low=[0, 0, 0], high=[1, 1, 1])
ROWS = 60
DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()
WEIGHTS = np.array([0.3, -0.2, 0.9])


def in_numpy(rows):
    return np.tanh(rows @ WEIGHTS).mean()


def in_torch(rows):
    return torch.tanh(torch.as_tensor(rows) @ torch.as_tensor(WEIGHTS)).mean()


def in_jax(rows):
    return jnp.tanh(jnp.asarray(rows) @ jnp.asarray(WEIGHTS)).mean()


@pytest.fixture(autouse=True)
def singles():
    """JAX computes as it does by itself, whatever an example that was loaded before has set."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def doubles(singles):
    """JAX computes in doubles within the test."""
    jax.config.update("jax_enable_x64", True)


def sampled(f, **options):
    settings = {"rows": ROWS, "pairs": 60, "workers": 1} | options
    return hs.sample_sensitivity(f, BOX, **settings)


def run(code):
    """Run Python in a process of its own, which must not say anything on standard error."""
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize("f", [in_torch, in_jax])
def test_in_doubles_the_sensitivity_is_the_one_of_numpy(f):
    """The same tables: other kernels differ in the last digits of an answer alone."""
    s, wanted = sampled(f), sampled(in_numpy)
    assert s.sampling.dtype == "float64"
    np.testing.assert_allclose(s.draws, wanted.draws, atol=1e-15)
    assert s.value > 1e-3


@pytest.mark.parametrize("f", [in_torch, in_jax])
@pytest.mark.usefixtures("doubles")
def test_worker_processes_give_the_same_bits(f):
    assert np.array_equal(sampled(f, workers=2).draws, sampled(f).draws)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_tensor_with_a_gradient_is_read(kind, device):
    """Of every type, from every device; the type is recorded."""

    def f(rows):
        table = torch.as_tensor(rows, dtype=kind, device=device).requires_grad_()
        return table.mean()

    s = sampled(f)
    assert s.sampling.dtype == str(kind).removeprefix("torch.")
    assert s.sampling.answer == pytest.approx(0.5, abs=0.15)
    released = hs.release(f, np.full((ROWS, 3), 0.5), hs.Laplace(s, epsilon=100))
    assert released.value == pytest.approx(0.5, abs=0.1)


def test_a_tensor_on_a_device_is_moved_to_the_host_first():
    """Like one of CUDA, whose memory NumPy cannot read: it raises unless `cpu` was called."""

    class Far(torch.Tensor):
        def detach(self):
            return self

        def cpu(self):
            return torch.Tensor(np.array(torch.Tensor.tolist(self))).double()

        def numpy(self, *_, **__):
            raise TypeError("can't convert a tensor on a device to numpy")

        __array__ = numpy

    def f(rows):
        return torch.as_tensor(rows).mean(dim=0).as_subclass(Far)

    assert sampled(f).sampling.shape == (3,)


def test_a_part_of_a_spectrum_is_read():
    """Of a conjugate torch keeps the numbers of the original, marked as negative."""

    def by_torch(rows):
        return torch.fft.fft(torch.as_tensor(rows)[:, 0])[1:4].conj().imag

    def by_numpy(rows):
        return -np.fft.fft(rows[:, 0])[1:4].imag

    found = sampled(by_torch).sampling.answer
    assert found == pytest.approx(sampled(by_numpy).sampling.answer, abs=1e-9)


def test_lists_of_tensors_and_bfloat16_of_jax_are_read():
    def parts(rows):
        table = torch.as_tensor(rows).requires_grad_()
        return [table.mean(), table.float().sum()]

    def short(rows):
        return jnp.asarray(rows, dtype=jnp.bfloat16).mean(axis=0)

    assert (sampled(parts).sampling.shape, sampled(parts).sampling.dtype) == ((2,), "float32")
    assert (sampled(short).sampling.shape, sampled(short).sampling.dtype) == ((3,), "bfloat16")


def test_jax_says_when_its_numbers_are_too_coarse():
    """Its default is float32; answers near 1,000 that move by 0.01 are 100 steps of it."""

    def f(rows):
        return 1000 + in_jax(rows)

    s = sampled(f)
    assert s.sampling.dtype == "float32"
    assert "jax_enable_x64" in s.explain()
    assert "resolution" not in sampled(in_numpy).explain()


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_what_torch_writes_to_its_rows_is_seen_by_no_other_call():
    """NumPy's lock does not hold torch, which shares the memory: it is given copies."""

    def f(rows, *, own=False):
        table = torch.tensor(rows) if own else torch.from_numpy(rows)
        found = table.sum()
        if table[0, 0] > 0.5:  # not in the first table, where it would be refused
            table[1] = 0
        return found

    def careful(rows):
        return f(rows, own=True)

    for seed in range(20):
        try:
            found = sampled(f, seed=seed)
        except hs.errors.BadFunction:
            continue
        assert np.array_equal(found.draws, sampled(careful, seed=seed).draws)
        return
    pytest.fail("no first table was left as it is")


def test_torch_does_not_warn_of_arrays_that_cannot_be_written_to():
    """It does once in a process, and not after a sampling and a release."""
    told = run(
        "import torch, numpy as np, hushed as hs\n"
        "f = lambda rows: torch.as_tensor(rows).mean()\n"
        "g = lambda tables: torch.as_tensor(tables).mean(dim=1)\n"
        "for h, batch in ((f, False), (g, True)):\n"
        "    s = hs.sample_sensitivity(h, hs.populations.Uniform(low=0, high=1), rows=50, "
        "pairs=30, batch=batch, symmetric=True, workers=1)\n"
        "    hs.release(h, np.full(50, 0.5), hs.Laplace(s, epsilon=1))\n"
        "    print(s.sampling.locked)\n"
    )
    assert told.split() == ["False", "False"]


def test_neither_is_imported_before_the_caller_does():
    told = run(
        "import sys, hushed as hs\n"
        "s = hs.sample_sensitivity(lambda rows: rows.mean(), "
        "hs.populations.Uniform(low=0, high=1), rows=50, pairs=30, symmetric=True, workers=1)\n"
        "s.explain()\n"
        "print(sorted({'torch', 'jax'} & set(sys.modules)))\n"
    )
    assert told.strip() == "[]"


class TestDevices:
    """Devices and flags are on the certificate, and another kind of device is remarked upon."""

    def test_they_are_recorded_where_the_library_is_used(self):
        tensors, arrays = sampled(in_torch).sampling, sampled(in_jax).sampling
        assert tensors.environment["torch device"].startswith(tuple(DEVICES))
        assert "deterministic False" in tensors.environment["torch flags"]
        assert arrays.environment["jax device"].startswith(("cpu", "gpu", "tpu"))
        assert "x64 False" in arrays.environment["jax flags"]
        plain = sampled(in_numpy).sampling.environment
        assert not [name for name in plain if "torch" in name or "jax" in name]

    def test_a_graphics_processor_that_is_awake_is_named(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "Some GPU")
        assert sampled(in_torch).sampling.environment["torch device"] == "cuda: Some GPU"

    @pytest.mark.parametrize("device", ["cuda: Some GPU", ""])
    def test_a_release_on_another_device_is_remarked_upon(self, device):
        s = sampled(in_torch)
        environment = s.sampling.environment | ({"torch device": device} if device else {})
        moved = replace(s, sampling=replace(s.sampling, environment=environment))
        c = hs.release(in_torch, np.full((ROWS, 3), 0.5), hs.Laplace(moved, epsilon=1)).certificate
        assert c.confirmed == "bits"
        assert ("different devices" in c.explain()) == bool(device)
        assert (device in c.explain()) or not device

    def test_verify_names_them_as_a_reason(self):
        s = sampled(in_torch)
        c = hs.release(in_torch, np.full((ROWS, 3), 0.5), hs.Laplace(s, epsilon=1)).certificate
        flags = {"torch device": "cuda: Some GPU", "torch flags": "deterministic True"}
        moved = replace(c, sampling=replace(c.sampling, environment=c.sampling.environment | flags))
        found = hs.verify(moved, in_torch, workers=1)
        assert found.agreement == "bits"
        now = s.sampling.environment["torch device"]
        assert f"torch device cuda: Some GPU then, {now} now" in found.environments

    def test_flags_that_hold_folders_are_not_told(self, monkeypatch):
        """Flags of XLA may name files of this computer: only those that change numbers are told."""
        monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/home/me --xla_cpu_enable_fast_math=true")
        told = sampled(in_jax).sampling.environment["jax flags"]
        assert "fast_math" in told
        assert "home" not in told


CORES = """
import os
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{cores}])
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import hushed as hs
def f(rows):
    return jnp.exp(jnp.asarray(rows)).sum()
s = hs.sample_sensitivity(
    f, hs.populations.Uniform(low=0, high=1), rows=300_000, pairs=20, symmetric=True, workers=1
)
print(s.fingerprint.partition(".")[0], s.sampling.environment["jax flags"].replace(" ", ""))
"""


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two cores",
)
def test_one_thread_of_jax_rounds_alike_on_any_number_of_cores(monkeypatch):
    """NPROC=1, as the docs say; how many threads there are is among the flags."""
    monkeypatch.setenv("NPROC", "1")
    one, two = (run(CORES.format(cores=cores)).split() for cores in (1, 2))
    assert one == two
    assert "cores1" in one[1]
    monkeypatch.delenv("NPROC")
    assert "cores2" in run(CORES.format(cores=2))


ANSWERS = {
    "gradients": lambda rows: torch.tensor(rows.mean(), requires_grad=True),
    "bfloat16": lambda rows: torch.tensor(rows.mean(), dtype=torch.bfloat16),
    "bfloat16 of JAX": lambda rows: jnp.asarray(rows).mean().astype("bfloat16"),
}


@pytest.mark.parametrize("which", ANSWERS)
def test_blocks_read_answers_as_other_releases_do(which):
    """In a process of its own, a call whose answer cannot be read is silent."""
    room = hs.blocks.Limits(memory=2**33)  # for the plugin of JAX for CUDA, where there is one
    mechanism = hs.Blocks(low=0, high=1, epsilon=30.0, blocks=2, limits=room)
    found = mechanism.simulate(ANSWERS[which], hs.populations.Uniform(low=0, high=1), 20, trials=1)
    assert found.failed == 0


def test_blocks_read_lists_of_tensors():
    """Each is brought to the host."""
    answer = lambda rows: [torch.tensor(rows.mean(), requires_grad=True), 0.5]  # noqa: E731
    mechanism = hs.Blocks(
        aggregate="vector", centre=[0.5, 0.5], radius=1.0, epsilon=9.0, delta=1e-3, blocks=2
    )
    found = mechanism.simulate(answer, hs.populations.Uniform(low=0, high=1), 20, trials=1)
    assert found.failed == 0
