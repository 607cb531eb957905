"""Results on disk: data, pictures, verdict, and a manifest that shows a later run what is done."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hushed
from hushed.errors import ParameterError
from papers.experiment import Experiment, Row, Settings, Verdict
from papers.internals import digest_sources, is_ledger, save_figure

__all__ = ["RESULTS", "RunStore", "run_digest"]

RESULTS = (".csv", ".svg", ".png", ".txt")
"""Endings of the files of a finished figure, without its manifest."""
_SOURCES = Path(str(hushed.__file__)).parent, Path(__file__).parent


def run_digest(experiment: Experiment, settings: Settings, seed: int) -> str:
    """Name a run by all that decides its result.

    Parameters
    ----------
    experiment : Experiment
        Figure of a paper.
    settings : dict
        Its settings.
    seed : int
        Seed of the run.

    Returns
    -------
    str
        Digest of name, settings, seed, version and source code, of the library and of the papers:
        any change of the code counts as another run.
    """
    facts = [experiment.name, settings, seed, version("hushed"), digest_sources(*_SOURCES)]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStore:
    """The files of one figure.

    Parameters
    ----------
    folder : Path
        Folder of the paper; made when something is written.
    figure : str
        Name of the figure: the stem of all its files.
    run : str
        What `run_digest` gave.
    """

    folder: Path
    figure: str
    run: str

    def path(self, suffix: str) -> Path:
        """Name the file with a suffix such as ``.csv``; it need not exist."""
        return self.folder / f"{self.figure}{suffix}"

    def _make_folder(self) -> None:
        """Make the folder; a ledger in it is never written over."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for suffix in (".points.jsonl", ".json", ".json.draft", *RESULTS):
            if is_ledger(self.path(suffix)):
                raise ParameterError(f"{self.path(suffix)} is a ledger; name another folder")

    def load_verdict(self) -> Verdict | None:
        """Read the verdict of a finished run.

        Returns
        -------
        Verdict or None
            None if this very run did not finish, or one of its files is gone or was changed.
        """
        try:
            manifest = json.loads(self.path(".json").read_text(encoding="utf-8"))
            same = manifest["run"] == self.run and all(
                _digest(self.folder / name) == digest for name, digest in manifest["files"].items()
            )
            found = manifest["verdict"]
            return Verdict(**{**found, "notes": tuple(found["notes"])}) if same else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def load_points(self) -> dict[str, list[Row]]:
        """Read the points that an interrupted run of the same name finished.

        Returns
        -------
        dict from str to list of rows
            By key; a line that was cut off is left out.
        """
        found: dict[str, list[Row]] = {}
        try:
            lines = self.path(".points.jsonl").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return found
        for line in lines:
            try:
                entry = json.loads(line)
                if entry["run"] == self.run:
                    found[entry["point"]] = entry["rows"]
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def append_point(self, key: str, rows: list[Row]) -> None:
        """Append the rows of one finished point, by its key."""
        self._make_folder()
        line = json.dumps({"run": self.run, "point": key, "rows": rows})
        # A line that was cut off by an interruption ends here, so that it spoils no other one.
        with self.path(".points.jsonl").open("a", encoding="utf-8") as journal:
            journal.write(f"\n{line}\n")
            journal.flush()
            os.fsync(journal.fileno())

    def finish(
        self, experiment: Experiment, settings: Settings, seed: int, rows: list[Row]
    ) -> Verdict:
        """Write data, pictures and verdict, and the manifest last.

        Parameters
        ----------
        experiment : Experiment
            Figure of a paper.
        settings : dict
            Its settings.
        seed : int
            Seed of the run.
        rows : list of dict
            All rows.

        Returns
        -------
        Verdict
            Computed from the rows.
        """
        self._make_folder()
        self.path(".json").unlink(missing_ok=True)
        verdict = experiment.verdict(rows)
        _write_csv(self.path(".csv"), rows)
        chart = experiment.plot(rows)
        for suffix in (".svg", ".png"):
            save_figure(chart, self.path(suffix))
        self.path(".txt").write_text(f"{experiment.title}\n{verdict.text()}\n", encoding="utf-8")
        manifest: dict[str, Any] = {
            "paper": experiment.paper,
            "figure": experiment.figure,
            "title": experiment.title,
            "settings": settings,
            "seed": seed,
            "version": version("hushed"),
            "run": self.run,
            "verdict": asdict(verdict),
            "files": {self.path(end).name: _digest(self.path(end)) for end in RESULTS},
        }
        draft = self.path(".json.draft")
        draft.write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        draft.replace(self.path(".json"))
        self.path(".points.jsonl").unlink(missing_ok=True)
        return verdict


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write_csv(path: Path, rows: list[Row]) -> None:
    if not rows:
        raise ParameterError(f"{path.stem} has no data to write")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
