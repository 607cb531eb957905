"""What running a certificate again has shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from hushed._ground.notebook import Shown

OF_BLOCKS = "number of blocks"

_WORDS = {
    "created": "when it was made",
    "versions": "the versions of packages",
    "charged": "what it was charged to",
    "person": "whether each row is one person",
    "confirmed": "that the function was asked again just before the release",
    "sampling.environment": "the computer on which it was sampled",
    "sampling.elsewhere": "what differed between the workers that sampled",
    "sampling.unwatched": "what the function holds that may have changed by itself",
    "sampling.asked_anew": "whether it could be asked in a new process",
    "sampling.unsearched": "what the function holds that was not searched for private rows",
    "unsearched": "what the function holds that was not searched for private rows",
    "the name of the function, also in guarantee.estimates": (
        "the name of the function, also among the names of what was sampled"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verification(Shown):
    """What running the sampling again has shown.

    It shows that the certificate's numbers follow from the function, the population, the seed and
    the parameters. It does not show who wrote the certificate, that a published value was released
    under it, or that a population known by name only is the same one.

    Parameters
    ----------
    agreement : {"bits", "rounding", "different"}
        Whether sensitivity, all recorded movements, scale and guarantee came out bit for bit; or
        differ by no more than computers round differently; or neither.
    reproduced : bool
        True for bits only.
    recorded, recomputed : float
        The two sensitivities.
    judged, differing : int
        Movements that the certificate keeps, and how many of them came out otherwise.
    largest, limit : float
        Largest difference of movements or sensitivities, and what counts as rounding: 64 units in
        the last place of the largest answer, in the type that the function answers in, times what
        the norm makes of several numbers; of a type coarser than doubles no more than a hundredth
        of the sensitivity.
    differences : tuple of str
        What did not come out the same, in words.
    environments : tuple of str
        What differs between the computers: versions, processor, BLAS. A possible reason.
    unchecked : tuple of str
        Fields that nothing here speaks for: they may have been written by anybody.
    proven : bool, default False
        True if the sensitivity was stated, not sampled, so that nothing was run.
    statistic : str, default ""
        Kind of the statistic that was released, if it was one of `hushed.statistics`; of `Blocks`
        that it is about their number.
    """

    agreement: Literal["bits", "rounding", "different"]
    reproduced: bool
    recorded: float
    recomputed: float
    judged: int
    differing: int
    largest: float
    limit: float
    differences: tuple[str, ...]
    environments: tuple[str, ...]
    unchecked: tuple[str, ...]
    proven: bool = False
    statistic: str = ""

    def _brief(self) -> str:
        return f"Verification: {self._found()}"

    def explain(self) -> str:
        """Say the outcome in a sentence or two.

        Returns
        -------
        str
            Plain words.
        """
        names = "; ".join(_WORDS.get(each, each) for each in self.unchecked)
        return f"{self._found()}. Parts of the certificate that were not checked: {names}"

    def _found(self) -> str:
        if self.agreement == "bits" and self.statistic:
            return (
                f"scale, accuracy and guarantee follow, bit for bit, from the {self.statistic} and "
                "the public choices; they hold for every table, by the theorems in "
                f"docs/{'blocks' if self.statistic == OF_BLOCKS else 'worst-case'}.md"
            )
        if self.agreement == "bits" and self.proven:
            return (
                f"scale, accuracy and guarantee follow, bit for bit, from the sensitivity "
                f"{self.recorded!r}, which is stated and not sampled: its proof is not checked here"
            )
        if self.agreement == "bits":
            return f"reproduced bit for bit: sensitivity {self.recorded!r}"
        if self.agreement == "rounding":
            kept = "equal" if self.recorded == self.recomputed else "among them"
            text = (
                f"not bit for bit, but within rounding: {self.differing} of the {self.judged} "
                f"recorded movements differ; the largest difference is {self.largest:.2g}, and "
                f"rounding may reach {self.limit:.2g} in answers of this size. The kept movement "
                f"is {kept}"
            )
        else:
            text = "not reproduced: " + "; ".join(self.differences)
            if 0 < self.largest < math.inf:
                text += (
                    f". {self.differing} of the {self.judged} recorded movements differ, by up to "
                    f"{self.largest:.2g}, where rounding would reach {self.limit:.2g}"
                )
        if self.environments:
            text += f". The computers differ: {'; '.join(self.environments)}"
        if self.environments and self.agreement == "different":
            text += (
                ". If the function magnifies rounding (a matrix that is nearly singular), run it "
                "on a like computer, or set OPENBLAS_CORETYPE to the kernel recorded"
            )
        elif not self.environments:
            text += (
                ". The computers are alike in all that is recorded: the function may be different"
            )
        return text
