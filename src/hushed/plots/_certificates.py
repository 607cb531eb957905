"""A certificate as a page: what was released, the promise in words, and a picture."""

from __future__ import annotations

import json
from typing import Any

from hushed._ground.calls import called_as
from hushed._ground.printing import flat, format_up
from hushed.auditing import AuditReport
from hushed.errors import ParameterError
from hushed.fitting import MovementCheck, PopulationCheck
from hushed.plots._audits import draw_for_certificate
from hushed.plots._figures import COLOURS, altair_or_refuse, draw_svg, require_kind, shows_offline
from hushed.plots._fits import moved_figure, population_figure
from hushed.plots._ledgers import budget_over_time
from hushed.plots._pages import render_page
from hushed.releasing import Certificate
from hushed.releasing._neighbour_words import list_numbers, name_trials, name_units
from hushed.releasing._population_words import say_limits
from hushed.sensitivity import Sensitivity
from hushed.sensitivity._remarks import list_kept_ranks
from hushed.statements import Statement
from hushed.statements._budgets import BudgetReport
from hushed.statements._kinds import read_record
from hushed.statements._releases import list_numbers_of, split_paragraph
from hushed.statements._signing import is_signed, read_signer
from hushed.statements._statement import is_statement, list_context

_BLUE, _ORANGE = COLOURS[:2]
_MOVEMENTS = "Sampled movements"


@called_as("hs.plots.movement_figure(certificate)")
@shows_offline
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
    given: object = certificate
    if isinstance(given, Sensitivity):
        raise ParameterError(
            "certificate must be a Certificate, got Sensitivity: release with it, and give "
            "released.certificate",
            parameter="certificate",
        )
    require_kind("certificate", certificate, Certificate)
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
    told = f"{pairs} {drawn} of {of} from the population; gamma = "
    told += f"{format_up(certificate.guarantee.gamma)}, {sampling.calibration}"
    limits = say_limits(sampling)
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
    x = alt.X("movement:Q").title(
        f"movement of the answer between neighbours ({certificate.norm} norm, unit of the answer)"
    )
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
                subtitle=[told, limits] if limits else told,
            ),
        )
        .configure_view(stroke=None)
    )


@called_as("hs.plots.certificate_page(certificate)")
def certificate_page(
    certificate: Certificate | Statement | str | bytes, *, key: bytes | None = None
) -> str:
    """Write a certificate as one self-contained HTML page, which prints on two sides.

    Parameters
    ----------
    certificate : Certificate, Statement, str or bytes
        Any certificate, or its JSON, signed or not; one of `hushed.certify` shows what was
        released, too.
    key : bytes, optional
        Public key of whoever has to have signed it, in PEM. Without it the page of a signed
        certificate says that the signature was not checked.

    Returns
    -------
    str
        HTML without references to anything outside it, and with the certificate as data, which is
        not printed; holds no private value.

    Raises
    ------
    ParameterError
        If it is no certificate, or no signature of the key fits.
    MissingExtra
        If the extra ``hushed[plot]`` is not installed. A page without a picture, such as that of an
        answer, needs Jinja2 alone.
    """
    require_kind("certificate", certificate, Certificate, Statement, str, bytes)
    if isinstance(certificate, str | bytes) and is_signed(certificate):
        statement, signer = read_signer(certificate, key)
        shown = _show_statement(statement)
        text = certificate if isinstance(certificate, str) else _decode(certificate)
        return render_page(
            **shown | {"rows": [("signed by", signer), *shown["rows"]], "json": text}
        )
    if key is not None:
        raise ParameterError("the certificate is not signed: leave key out", parameter="key")
    if isinstance(certificate, str | bytes):
        read = Statement if is_statement(certificate) else Certificate
        certificate = read.from_json(certificate)
    if isinstance(certificate, Statement):
        return render_page(**_show_statement(certificate))
    return render_page(
        title="a private release",
        rows=list_numbers_of(certificate),
        picture=_draw_movements(certificate),
        caption=_MOVEMENTS,
        paragraphs=[split_paragraph(each) for each in certificate.explain().split("\n\n")],
        json=certificate.to_json(),
    )


def _show_statement(statement: Statement) -> dict[str, Any]:
    """Gather what a page shows of a statement."""
    reading, picture, caption = read_record(statement.record), "", ""
    if statement.kind == "release":
        picture, caption = _draw_movements(reading.subject.certificate), _MOVEMENTS
    if statement.kind == "budget":
        picture, caption = _draw_history(reading.subject), "How the budget was used"
    if isinstance(reading.subject, PopulationCheck):
        picture = draw_svg(population_figure(reading.subject).properties(height=180))
        caption = "The private table among public ones"
    if isinstance(reading.subject, MovementCheck):
        picture = draw_svg(moved_figure(reading.subject))
        caption = "Pairs that move further"
    if isinstance(reading.subject, AuditReport):
        picture, caption = draw_for_certificate(reading.subject), "What was found"
    context = [(name, flat(value)) for name, value in list_context(statement)]
    return {
        "title": reading.title,
        "rows": [*context, *reading.rows],
        "tables": reading.tables,
        "warnings": reading.warnings,
        "outsider": reading.outsider,
        "picture": picture,
        "caption": caption,
        "paragraphs": reading.paragraphs,
        "digest": statement.digest,
        "json": statement.to_json(),
    }


def _draw_movements(certificate: Certificate) -> str:
    """Draw the sampled movements, if there are any."""
    if certificate.sampling is None or not certificate.sampling.movements:
        return ""
    return draw_svg(movement_figure(certificate))


def _draw_history(report: BudgetReport) -> str:
    """Draw how much of a budget was used after each charge."""
    return draw_svg(budget_over_time(report.budget, report.history).properties(height=180))


def _decode(text: bytes) -> str:
    """Decode JSON, in whichever of its encodings."""
    return text.decode(json.detect_encoding(text))
