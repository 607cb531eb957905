"""What `hushed.release` asks of a mechanism: one of this package, or one of the caller's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hushed.guarantee import Guarantee
from hushed.privacy_loss import PrivacyProfile
from hushed.spaces import Norm, SensitivityBound


class Mechanism(Protocol):
    """Anything that turns an exact answer into a private one, by a bound on how far it moves.

    `hushed.release` takes any object like this: hs.Laplace and its like, or one of your own. One of
    your own must be built again by ``type(mechanism)(sensitivity, **parameters)``: such a copy is
    what draws, and `hushed.verify` makes one from a certificate.

    What your own mechanism says of its privacy is not proven here, and the certificate says so: the
    promise is then yours. Draw the noise with `hushed.noise`. Noise of ordinary doubles, such as
    NumPy's, may tell the exact answer in its last digits.

    Notes
    -----
    A mechanism that is private wherever the movement is within a bound keeps its promise with
    probability 1 - gamma if the bound was sampled: Rubinstein and Alda, *Pain-Free Random
    Differential Privacy with Sensitivity Sampling*, ICML 2017, Definition 9 and Theorem 15.
    """

    @property
    def name(self) -> str:
        """What certificates call it: letters, digits, ``_`` and ``-``, and no name of hushed's."""

    @property
    def norms(self) -> tuple[Norm, ...]:
        """Norms in which its sensitivity may be measured."""

    @property
    def sensitivity(self) -> SensitivityBound:
        """How far the answer moves: from hs.sample_sensitivity or hs.proven_sensitivity."""

    @property
    def parameters(self) -> Mapping[str, float | int | bool | str]:
        """Everything else that it is built with, by name; public, for it goes into certificates."""

    @property
    def guarantee(self) -> Guarantee:
        """What a draw promises: ``self.sensitivity.guarantee(epsilon, delta)``."""

    @property
    def loss(self) -> PrivacyProfile | None:
        """Privacy loss at every level, for ledgers; None if no more is known than the guarantee."""

    @property
    def scale(self) -> float | None:
        """Scale of the noise in the units of the answer; None if there is none to state."""

    def accuracy(self, beta: float = 0.05, dims: int = 1) -> float | None:
        """Error that no released number exceeds except with probability beta.

        Parameters
        ----------
        beta : float, default 0.05
            Probability.
        dims : int, default 1
            Numbers released together.

        Returns
        -------
        float or None
            In the units of the answer; None if it is not known.
        """

    def draw(self, value: Any, /) -> Any:
        """Release an answer.

        Parameters
        ----------
        value : float or array of float
            The exact answer.

        Returns
        -------
        float, int or ndarray of float
            The private answer: one number, or numbers in the same shape.
        """
