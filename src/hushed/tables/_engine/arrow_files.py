"""Arrow files, of which opening reads the schema alone; queries read the rows, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hushed.errors import BadRows
from hushed.tables._engine.frames import make_readable


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowFile:
    """An Arrow file of which only the schema was read.

    DuckDB asks an object with these two methods for a new stream of rows at each scan, and reads
    nothing to plan a query. The file is not mapped: of a mapped one that is cut, whoever reads on
    is killed.
    """

    path: Path
    schema: Any = field(repr=False)  # as it is read, with names of our own

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa  # noqa: PLC0415

        reader = pa.RecordBatchReader.from_batches(self.schema, self._read_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _read_batches(self) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415

        with pa.OSFile(str(self.path)) as file, pa.ipc.open_file(file) as reader:
            for place in range(reader.num_record_batches):
                rows = make_readable(pa.Table.from_batches([reader.get_batch(place)]))
                yield from rows.rename_columns(self.schema.names).to_batches()


def read_arrow_schema(path: Path) -> Any:
    """Read the schema of an Arrow file."""
    import pyarrow as pa  # noqa: PLC0415

    with pa.OSFile(str(path)) as file:
        if file.read(4) == b"FEA1":
            raise BadRows(
                f"{path.name} is a Feather file of version 1, which is read no more: write the "
                "table again, as an Arrow (or Feather version 2) file or as Parquet"
            )
        with pa.ipc.open_file(file) as reader:
            return reader.schema
