"""Queries in many stages are compiled in time that grows with their number."""

import ibis
import pyarrow as pa
import pytest
from ibis.backends.sql.compilers.base import SQLGlotCompiler
from sqlglot.expressions import Expression

import hushed as hs
from hushed.tables._engine.compilation import compile_sql
from hushed.tables._engine.operations import materialise


def staged(stages):
    """A query in so many stages, each computed once."""
    rows = hs.table(pa.table({"x": [1.0, 2.0]})).connection.rows
    rows = rows.select(x=rows[rows.columns[0]])
    for _ in range(stages):
        rows = materialise(rows.mutate(x=rows.x * 2))
    return rows


def test_no_stage_is_copied_with_all_that_lies_below_it(monkeypatch):
    """Twice as many stages copy no more than twice as many parts of the query."""
    copied = []
    deep = Expression.__deepcopy__

    def counting(self, memo):
        copied.append(sum(1 for _ in self.walk()))
        return deep(self, memo)

    monkeypatch.setattr(Expression, "__deepcopy__", counting)
    sizes = []
    for stages in (4, 8):
        copied.clear()
        compile_sql(staged(stages))
        sizes.append(sum(copied))
    assert sizes[1] <= 2 * sizes[0]


@pytest.mark.parametrize("stages", [1, 3])
def test_the_compiled_query_gives_what_the_query_gives(stages):
    """The same rows as by the compiler of Ibis, which is left as it was."""
    query = staged(stages)
    backend = query.get_backend()
    given = backend.compiler
    text = compile_sql(query)
    assert text.count("LIMIT") == stages
    assert backend.compiler is given
    assert type(given).visit_Limit is SQLGlotCompiler.visit_Limit
    assert backend.con.sql(text).fetchall() == [(2.0**stages,), (2.0 * 2**stages,)]
    assert ibis.options.sql.fuse_selects is not False
