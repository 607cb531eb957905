"""A ledger that is closed while another thread uses it leaves no connection behind."""

import gc
import threading
import time
import warnings

import psycopg
import pytest

import hushed as hs

COUNT = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"


@pytest.mark.slow_cases("False")
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


def test_a_workbench_that_has_ended_leaves_no_connection(postgres_url, tmp_path):
    """Its pages keep one ledger open for as long as they are served."""
    from starlette.testclient import TestClient

    from hushed.workbench import create_app

    with hs.Ledger(postgres_url) as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0))
    app = create_app(tmp_path, port=8000, ledger=postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as watcher:
        with TestClient(app, base_url="http://127.0.0.1:8000") as client:
            client.get(app.address)
            assert watcher.execute(COUNT).fetchone() == (2,)  # that of the pages, and the watcher
        wait_until_alone(watcher)


def wait_until_alone(watcher):
    """Wait for the server to end what was closed: it needs a moment."""
    for _ in range(100):
        if watcher.execute(COUNT).fetchone() == (1,):
            return
        time.sleep(0.1)
    assert watcher.execute(COUNT).fetchone() == (1,)
