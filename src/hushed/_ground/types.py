"""Types that many modules use: arrays, and the types of columns."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

# The types of columns, in chains and in tables. Chains know the first four.
ColumnType = Literal["int", "float", "string", "bool", "date", "timestamp"]
StoredType = ColumnType | Literal["other"]  # a table may have columns that cannot be queried
