"""Workers that end while they are asked what they are."""

import platform

from hushed.engines._dask import Dask


class Cluster:
    """Two workers, one of which closes its connection when it is asked for the first time."""

    def __init__(self):
        self.there = {"tcp://a": 1, "tcp://b": 1}

    def nthreads(self):
        return dict(self.there)

    def run(self, function, workers, **_):
        told = {place: function() for place in workers}
        if "tcp://b" in told:
            told["tcp://b"] = OSError("Connection reset by peer")
            del self.there["tcp://b"]
        return told


def test_a_worker_that_ends_while_it_is_asked_is_no_worker_of_another_python():
    """The others are asked again, and do the work."""
    engine = object.__new__(Dask)
    engine._client, engine._known, engine._patience = Cluster(), set(), 5.0
    told = engine._ask_new(platform.python_version_tuple, "work")
    assert told == {"tcp://a": platform.python_version_tuple()}
