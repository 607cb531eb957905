"""Files of an answer and of its question; none has a password, or a path unless it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hushed.errors import NotFound, ParameterError
from hushed.ledger import Ledger
from hushed.plots import certificate_page
from hushed.statements import Statement, certify
from hushed.tables import Answer, Query
from hushed.tables._layout import render

_NAMELESS = "your-table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An answer as the ledger stores it, with who asked and what for."""

    answer: Answer
    budget: str
    number: int
    actor: str = ""
    note: str = ""
    data: str = ""  # name of the data set, no path


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file to download; its name is ours."""

    name: str
    kind: str  # media type
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the table lies, as exports name it."""

    address: str
    place: str = "rows"
    header: str | None = None
    newlines_in_values: bool = False

    def without_path(self) -> Source:
        """Leave out folders, and the whole address of a database."""
        if "://" in self.address:
            kind = self.address.partition("://")[0]
            told = f"{kind}://{_NAMELESS}" if kind == "postgresql" else f"{kind}:///{_NAMELESS}.db"
            return replace(self, address=told)
        if self.address.endswith("/"):
            return replace(self, address=f"{_NAMELESS}/")
        suffix = self.address.rpartition(".")[2]
        plain = suffix if suffix.isascii() and suffix.isalnum() else "csv"
        return replace(self, address=f"{_NAMELESS}.{plain}")


def certify_answer(stored: Stored, ledger: Ledger) -> Statement:
    """Certify an answer with its entry in the ledger."""
    return certify(
        stored.number,
        data=stored.data,
        note=stored.note,
        actor=stored.actor,
        ledger=ledger,
        budget=stored.budget,
    )


def write_file(kind: str, stored: Stored, ledger: Ledger, source: Source) -> File:
    """Write a file of an answer.

    Raises
    ------
    NotFound
        If there is no such kind of file.
    """
    name = f"answer-{stored.number}"
    answers: Mapping[str, Callable[[], tuple[str, str, bytes]]] = {
        "csv": lambda: (f"{name}.csv", "text/csv", render(stored.answer, ".csv")),
        "json": lambda: (f"{name}.json", "application/json", render(stored.answer, ".json")),
        "certificate": lambda: (
            f"certificate-{stored.number}.json",
            "application/json",
            certify_answer(stored, ledger).to_json().encode(),
        ),
        "report": lambda: (
            f"certificate-{stored.number}.html",
            "text/html",
            certificate_page(certify_answer(stored, ledger)).encode(),
        ),
    }
    if kind in answers:
        return _file(*answers[kind]())
    asked, promise = stored.answer.asked, stored.answer.guarantee
    if asked is None:
        raise ParameterError("the answer does not say what was asked")
    terms: dict[str, Any] = {"epsilon": promise.epsilon, "delta": promise.delta}
    terms["noise"] = asked.noise
    return write_question(kind, asked.query, source, terms, name=f"question-{stored.number}")


def write_question(
    kind: str, query: Query, source: Source, terms: Mapping[str, Any], *, name: str
) -> File:
    """Write a question as Python, as a notebook or as a command."""
    where = (source.address, source.place)
    how: dict[str, Any] = {"header": source.header, "newlines_in_values": source.newlines_in_values}
    priced = {**terms, **how}
    writers: Mapping[str, Callable[[], tuple[str, str, bytes]]] = {
        "python": lambda: (f"{name}.py", "text/x-python", query.to_python(*where, **how).encode()),
        "notebook": lambda: (
            f"{name}.ipynb",
            "application/x-ipynb+json",
            query.to_notebook(*where, **priced).encode(),
        ),
        "command": lambda: (
            f"{name}.sh",
            "text/x-sh",
            f"{query.to_cli(*where, **priced)}\n".encode(),
        ),
    }
    if kind not in writers:
        raise NotFound(
            f"there is no such file; there are csv, json, certificate, report, {', '.join(writers)}"
        )
    return _file(*writers[kind]())


def _file(name: str, kind: str, content: bytes) -> File:
    return File(name=name, kind=kind, content=content)
