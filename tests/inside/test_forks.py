"""A lock that a forked child can take, without a fork."""

import threading

from hushed._ground.forks import ForkSafeLock


def is_free(lock):
    """Whether another thread can take it."""
    taken = []

    def take():
        taken.append(lock._lock.acquire(blocking=False))
        if taken[0]:
            lock._lock.release()

    other = threading.Thread(target=take)
    other.start()
    other.join()
    return taken[0]


def test_what_another_thread_held_is_free_in_the_child():
    lock, held, done = ForkSafeLock(), threading.Event(), threading.Event()

    def hold():
        with lock._lock:  # that of the parent: in a child this thread would not go on
            held.set()
            done.wait(30)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(30)
    try:
        assert not is_free(lock)
        lock._begin_in_child()
        assert is_free(lock)
    finally:
        done.set()
        other.join()


def test_what_the_thread_that_forks_held_stays_its_own_until_it_leaves():
    lock = ForkSafeLock()
    with lock:
        lock._begin_in_child()
        with lock:
            assert not is_free(lock)
    assert is_free(lock)
