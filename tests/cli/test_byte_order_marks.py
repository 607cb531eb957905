"""What an editor saved with a byte-order mark is read as what it is without one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.commands import ended

import hushed as hs
from hushed.cli._audit_pairs import _pairs_in_file
from hushed.cli._written import check_targets
from hushed.plots import certificate_page
from hushed.server._config import FILE, read_settings
from hushed.statements import make_key, sign
from hushed.workbench._views.sources import list_functions

MARK = b"\xef\xbb\xbf"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marks")
    query = hs.table(pa.table({"a": [1, 2]})).count()
    known, (private, public) = hs.certify(query.release(epsilon=1)), make_key()
    for name, content in {
        "stays.csv": b"a\n1\n2\n",
        "known.json": known.to_json().encode(),
        "signed.json": sign(known, private).encode(),
        "key": private,
        "key.pub": public,
        "question.toml": hs.Query.of(query).to_toml().encode(),
        "pairs.json": b"[[[0.0], [1.0]]]",
        "f.py": b"def f(rows):\n    return float(rows.mean())\n",
        FILE: b'[ledger]\nurl = "sqlite:///marked.db"\n',
    }.items():
        (folder / name).write_bytes(MARK + content)
    (folder / "key").chmod(0o600)
    (folder / "wide.json").write_text(known.to_json(), encoding="utf-16")
    return folder


def test_commands_read_certificates_keys_and_questions(folder: Path) -> None:
    for words in (
        "verify known.json",
        "verify wide.json",
        "verify signed.json --key key.pub",
        "keys show key",
        "query stays.csv --file question.toml --quote --epsilon 1",
    ):
        end = ended(*words.split(), cwd=folder)
        assert end.returncode == 0, (words, end.stderr)


def test_texts_are_read_with_the_mark(folder: Path) -> None:
    """As `read_text` gives them, for it keeps the mark."""
    for name in ("known.json", "signed.json"):
        text = (folder / name).read_text("utf-8")
        assert hs.verify(text).agreement == "bits"
        assert certificate_page(text)
    assert hs.Query.from_toml((folder / "question.toml").read_text("utf-8")).aggregates


def test_other_readers_take_it_too(folder: Path) -> None:
    """Pairs of an audit, settings of a server, and functions that the workbench lists."""
    assert len(_pairs_in_file(str(folder / "pairs.json"))) == 1
    assert read_settings(folder).ledger.url == "sqlite:///marked.db"
    assert [each.spec for each in list_functions(folder, ["f.py"])[0]] == ["f.py:f"]


def test_a_key_is_not_written_over_and_a_former_certificate_is(folder: Path) -> None:
    with pytest.raises(hs.errors.ParameterError, match="is a private key"):
        check_targets({"--out": folder / "key"}, [], force=True)
    check_targets({"--out": folder / "known.json"}, [], force=False)
