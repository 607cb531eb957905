"""A program that loses its Spark session in every way, and prints what was charged and said."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame
from tests.conftest import CANARY, CANARY_TEXT, NotingLedger, everything_said
from tests.engines import MASTER, begun

import hushed as hs
from hushed.errors import HushedError

warnings.simplefilter("ignore")


class Cutting(NotingLedger):
    """A ledger that ends the session with the charge."""

    def charge(self, *arguments, **named):
        super().charge(*arguments, **named)
        self.cut()


def fresh() -> tuple[SparkSession, hs.tables.table.Table]:
    session = begun(Path.cwd())
    rows = f"SELECT {CANARY} AS x, 1 AS u, '{CANARY_TEXT}' AS k"
    session.sql(rows).createOrReplaceTempView("rows")
    table = hs.table(f"spark://{MASTER}", user="u").bound_contributions(max_rows_per_user=1)
    query = table.group_by("k", keys=[CANARY_TEXT]).count().histogram("x", low=0, high=9, bins=2)
    return session, query


def told(label, ask, ledger) -> None:
    """Print how it ended, as one line."""
    before, found, said = len(ledger.log), "answered", ""
    try:
        ask()
    except HushedError as error:
        found, said = type(error).__name__, everything_said(error)
    line = {"case": label, "found": found, "charges": len(ledger.log) - before, "said": said}
    print(json.dumps(line), flush=True)


def released(label, query, ledger) -> None:
    told(label, lambda: query.release(epsilon=1.0, ledger=ledger, budget="b"), ledger)


def stops_while_collecting(session, query) -> None:
    """Stop the session when the second question after the charge has been understood."""
    collect, asked, ledger = DataFrame.toPandas, [], NotingLedger()

    def cut(frame):
        if ledger.log:
            asked.append(frame)
        if len(asked) == 2:
            session.stop()
        return collect(frame)

    DataFrame.toPandas = cut
    released("stopped while collecting", query, ledger)
    DataFrame.toPandas = collect


def main() -> None:
    session, query = fresh()
    ledger = Cutting()
    ledger.cut = session.stop
    released("stopped with the charge", query, ledger)
    released("stopped before", query, NotingLedger())
    session, query = fresh()
    released("another session", query, NotingLedger())
    stops_while_collecting(session, query)
    session, query = fresh()
    java = int(session._jvm.java.lang.ProcessHandle.current().pid())
    ledger.cut = lambda: os.kill(java, signal.SIGKILL)
    released("killed with the charge", query, ledger)
    released("killed before", query, NotingLedger())
    told("opened when killed", lambda: hs.table(f"spark://{MASTER}"), NotingLedger())


if __name__ == "__main__":
    main()
