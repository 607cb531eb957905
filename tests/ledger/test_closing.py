"""A ledger that is closed while another thread uses it leaves no connection behind."""

import gc
import threading
import warnings

import psycopg
import pytest

import hushed as hs

COUNT = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"


@pytest.mark.parametrize("writes", [False, True])
def test_what_was_in_use_when_a_ledger_was_closed_is_closed_after_its_use(postgres_url, writes):
    """It is not left to the collector, and the next use opens the ledger again."""
    begun, closed = threading.Event(), threading.Event()

    def use():
        with ledger._store.writing() if writes else ledger._store.reading():
            begun.set()
            closed.wait()

    with (
        warnings.catch_warnings(record=True) as told,
        hs.Ledger(postgres_url) as ledger,
        psycopg.connect(postgres_url, autocommit=True) as watcher,
    ):
        warnings.simplefilter("always")
        thread = threading.Thread(target=use)
        thread.start()
        begun.wait()
        ledger.close()
        assert watcher.execute(COUNT).fetchone() == (2,)  # the one in use, and the watcher
        closed.set()
        thread.join()
        gc.collect()
        assert ledger.budgets() == ()
    assert not [each for each in told if "Connection" in str(each.message)]
