"""What a function displays of private rows is not shown: a notebook keeps it in its file."""

import sys
import threading

import numpy as np
import pytest

import hushed as hs

displaypub = pytest.importorskip("IPython.core.displaypub")

PROVEN = hs.Laplace(hs.proven_sensitivity(1.0, argument="a constant"), epsilon=1.0)
ROWS = np.array([12345.0, 2.0])


def test_displays_are_dropped_in_a_private_call_alone(monkeypatch):
    """By a publisher of a class of its own, as notebooks have one; another thread is heard."""
    heard = []

    class Notebook(displaypub.DisplayPublisher):
        def publish(self, data, **_):
            heard.append(data)

    class Frontend(Notebook):
        """Shows as its parent does."""

    monkeypatch.setattr(sys, "displayhook", heard.append)
    asked, told = threading.Event(), threading.Event()

    def function(rows):
        for each in (Notebook(), Frontend()):
            each.publish({"text/plain": f"{rows[0]}"})
        sys.displayhook(rows[0])
        asked.set()
        return float(told.wait(10))

    def other():
        asked.wait(10)
        Notebook().publish({"text/plain": "of another thread"})
        sys.displayhook("hook")
        told.set()

    thread = threading.Thread(target=other)
    thread.start()
    hs.release(function, ROWS, PROVEN)
    thread.join()
    Frontend().publish({"text/plain": "afterwards"})
    assert heard == [{"text/plain": "of another thread"}, "hook", {"text/plain": "afterwards"}]
    assert "publish" not in vars(Frontend)


@pytest.mark.slow
def test_a_notebook_keeps_nothing_that_was_displayed():
    """A real kernel, with each of its ways to show something."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    code = """
import sys
import numpy as np
from IPython import get_ipython
from IPython.display import HTML, display
import hushed as hs

def show(rows):
    display(HTML(f"<p>{rows[0]}</p>"))
    sys.displayhook(rows[0])
    display(0, display_id="one").update(rows[0])
    get_ipython().display_pub.publish({"text/plain": f"{rows[0]}"})
    get_ipython().system(f"echo {rows[0]}")
    print(rows[0])
    return 1.0

mechanism = hs.Laplace(hs.proven_sensitivity(1.0, argument="a constant"), epsilon=1.0)
released = hs.release(show, np.array([12345.0, 2.0]), mechanism)
display("heard again")
"""
    cell = nbformat.v4.new_code_cell(code)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    (shown,) = notebook.cells[0].outputs
    assert shown["data"]["text/plain"] == "'heard again'"
