"""Make any Python function private, and prove it."""

from hushed import errors
from hushed.guarantee import Guarantee, union_gamma

__all__ = ["Guarantee", "errors", "union_gamma"]
