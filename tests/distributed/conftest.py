"""One Dask cluster for all tests of this folder that leave it as it was."""

import pytest
from tests.clusters import Cluster


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A scheduler and three workers; tests that kill some start others."""
    found = Cluster(tmp_path_factory.mktemp("dask"), workers=3)
    yield found
    found.close()
