"""Sample and aggregate: a worst-case promise for any function, from its answers on blocks."""

from hushed._functions._limits import Limits
from hushed.blocks._mechanism import Blocks
from hushed.blocks._pool import Pool
from hushed.blocks._simulation import Simulation, public_prior

__all__ = ["Blocks", "Limits", "Pool", "Simulation", "public_prior"]
