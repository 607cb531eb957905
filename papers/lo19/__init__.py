"""Liu, Oh, *Minimax Rates of Estimating Approximate Differential Privacy*, NeurIPS 2019."""

from papers.lo19.mechanisms import AUDIT
from papers.lo19.synthetic import SYNTHETIC

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (*SYNTHETIC, AUDIT)
