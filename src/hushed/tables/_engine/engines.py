"""The engines that there are: to add one, write its file and enter its record here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hushed.tables._engine.dialect import Dialect
from hushed.tables._engine.duckdb import DUCKDB
from hushed.tables._engine.postgres import POSTGRES
from hushed.tables._engine.spark import SPARK

_ENGINES = (DUCKDB, POSTGRES, SPARK)

BY_NAME: Mapping[str, Dialect] = MappingProxyType({each.name: each for each in _ENGINES})
BY_SCHEME: Mapping[str, Dialect] = MappingProxyType(
    {scheme: each for each in _ENGINES for scheme in each.schemes}
)
