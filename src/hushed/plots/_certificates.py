"""A certificate as a page: the promise in words, and the sampled movements as a picture."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

from hushed._printing import flat, format_down, format_up
from hushed.errors import ParameterError
from hushed.plots._figures import COLOURS, altair_or_refuse, clean_spec
from hushed.releasing import Certificate
from hushed.releasing._neighbour_words import list_numbers, name_trials, name_units
from hushed.sensitivity._remarks import list_kept_ranks

_BLUE, _ORANGE = COLOURS[:2]


_UNITS = {
    "inverse-sensitivity": " rows",
    "stable-mode": " rows",
    "smooth": " smooth sensitivities (private)",
}
_OF_BLOCKS = {"exponential": " blocks", "votes": " votes"}


def movement_figure(certificate: Certificate) -> Any:
    """Draw the sampled movements and the one that was kept.

    Parameters
    ----------
    certificate : Certificate
        With a sampled sensitivity from a public population.

    Returns
    -------
    altair.LayerChart
        Share of pairs (or tables) that move at most so far, and the kept rank as a line.

    Raises
    ------
    ParameterError
        If the certificate holds no movements.
    MissingExtra
        If the extra ``hushed[plot]`` is not installed.
    """
    alt = altair_or_refuse()
    sampling = certificate.sampling
    if sampling is None or not sampling.movements:
        raise ParameterError(
            "the certificate holds no sampled movements: its sensitivity was proven, or its "
            "population was made from private rows"
        )
    sizes = sampling.sizes or (sampling.rows // sampling.blocks,)
    of, pairs = f"{list_numbers(sizes)} {name_units(sampling)[sizes[-1] > 1]}", sampling.pairs
    drawn = name_trials(sampling)
    ranks = list_kept_ranks(pairs).tolist()
    points = [
        {"movement": value, "share": (rank + 1) / pairs}
        for rank, value in zip(ranks, sampling.movements, strict=True)
    ]
    kept = [
        {
            "movement": certificate.sensitivity,
            "label": f"kept: number {sampling.rank} of {sampling.pairs}",
        }
    ]
    x = alt.X("movement:Q").title(f"movement of the answer between neighbours ({certificate.norm})")
    curve = (
        alt.Chart(alt.Data(values=points))
        .mark_line(interpolate="step-after", color=_BLUE)
        .encode(x=x, y=alt.Y("share:Q").title(f"share of sampled {drawn}").axis(format="%"))
    )
    rule = alt.Chart(alt.Data(values=kept)).mark_rule(color=_ORANGE, strokeDash=[6, 3], size=2)
    text = alt.Chart(alt.Data(values=kept)).mark_text(
        align="right", dx=-6, y=200, color=_ORANGE, fontSize=12
    )
    return (
        (curve + rule.encode(x="movement:Q") + text.encode(x="movement:Q", text="label:N"))
        .properties(
            width=560,
            height=280,
            title=alt.Title(
                f"How far {sampling.function} moved",
                subtitle=f"{pairs} {drawn} of {of} from the population; "
                f"gamma = {format_up(certificate.guarantee.gamma)}, {sampling.calibration}",
            ),
        )
        .configure_view(stroke=None)
    )


def certificate_page(certificate: Certificate) -> str:
    """Write a certificate as one self-contained HTML page.

    Parameters
    ----------
    certificate : Certificate
        Any certificate.

    Returns
    -------
    str
        HTML without references to anything outside it; holds no private value.

    Raises
    ------
    MissingExtra
        If the extra ``hushed[plot]`` is not installed.
    """
    altair_or_refuse()
    import jinja2  # noqa: PLC0415
    import vl_convert  # noqa: PLC0415

    picture = ""
    if certificate.sampling is not None and certificate.sampling.movements:
        picture = vl_convert.vegalite_to_svg(clean_spec(movement_figure(certificate)))
    page = files("hushed.plots").joinpath("certificate.html").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True).from_string(page)
    g, made = certificate.guarantee, certificate.mechanism
    whose = ", the caller's own" if made.stated else ""
    unit = _UNITS.get(made.name, "")
    if made.name == "blocks":
        unit = _OF_BLOCKS.get(str(made.parameters["aggregate"]), "")
    return template.render(
        certificate=certificate,
        picture=picture,
        rows=[
            ("epsilon", format_up(g.epsilon)),
            ("delta", format_up(g.delta)),
            ("gamma", f"{format_up(g.gamma)} ({g.protect})"),
            ("neighbours", f"{g.neighbours}, {_name_change(certificate)}"),
            ("sensitivity", f"{certificate.sensitivity!r} ({certificate.norm})"),
            (
                "mechanism",
                f"{made.name}{whose}, scale {_describe_size(made.scale, format_down)}{unit}",
            ),
            ("accuracy at 95 %", f"{_describe_size(made.accuracy, format_up)}{unit}"),
            ("created", flat(certificate.created)),
        ],
        paragraphs=certificate.explain().split("\n\n"),
        json=certificate.to_json(),
    )


def _name_change(certificate: Certificate) -> str:
    """Name what two neighbours differ in."""
    unit, distance = certificate.guarantee.unit, certificate.guarantee.distance
    if distance > 1:
        return f"{distance} {unit}s at once"
    return f"one {'person' if certificate.person else unit}"


def _describe_size(size: float | None, spell: Callable[[float], str]) -> str:
    return "not stated" if size is None else spell(size)
