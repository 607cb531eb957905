"""Predictions of kernel ridge regression, written in JAX, for many tables at once.

JAX computes in float32 unless it is told otherwise, and compiles a function when it is first
called: both are settled here before anything is measured.
"""

import jax
import jax.numpy as jnp
import numpy as np

import hushed as hs

jax.config.update("jax_enable_x64", True)

ROWS, WIDTH, RIDGE = 150, 0.2, 0.05
POINTS = jnp.array([0.2, 0.5, 0.8])  # where the predictions are wanted


def kernel(one, other):
    """Gaussian kernel between all pairs of two lists of inputs."""
    return jnp.exp(-((one[:, None] - other[None, :]) ** 2) / (2 * WIDTH**2))


def fitted(table):
    """Fit one table, and predict at the public points."""
    x, y = table[:, 0], table[:, 1]
    weights = jnp.linalg.solve(kernel(x, x) + RIDGE * len(x) * jnp.eye(len(x)), y)
    return kernel(POINTS, x) @ weights


# Compiled once, outside of the function: jax.jit inside would compile at every call.
FITTED = jax.jit(jax.vmap(fitted))


def predictions(tables):
    """Predict for each table of a stack (tables, rows, columns)."""
    return FITTED(jnp.asarray(tables))


def simulated(rng, count):
    """Draw public rows of the kind that is expected: an input, and an output in [0, 1]."""
    x = rng.random(count)
    return np.stack([x, (0.5 + 0.4 * np.sin(5 * x) + rng.normal(0, 0.05, count)).clip(0, 1)], 1)


POPULATION = hs.populations.Simulator(simulated, name="waves", bounds={"0": (0, 1), "1": (0, 1)})


def main() -> None:
    """Measure how far the predictions move, and release them once."""
    s = hs.sample_sensitivity(
        predictions, POPULATION, rows=ROWS, gamma=0.05, symmetric=True, batch=True, workers=1
    )
    print(f"fitted {s.calls} tables, in {s.sampling.dtype}: {s.value:.2g}")
    private = simulated(np.random.default_rng(7), ROWS)
    released = hs.release(predictions, private, hs.Laplace(s, epsilon=1))
    exact = np.asarray(predictions(private[None])[0])
    for x, value, true in zip(np.asarray(POINTS), released.value, exact, strict=True):
        print(f"at {x:.1f}: {value:.2f} (without noise {true:.2f})")


if __name__ == "__main__":
    main()
