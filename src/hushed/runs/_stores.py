"""Where runs are kept: an object store, through fsspec."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hushed._ground.printing import flat, plain_path
from hushed.errors import MissingExtra, ParameterError
from hushed.runs._folders import FACTS, PART, list_names

_PUT_SECONDS = 60.0


class ObjectWriter:
    """Objects of one writer: what was added since the last one, each put whole or not at all."""

    def __init__(self, files: Any, folder: str) -> None:
        self._files, self._stem = files, f"{folder}/{uuid.uuid4().hex}"
        # Objects and trials that are put; and records that wait, with their trials. Changed in one
        # step, for Ctrl-C may come at any; an object that is put twice has one name.
        self._state: tuple[int, int, list[tuple[bytes, int]]] = (0, 0, [])
        self._put = time.monotonic()

    @property
    def kept(self) -> int:
        """Trials that are put."""
        return self._state[1]

    def append(self, record: bytes, trials: int) -> None:
        """Take a record; those of a minute are put together."""
        self._state[2].append((record, trials))
        if time.monotonic() - self._put >= _PUT_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Put what waits."""
        number, kept, waiting = self._state
        if waiting:
            content = b"".join(record for record, _ in waiting)
            with _told():
                self._files.pipe_file(f"{self._stem}-{number:06}{PART}", content)
            self._state = (number + 1, kept + sum(trials for _, trials in waiting), [])
        self._put = time.monotonic()

    def close(self) -> None:
        """Put what waits; there is nothing else to close."""
        self.sync()


@dataclass(frozen=True, slots=True)
class Store:
    """A prefix of an object store, with one prefix below it for each run, by its key."""

    files: Any
    scheme: str
    root: str

    def __str__(self) -> str:
        return plain_path(f"{self.scheme}:{self.root}")

    def prepare(self, *, private: bool) -> None:
        """Refuse what is private: nobody knows who may read an object store."""
        if private:
            raise ParameterError(
                "what is to be kept is private, and who may read an object store is not known "
                "here: keep it in a folder of this computer",
                parameter="keep",
            )

    def list_keys(self) -> list[str]:
        """Keys of the runs in it."""
        with _told():
            found = [each.split("/") for each in self.files.glob(f"{self.root}/*/*/{FACTS}")]
        return list_names((outer, key) for *_, outer, key, _ in found)

    def read_facts(self, key: str) -> str | None:
        """Read what a run says of itself; None if there is none."""
        with _told():
            try:
                found = bytes(self.files.cat_file(f"{self._of(key)}/{FACTS}"))
            except FileNotFoundError:
                return None
        return found.decode("utf-8", "replace")

    def write_facts(self, key: str, text: str) -> None:
        """Write what a run says of itself."""
        with _told():
            self.files.pipe_file(f"{self._of(key)}/{FACTS}", text.encode())

    def parts(self, key: str) -> list[tuple[str, bytes]]:
        """Read the objects of all writers of a run, by name."""
        with _told():
            self.files.invalidate_cache()
            names = sorted(self.files.glob(f"{self._of(key)}/*{PART}"))
            return [(name, bytes(self.files.cat_file(name))) for name in names]

    def writer(self, key: str) -> ObjectWriter:
        """Begin objects of one's own in a run."""
        return ObjectWriter(self.files, self._of(key))

    def measure(self, key: str) -> tuple[int, float]:
        """Bytes of a run, and when something was last written to it; 0 if unknown."""
        with _told():
            found = self.files.ls(self._of(key), detail=True)
        times = (
            each.get("LastModified") or each.get("created") or each.get("mtime") for each in found
        )
        seconds = [
            each.timestamp() if hasattr(each, "timestamp") else each for each in times if each
        ]
        return sum(int(each["size"]) for each in found), max(map(float, seconds), default=0.0)

    def remove(self, key: str) -> None:
        """Remove a run."""
        with _told():
            self.files.rm(self._of(key), recursive=True)

    def _of(self, key: str) -> str:
        return f"{self.root}/{key[:2]}/{key}"


def open_store(url: str) -> Store:
    """Find the store that an address names."""
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("keeping runs in an object store", "s3") from None
    try:
        files, root = url_to_fs(url)
    except ImportError:
        raise MissingExtra(f"an address {flat(url.partition(':')[0])}://", "s3") from None
    except ValueError:
        raise ParameterError(
            f"no store is known for {flat(url.partition(':')[0])!r}://", parameter="keep"
        ) from None
    if "file" in (files.protocol if isinstance(files.protocol, tuple) else (files.protocol,)):
        raise ParameterError(
            f"{flat(url)!r} leads to this computer: give the folder by its path alone, so that it "
            "is seen who may write there",
            parameter="keep",
        )
    return Store(files, flat(url.partition(":")[0]), root.rstrip("/"))


@contextmanager
def _told() -> Iterator[None]:
    """Turn what a store raises, of whatever class, into an `OSError` or one of ours."""
    try:
        yield
    except (OSError, ParameterError):
        raise
    except Exception as cause:
        raise OSError(f"the object store raised {type(cause).__name__}") from cause
