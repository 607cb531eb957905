"""The quick run of each paper, from the command to the files."""

import csv
import json

import pytest

import papers

pytestmark = pytest.mark.slow

# Verdicts that no luck of the draw decides: closed forms, or margins of many standard errors.
SETTLED = {
    "ra17": {"table-1": True, "figure-1": True, "figure-2": True, "figure-3": True,
             "figure-4": True, "figure-8": True, "figure-9": True, "svm": None, "kde": None},
    "dbb20": {"figure-1": True, "figure-2": True, "figure-4": True, "figure-5": True,
              "figure-6": True, "figure-8": True, "figure-9": True, "figure-10": False,
              "figure-11": False, "illustration": True},
    "lo19": {"unknown-n": True, "unknown-s": True},
}  # fmt: skip


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_a_quick_run_reproduces_every_figure(paper, tmp_path):
    """Every figure gets data, pictures and a verdict; a second run reuses all of them."""
    found = list(papers.reproduce(paper, out=tmp_path, quick=True))
    assert [f.experiment.figure for f in found] == [e.figure for e in papers.experiments(paper)]
    for each in found:
        stem = each.folder / each.experiment.figure
        with stem.with_suffix(".csv").open() as stream:
            assert len(list(csv.DictReader(stream))) > 3
        assert stem.with_suffix(".svg").read_text().startswith("<svg")
        assert stem.with_suffix(".png").stat().st_size > 10_000
        told = json.loads(stem.with_suffix(".json").read_text())["verdict"]
        assert told["measured"] in stem.with_suffix(".txt").read_text()
        assert "nan" not in each.verdict.text().split()
    verdicts = {f.experiment.figure: f.verdict.agrees for f in found}
    assert verdicts | SETTLED[paper] == verdicts
    again = list(papers.reproduce(paper, out=tmp_path, quick=True))
    assert all(each.reused for each in again)
