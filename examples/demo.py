"""The main job on real rows: a private Poisson regression of doctor visits, for people.

The rows are the RAND Health Insurance Experiment (20,190 person-years), which ships inside the
statsmodels package. It has no column that says whose a year is. But the years of one person follow
one another, with the same insurance plan and the same answers on health. So each run of such rows
is taken as one person here: most are three or five years long, as the experiment was for most
people. Brothers and sisters who answered alike are one person then, and protected together.

One part of ten people in fifty plays the published pilot study; the rest plays the private table.
Nobody has proved how far one person, with all years, can move these coefficients, so the movement
is sampled. The pilot is smaller than the private table, so that no whole table can be drawn from
it. The model is fitted on blocks of 52 people instead, and the average of the coefficients is
released.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import hushed as hs
from hushed.plots import certificate_page, movement_figure, save_figure

BLOCK = 52  # people; the pilot makes 19 disjoint tables of 53, as many as gamma = 0.05 takes
SAME = [1, 2, 5, 6, 7, 8, 9]  # columns that are the same in all years of a person: plan and health
COLUMNS = (
    "person,mdvis,lncoins,idp,lpi,fmde,physlm,disea,hlthg,hlthf,hlthp"  # as statsmodels names them
)
NAMES = ("baseline", "full co-payment", "physical limitation", "chronic disease, 10 points")

Rows = NDArray[np.float64]


def visits_model(rows: Rows) -> Rows:
    """Poisson regression of yearly doctor visits; the coefficients are logarithms of rates."""
    visits = rows[:, 1]  # before it is the person, whose number means nothing here
    factors = np.column_stack(
        [np.ones(len(rows)), rows[:, 2] / np.log(101), rows[:, 6], rows[:, 7] / 10]
    )
    coefficients = np.zeros(4)
    coefficients[0] = np.log(visits.mean() + 0.01)
    for _ in range(8):  # Newton's method; converges to ten digits
        rate = np.exp(factors @ coefficients)
        step = np.linalg.solve(factors.T @ (factors * rate[:, None]), factors.T @ (visits - rate))
        coefficients = coefficients + step
    return coefficients


def load() -> tuple[Rows, Rows]:
    """Split the experiment into a public pilot and a private table; column 0 is the person."""
    from statsmodels.datasets import randhie

    table = randhie.load_pandas().data.to_numpy(dtype=np.float64)
    begins = (table[1:, SAME] != table[:-1, SAME]).any(axis=1)
    person = np.concatenate([[0], np.cumsum(begins)])
    pilot = (person // 10) % 5 == 0
    table = np.column_stack([person, table])
    return table[pilot], table[~pilot]


def main(folder: Path) -> None:
    """Sample, calibrate, release, certify, draw."""
    public, private = load()
    others, people = (len(np.unique(rows[:, 0])) for rows in (public, private))
    print(f"{people} private people with {len(private)} years,", end=" ")
    print(f"{others} public people with {len(public)} to sample from")

    model = hs.Blockwise(visits_model, rows=BLOCK, user=0)
    begun = time.perf_counter()
    sensitivity = hs.sample_sensitivity(
        model,
        hs.populations.PublicTable(public, name="RAND HIE, pilot fifth"),
        rows=people,
        user=0,  # the column of people: neighbours differ in all years of one of them
        gamma=0.05,
        calibration="marginal",
        symmetric=True,
        progress=True,
    )
    seconds = time.perf_counter() - begun
    print(f"{sensitivity.pairs} pairs of {BLOCK} people measured in {seconds:.1f} s")
    print(f"the average of {people // BLOCK} fits moves by {sensitivity.value:.5f} in l1\n")

    mechanism = hs.Laplace(sensitivity, epsilon=1.0)
    released = hs.release(model, private, mechanism)

    # Only because these rows are public anyway: on private rows both others stay unseen.
    columns = zip(NAMES, released.value, model(private), visits_model(private), strict=True)
    print(f"{'times as many visits':28}{'released':>10}{'average':>10}{'one fit of all':>16}")
    for name, noisy, exact, whole in columns:
        print(f"{name:28}{np.exp(noisy):>10.3f}{np.exp(exact):>10.3f}{np.exp(whole):>16.3f}")
    error = mechanism.accuracy(beta=0.05, dims=4)
    print(f"\nwith probability 95 % all four logarithms are within {error:.4f} of the averages\n")
    print(released.certificate.explain())

    folder.mkdir(exist_ok=True)
    (folder / "certificate.json").write_text(released.certificate.to_json() + "\n")
    (folder / "certificate.html").write_text(certificate_page(released.certificate))
    save_figure(movement_figure(released.certificate), folder / "movements.svg")
    save_figure(movement_figure(released.certificate), folder / "movements.png")
    print(f"\nwritten to {folder}/: certificate.json, certificate.html, movements.svg, .png")
    # Public here: the visits are those of the experiment that ships with statsmodels.
    np.savetxt(
        folder / "visits.csv", private, fmt="%.10g", delimiter=",", header=COLUMNS, comments=""
    )
    place = Path(os.path.relpath(sys.executable)).parent  # of this Python, active or not
    print("ask this table without Python:")
    print(f"    {place / 'pip'} install '.[workbench]'")
    print(f"    {place / 'hushed'} workbench {folder}    # and pick visits.csv there")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
