"""Predictions of a small neural network that is trained on the private rows.

Written in PyTorch: hundreds of tables are trained on at once, on a graphics processor if there is
one. `torch.func.vmap` makes of a function of one table one of a stack of them.
"""

import numpy as np
import torch
from torch.func import functional_call, grad, vmap

import hushed as hs

ROWS, STEPS, WIDTH = 200, 30, 8
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PUBLIC = np.linspace(0.1, 0.9, 3)[:, None]  # where the predictions are wanted


def start():
    """Make the network, and the public weights that training begins with."""
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        torch.nn.Linear(1, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 1)
    ).double()
    return net.to(DEVICE)


torch.use_deterministic_algorithms(True)  # on a graphics processor sums else come out as they fall
NET = start()
WEIGHTS = {name: each.detach().clone() for name, each in NET.named_parameters()}
POINTS = torch.tensor(PUBLIC, device=DEVICE)


def loss(weights, table):
    """Mean squared error of the network on one table."""
    return ((functional_call(NET, weights, (table[:, :1],)) - table[:, 1:]) ** 2).mean()


def trained(table):
    """Train on one table by plain gradient descent, and predict at the public points."""
    weights = WEIGHTS
    for _ in range(STEPS):
        slopes = grad(loss)(weights, table)
        weights = {name: each - 0.3 * slopes[name] for name, each in weights.items()}
    return functional_call(NET, weights, (POINTS,))[:, 0]


def predictions(tables):
    """Predict after training on each table of a stack (tables, rows, columns)."""
    return vmap(trained)(torch.as_tensor(tables, device=DEVICE))


def simulated(rng, count):
    """Draw public rows of the kind that is expected: an input, and an output in [0, 1]."""
    x = rng.random(count)
    return np.stack([x, (0.5 + 0.4 * np.sin(5 * x) + rng.normal(0, 0.05, count)).clip(0, 1)], 1)


POPULATION = hs.populations.Simulator(simulated, name="waves", bounds={"0": (0, 1), "1": (0, 1)})


def main() -> None:
    """Measure how far the predictions move, and release them once."""
    s = hs.sample_sensitivity(
        predictions,
        POPULATION,
        rows=ROWS,
        gamma=0.05,
        symmetric=True,
        batch=True,
        batch_rows=2**14,
        workers=1,
    )
    print(f"trained on {s.calls} tables on {DEVICE}, in {s.sampling.dtype}: {s.value:.2g}")
    private = simulated(np.random.default_rng(7), ROWS)
    released = hs.release(predictions, private, hs.Laplace(s, epsilon=2))
    exact = predictions(private[None])[0].cpu().numpy()
    for x, value, true in zip(PUBLIC[:, 0], released.value, exact, strict=True):
        print(f"at {x:.1f}: {value:.2f} (without noise {true:.2f})")


if __name__ == "__main__":
    main()
