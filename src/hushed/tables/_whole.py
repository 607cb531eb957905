"""Private columns as they are, for a function that is released by `hushed.release`.

Queries fetch aggregates. A function of rows is given the rows, in the process that adds the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hushed.tables import _engine as engine
from hushed.tables._table import Table

_READ = "no row was read"


def read_columns(table: Table, columns: Sequence[str], seconds: float) -> dict[str, list[Any]]:
    """Read columns of a table; where users are protected, rows without a user are left out.

    Before a row is read the engine plans the query: what fails there does not depend on the rows.
    DuckDB gives the rows in the order of the file where it was confined to that. Other engines, and
    views, have no order, and the rows of another person could decide it: how a join is done depends
    on how many there are. There the rows of people are sorted.
    """
    connection, clock = table.connection, engine.Clock.start(seconds)
    user = () if table.user is None else (table.user,)
    places = {name: f"c{i}" for i, name in enumerate(dict.fromkeys((*columns, *user)))}
    texts = {short for name, short in places.items() if connection.casts[name].type == "string"}
    with engine.hold(connection, clock, _READ):
        rows = engine.normalise_columns(connection, places)
        if user:
            rows = rows.filter(rows[places[user[0]]].notnull())
        send, read = connection.engine.send_text, connection.engine.read_text
        sent = {
            short: send(rows[short]) if short in texts else rows[short]
            for short in (places[name] for name in columns)
        }
        asked = rows.select(**sent)
        if user and (connection.warnings or not connection.engine.keeps_order):
            asked = asked.order_by(sorted(sent, key=lambda short: short != places[user[0]]))
        found = engine.fetch(connection, engine.plan(connection, asked, clock), clock)
    for short in texts & set(found):
        found[short] = [None if each is None else read(each) for each in found[short]]
    return {name: found[places[name]] for name in columns}
