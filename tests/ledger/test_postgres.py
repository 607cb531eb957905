"""The PostgreSQL server that other tests stand on."""

import psycopg


def test_every_test_gets_an_empty_database_of_a_real_server(postgres, postgres_url):
    """Two databases of one server do not see each other's tables."""
    other = postgres.url(postgres.create_database())
    with psycopg.connect(postgres_url) as here, psycopg.connect(other) as there:
        here.execute("CREATE TABLE cell (value INT)")
        here.execute("INSERT INTO cell VALUES (1)")
        here.commit()
        counted = "SELECT count(*) FROM pg_tables WHERE tablename = 'cell'"
        assert here.execute(counted).fetchone() == (1,)
        assert there.execute(counted).fetchone() == (0,)
        version = there.execute("SHOW server_version").fetchone()[0]
    assert int(version.split(".")[0]) >= 15
