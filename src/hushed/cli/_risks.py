"""The command ``hushed risk``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from hushed._ground.decimals import decimal_of, stated_below
from hushed._ground.printing import format_down, format_up
from hushed.cli._options import JsonOption, PlotOption
from hushed.cli._outcome import finish, print_line, print_note, print_notes, print_table
from hushed.cli._written import check_figure
from hushed.errors import ParameterError


def risk(
    *,
    epsilon0: Annotated[float, typer.Option(help="Level the noise was calibrated to, in nats.")],
    epsilon: Annotated[float | None, typer.Option(help="Stronger level to assess.")] = None,
    confidence: Annotated[
        float | None, typer.Option(help="Confidence to find the stronger level for.")
    ] = None,
    dims: Annotated[int, typer.Option(help="Coordinates of the answer.")] = 1,
    share: Annotated[
        float | None,
        typer.Option(help="Share of sampled sensitivities at or below the one used (eta_k)."),
    ] = None,
    rho: Annotated[
        float, typer.Option(help="Accuracy asked of the empirical distribution of sensitivities.")
    ] = 0.01,
    samples: Annotated[int | None, typer.Option(help="Sampled pairs; needed with --share.")] = None,
    eta: Annotated[float, typer.Option(help="True over sampled sensitivity.")] = 1.0,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how likely a stronger level is: as published, and exactly."""
    with finish(json=as_json) as result:
        check_figure(plot)
        _assess(result, epsilon0, epsilon, confidence, dims)
        if share is not None:
            result["data"] = _from_data(result, (share, rho, samples, eta))
        elif samples is not None:
            raise ParameterError("--samples describes sampled sensitivities: give --share, too")
        if plot is not None:
            from hushed.plots import _pricing as pricing  # noqa: PLC0415
            from hushed.plots import save_figure  # noqa: PLC0415

            save_figure(pricing.risk_against_level([epsilon0], dims=[dims]), plot)
            print_note(f"written to {plot}")
        if not as_json:
            _show(result)


def _assess(
    result: dict[str, Any],
    epsilon0: float,
    epsilon: float | None,
    confidence: float | None,
    dims: int,
) -> None:
    """Fill in the levels and what is known of each."""
    from hushed import risk as risks  # noqa: PLC0415

    if confidence is not None and epsilon is not None:
        raise ParameterError("give --epsilon or --confidence, not both")
    result.update(epsilon0=epsilon0, dims=dims)
    if confidence is not None:
        levels = [risks.published_epsilon(confidence, epsilon0, dims)]
        result["confidence"] = confidence
        result["published_epsilon"] = levels[0]
        result["exact_epsilon"] = risks.epsilon(stated_below(1 - decimal_of(confidence)), epsilon0)
    elif epsilon is not None:
        levels = [epsilon]
    else:
        levels = [epsilon0 * i / 10 for i in range(11)]
    result["levels"] = [asdict(risks.assess(level, epsilon0, dims=dims)) for level in levels]
    result["over_promises_from"] = risks.crossing(epsilon0) if dims == 1 else None


def _show(result: dict[str, Any]) -> None:
    found = result["levels"]
    columns = ("epsilon", "published_risk", "delta", "loss_exceeds")
    print_table(
        f"Laplace mechanism at epsilon0 = {format_up(result['epsilon0'])}, "
        f"{result['dims']} coordinate(s)",
        ["level", "published risk", "exact delta", "exact Pr(|loss| > level)"],
        [[format_up(one[column]) for column in columns] for one in found],
    )
    if "data" in result:
        _say_data(result["data"])
    if "confidence" in result:
        print_line(
            f"Confidence {format_down(result['confidence'])}: published level "
            f"{format_up(result['published_epsilon'])}; the level that holds with delta "
            f"{format_up(stated_below(1 - decimal_of(result['confidence'])))} is "
            f"{format_up(result['exact_epsilon'])}."
        )
    if len(found) == 1:
        print_notes(found[0]["warnings"])
    elif result["over_promises_from"] is not None:
        print_note(
            f"above level {format_down(result['over_promises_from'])} the published risk is "
            "below the exact delta; decide by the exact one"
        )


def _from_data(
    result: dict[str, Any], sampled: tuple[float, float, int | None, float]
) -> dict[str, Any]:
    """Confidence from the randomness of the data, and from both sources at each level."""
    from hushed import risk as risks  # noqa: PLC0415

    share, rho, samples, eta = sampled
    if samples is None:
        raise ParameterError("--share needs --samples, the number of sampled pairs")
    epsilon0, dims = result["epsilon0"], result["dims"]
    levels = [one["epsilon"] for one in result["levels"]]
    return {
        "share": share,
        "rho": rho,
        "samples": samples,
        "eta": eta,
        "confidence": risks.data_confidence(share, rho=rho, samples=samples),
        "combined": [
            risks.combined_confidence(
                level, epsilon0, share=share, rho=rho, samples=samples, eta=eta, dims=dims
            )
            for level in levels
        ],
        "levels": levels,
    }


def _say_data(found: dict[str, Any]) -> None:
    rows = zip(found["levels"], found["combined"], strict=True)
    print_table(
        f"As published, with a sensitivity sampled from {found['samples']} pairs",
        ["level", "confidence from noise and data"],
        [[format_up(level), format_down(one)] for level, one in rows],
    )
    print_line(
        f"The sensitivity is large enough with confidence {format_down(found['confidence'])} "
        "(Theorem 5, by the DKW inequality); hs.sample_sensitivity states the exact one."
    )
