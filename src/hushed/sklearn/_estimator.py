"""A private estimator: what scikit-learn fits, released with a promise, a certificate, a charge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, Self, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from hushed._ground.calls import explained
from hushed._ground.checks import read_count, read_epsilon, require_one_of
from hushed._ground.decimals import read
from hushed._ground.types import Floats
from hushed.blocks import Simulation
from hushed.engines._choice import Workers
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours, RowUnit
from hushed.ledger import Ledger
from hushed.releasing import Certificate, Release, Verification
from hushed.sensitivity import Calibration
from hushed.sklearn._declared import (
    check_estimator,
    check_private_options,
    check_released,
    choose_family,
    fix_chance,
)
from hushed.sklearn._examples import (
    Scheme,
    encode_privately,
    list_classes,
    read_ranges,
    read_shape,
    refuse_carried,
    require_kind,
    take_labels,
    take_rows,
)
from hushed.sklearn._families import Linear, NearestPoint, Points
from hushed.sklearn._fit_errors import FEWEST_TRIALS, FitErrors, measure_errors, unscale
from hushed.sklearn._missing import require_all
from hushed.sklearn._needed import available_if, base, check_is_fitted, get_tags, validate_data
from hushed.sklearn._public_rows import (
    check_columns,
    count_features,
    name_columns,
    read_points,
    read_population,
)
from hushed.sklearn._routes import ROUTES, Order, make_sampled, try_blocks
from hushed.statements import Statement, StatementCheck, verify
from hushed.statements._verification import read_certificate

Route = Literal["sampled", "blocks", "objective"]
Method = TypeVar("Method", bound=Callable[..., Any])


def _model_has(name: str) -> Callable[[Method], Method]:
    """Offer a method where the estimator, or the model made of it, has it."""

    def has(self: PrivateEstimator) -> bool:
        if self.points is not None:
            offered = ["predict"]
            if base.is_classifier(self):
                offered += ["predict_proba", "score"]
            elif base.is_regressor(self):
                offered.append("score")
            if name not in offered:
                raise AttributeError(
                    f"what was released are predictions at points: they give {', '.join(offered)}"
                )
            return True
        getattr(self.estimator, name)
        return True

    offer: Callable[[Method], Method] = available_if(has)
    return offer


@explained(
    "it protects rows, and for people who have several rows take "
    "hs.sample_sensitivity(..., user=COLUMN) or hs.Blocks(..., user=COLUMN) of a function that "
    "fits the model, as docs/sklearn.md shows; for rows call it as in "
    'hs.sklearn.PrivateEstimator(LogisticRegression(), epsilon=1.0, route="objective")'
)
class PrivateEstimator(base.BaseEstimator):  # type: ignore[misc]
    """Fit an estimator of scikit-learn, and keep no more of the rows than a private release.

    Each call of ``fit`` is one release, with a certificate and a charge. Everything after it, as
    ``predict``, works on what was released and costs nothing.

    The promise is for one row. Where a person has several rows, each further row of theirs costs
    them the same epsilon again: take a function of your own with ``user=`` then (docs/sklearn.md).

    Parameters
    ----------
    estimator : estimator of scikit-learn
        What is fitted. Released are ``coef_`` and ``intercept_`` of linear and generalised linear
        models, the moments of GaussianNB, the centres of KMeans (with public ``init``), axes,
        centre and variances of PCA (with a whole ``n_components``). Of any other one that
        predicts: what it predicts at public ``points``.
    population : (X, y), X or Population, optional
        For ``route="sampled"``: public rows with labels, or a population of `hushed.populations`
        whose rows are arrays in the units of X that end with the label (of a classifier its
        position among ``labels`` in ascending order). They are encoded as the private rows are.
        Never the private rows.
    epsilon : float, default 1
        Privacy loss of one fit, in nats; finite, above 0.
    route : {"sampled", "blocks", "objective"}, default "sampled"
        ``"sampled"``: noise for the movement that was measured on public tables, a promise of
        random differential privacy. ``"blocks"``: the mean of fits on blocks, a promise for every
        table. ``"objective"``: noise in the objective of LogisticRegression or Ridge, a promise for
        every table.
    delta : float, default 0
        Slack. Above 0 noise is Gaussian; needed by blocks, and none for the objective.
    gamma : float, default 0.05
        Of the sampled route: probability with which the promise may fail.
    calibration : {"training-conditional", "marginal", "dkw"}, default "training-conditional"
        Of the sampled route: see `hushed.sample_sensitivity`.
    block_rows : int, optional
        Of the sampled route: fit on blocks of so many rows, and release the average, as
        `hushed.Blockwise` does; for a public table that is smaller than the private one.
    bounds : (low, high), optional
        Public ranges of the features, two numbers or two lists. Features are moved into them and
        scaled to [-1, 1] before the fit. The objective route needs them.
    labels : sequence, optional
        Public classes of a classifier, or the public range (low, high) of the label of a
        regressor. Classes may be left out where the population is (X, y).
    clip : float, optional
        Of the objective route: the sum of the absolute scaled features that a row may have; longer
        rows are shortened. By default the square root of the number of features.
    cutoff : float, optional
        Of the objective route of Ridge: from this residual on, in units of the label, the loss
        grows linearly; by default half of the range of the label.
    points : array, optional
        Public points at which the predictions are released, instead of attributes; ``predict``
        then answers as at the nearest of them. In units of X.
    blocks : int, optional
        Of the route of blocks: their number; see `hushed.Blocks`.
    centre, radius : sequence of float and float, optional
        Of the route of blocks: the public ball that the attributes, one after the other, of each
        block are moved into; around 0 by default.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        Whether the number of rows is public; the sampled route needs that it is.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person. Never where a person has several rows.
    ledger : Ledger, optional
        Where each fit is charged.
    budget : str, optional
        Name of the budget in the ledger; required with one.
    note : str, default ""
        Remark for the ledger.
    key : str, optional
        Name of the release in the ledger: the same fit again under it tells the stored answer.
    seed : int, default 0
        Of the sampled route: seed of the public tables, not of the noise.
    workers : int, str, Engine or distributed.Client, optional
        Of the sampled route: who runs the trials.
    progress : bool, default True
        Of the sampled route, and of `error_on`: show a progress bar in a terminal or a notebook,
        while public tables are measured. The fit on private rows has none: how long it takes
        depends on them. That of blocks tells beforehand how long their processes take to start.

    Attributes
    ----------
    model_ : estimator
        A model of the same class, or one that looks up the nearest point, with released numbers.
    release_ : Release
        What was released, as the ledger has it: for `hushed.certify`.
    certificate_ : Certificate
        What the fit promises.
    guarantee_ : Guarantee
        The promise itself.
    entry_ : int or None
        Number of the charge in the ledger.

    Notes
    -----
    Threads may fit and predict with one estimator: each answer is of one fit. What several
    attributes say may be of several; `release_` has value and certificate of one.

    A cell that is missing counts as the middle of its range, or as 0 without one; a
    label that is not among the classes counts as the first one: nothing is told of a row but by the
    release. A table that lacks a class, or on which the fit fails in another way, has attributes 0.
    Proof of the objective route: docs/objective.md.
    """

    release_: Release
    certificate_: Certificate
    guarantee_: Guarantee
    entry_: int | None

    def __init__(
        self,
        estimator: Any,
        population: Any = None,
        *,
        epsilon: float = 1.0,
        route: Route = "sampled",
        delta: float = 0.0,
        gamma: float = 0.05,
        calibration: Calibration = "training-conditional",
        block_rows: int | None = None,
        bounds: Any = None,
        labels: Sequence[Any] | None = None,
        clip: float | None = None,
        cutoff: float | None = None,
        points: ArrayLike | None = None,
        blocks: int | None = None,
        centre: Sequence[float] | None = None,
        radius: float | None = None,
        neighbours: Neighbours = "replace-one",
        unit: RowUnit = "row",
        ledger: Ledger | None = None,
        budget: str | None = None,
        note: str = "",
        key: str | None = None,
        seed: int = 0,
        workers: Workers = None,
        progress: bool = True,
    ) -> None:
        self.estimator = estimator
        self.population = population
        self.epsilon = epsilon
        self.route = route
        self.delta = delta
        self.gamma = gamma
        self.calibration = calibration
        self.block_rows = block_rows
        self.bounds = bounds
        self.labels = labels
        self.clip = clip
        self.cutoff = cutoff
        self.points = points
        self.blocks = blocks
        self.centre = centre
        self.radius = radius
        self.neighbours = neighbours
        self.unit = unit
        self.ledger = ledger
        self.budget = budget
        self.note = note
        self.key = key
        self.seed = seed
        self.workers = workers
        self.progress = progress

    def __sklearn_clone__(self) -> Self:
        """Copy the options; a ledger and a population stay what they are."""
        options = self.get_params(deep=False)
        return type(self)(base.clone(options.pop("estimator")), **options)

    def __getstate__(self) -> Any:
        """Refuse to leave the ledger behind: the next fit of a copy without it costs nothing."""
        if self.ledger is not None:
            raise ParameterError(
                "an estimator that holds a ledger is not pickled or copied: its connection stays "
                "in this process, and a copy without it would fit uncharged. Pickle model_, which "
                "holds what was released, or first set_params(ledger=None, budget=None, key=None)",
                parameter="ledger",
            )
        return super().__getstate__()

    def __sklearn_tags__(self) -> Any:
        tags = get_tags(self.estimator)
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = False
        tags.target_tags.multi_output = False
        tags.array_api_support = False
        tags.non_deterministic = True
        return tags

    @explained(
        "call it as in model.fit(X, y). Rows have no weights here, for the noise is for rows that "
        "count alike; a model with weights is fitted by a function of your own, that takes the "
        "weights from a column of the rows, with hs.sample_sensitivity and hs.release"
    )
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on private rows, and keep what is released.

        Parameters
        ----------
        X : array or frame
            Private rows of numbers.
        y : array, optional
            Their labels.

        Returns
        -------
        PrivateEstimator
            Itself, fitted.

        Raises
        ------
        ParameterError
            If the estimator cannot be released on that route, or an option is none; nothing is
            charged.
        BadRows
            If the rows are no table of numbers, as dates, or public rows or points have columns
            of other names, or in another order; nothing is charged, no cell is shown.
        PrivateRowsAsPopulation
            If the rows themselves are handed in as what is public.
        """
        order, table, names = self._read(X, y)
        found, numbers = ROUTES[self.route](order, table)
        fitted: dict[str, Any] = {
            "release_": found,
            "certificate_": found.certificate,
            "guarantee_": found.certificate.guarantee,
            "entry_": found.entry,
        }
        try:
            with np.errstate(all="ignore"):
                fitted |= self._make_model(order, numbers, names)
        finally:  # it is paid for, whatever becomes of the model
            self._replace(fitted)
        return self

    def verify(
        self,
        certificate: Certificate | Statement | str | bytes | PathLike[str],
        *,
        ledger: Ledger | None = None,
        key: bytes | None = None,
    ) -> Verification | StatementCheck:
        """Check a certificate of a fit with these options, on any route; no private row is needed.

        On the sampled route the public rows are sampled again. So an estimator that is made with
        the same options and population, and never fitted, checks what somebody else has fitted.

        Parameters
        ----------
        certificate : Certificate, Statement, str, bytes or path
            The certificate, as `hushed.verify` takes it.
        ledger : Ledger, optional
            The ledger that was charged; of a certificate of `hushed.certify` only.
        key : bytes, optional
            Public key of whoever has to have signed it.

        Returns
        -------
        Verification or StatementCheck
            As of `hushed.verify`.

        Raises
        ------
        ParameterError
            If it is no certificate, or of another route.
        """
        known, _, _ = read_certificate(certificate, key)
        inner = known.subject if isinstance(known, Statement) else known
        inner = inner.certificate if isinstance(inner, Release) else inner
        told: dict[str, Any] = {"ledger": ledger, "key": key}
        if not isinstance(inner, Certificate) or inner.sampling is None:
            return verify(certificate, **told)
        if self.route != "sampled":
            raise ParameterError(
                "the certificate is of a sampled sensitivity: give the options of that fit, "
                "route='sampled' and its population",
                parameter="route",
            )
        labelled = bool(get_tags(self.estimator).target_tags.required)
        features = count_features(self.population, labelled=labelled)
        order = self._order(inner.sampling.rows, features, labelled=labelled, names=())
        told |= {"workers": self.workers, "progress": self.progress}
        population = read_population(self.population, order.scheme)
        return verify(certificate, make_sampled(order), population=population, **told)

    def error_on(self, X: Any, y: Any, trials: int = 200) -> FitErrors | Simulation:
        """Measure the error of a fit on public rows, for the routes of noise in it and of blocks.

        What the certificate of ``route="objective"`` states holds on every table, and most tables
        keep far below. That of ``"blocks"`` states the noise alone: how far fits of blocks are
        from one of all rows is measured here. Noise of the sampled route does not follow the rows.

        Parameters
        ----------
        X : array or frame
            Public rows, like the private ones in number and in kind. Never the private ones.
        y : array
            Their labels.
        trials : int, default 200
            Fits that are drawn, 20 or more; of blocks how often the rows are dealt to them, which
            takes as many fits as there are blocks each time.

        Returns
        -------
        FitErrors or Simulation
            Errors that half, and 95 %, of the fits kept to; nothing is charged or released. Of
            blocks the distance of all numbers together, of scaled features, as
            `hushed.Blocks.simulate` tells it.

        Raises
        ------
        ParameterError
            If it is another route, or an option is none.
        BadRows
            If the rows are no table of numbers.
        PrivateRowsAsPopulation
            If the estimator, or an option, holds these rows.
        """
        if self.route == "sampled":
            raise ParameterError(
                "error_on is for route='objective' and 'blocks': on the sampled route the noise is "
                "as the certificate states it. With block_rows= that is from the average over "
                "blocks, and how far this is from a fit of all rows is not known here",
                parameter="route",
            )
        trials = read_count("trials", trials, FEWEST_TRIALS if self.route == "objective" else 1)
        order, table, _ = self._read(X, y)
        if self.route == "blocks":
            return try_blocks(order, table, trials)
        return measure_errors(order, table, trials)

    def _read(self, X: Any, y: Any) -> tuple[Order, Floats, tuple[str, ...]]:
        """Check options and rows, and encode the rows; all that is wrong is told unpaid."""
        require_one_of("route", self.route, get_args(Route))
        require_one_of("neighbours", self.neighbours, get_args(Neighbours))
        check_estimator(self.estimator)
        labelled = bool(get_tags(self.estimator).target_tags.required)
        check_released(self.estimator, self.points)
        require_all(self, labelled=labelled)
        read_epsilon(self.epsilon)
        read("delta", self.delta, up=False)
        public = (self.population, self.points, self.bounds, self.labels, self.centre)
        refuse_carried((*public, self.estimator), X, y)
        given, answers = take_rows(X), take_labels(y) if labelled else None
        rows, features = read_shape(given, answers)
        names = name_columns(X)
        ends = self.bounds if isinstance(self.bounds, tuple | list) else ()
        for each in (self.population if self.route == "sampled" else None, self.points, *ends):
            check_columns(each, names, labelled=labelled)
        order = self._order(rows, features, labelled=labelled, names=names)
        if answers is not None:
            require_kind(answers, order.scheme.classes)
        return order, encode_privately(order.scheme, given, answers), names

    def _order(self, rows: int, features: int, *, labelled: bool, names: tuple[str, ...]) -> Order:
        """Check all that needs no row."""
        own = fix_chance(self.estimator)
        check_private_options(own)
        scheme = self._read_scheme(features, labelled=labelled)
        points = None
        if self.points is not None:
            points = read_points(self.points, scheme)
        family = choose_family(own, features=features, classes=len(scheme.classes), points=points)
        if not getattr(own, "fit_intercept", True):
            self._require_origin(scheme)
        if self.route == "objective" and points is not None:
            raise ParameterError("the objective route releases coefficients", parameter="points")
        return Order(
            options=self, estimator=own, family=family, scheme=scheme, rows=rows, names=names
        )

    def _require_origin(self, scheme: Scheme) -> None:
        """Refuse ranges by whose scale a model without an intercept would not go through 0."""
        ends = scheme.span if self.route == "objective" and scheme.span else (0.0, 0.0)
        for name, middles in (("bounds", scheme.middle or ()), ("labels", (sum(ends),))):
            if any(middles):
                raise ParameterError(
                    f"a model with fit_intercept=False is 0 where all features are 0, and {name} "
                    "are scaled to [-1, 1] by their ranges: give ranges around 0, as (-10, 10) "
                    "for (0, 10), or take fit_intercept=True",
                    parameter=name,
                )

    def _read_scheme(self, features: int, *, labelled: bool) -> Scheme:
        """Read ranges, and classes or the range of the label."""
        middle, half = (None, None) if self.bounds is None else read_ranges(self.bounds, features)
        classes: tuple[Any, ...] = ()
        span: tuple[float, float] | None = None
        if base.is_classifier(self.estimator):
            classes = self._read_classes()
        elif labelled and self.labels is not None:
            (low,), (width,) = read_ranges(self.labels, 1)
            span = (low - width, low + width)
        return Scheme(
            features=features,
            labelled=labelled,
            middle=middle,
            half=half,
            classes=classes,
            span=span,
        )

    def _read_classes(self) -> tuple[Any, ...]:
        """Take public classes, in order; never those of the private labels."""
        given = self.labels
        if given is None and isinstance(self.population, tuple) and len(self.population) == 2:
            given = self.population[1]
        found = list_classes(given)
        if len(found) < 2:
            raise ParameterError("a classifier needs two classes or more", parameter="labels")
        positions = self.route == "sampled" and hasattr(self.population, "draw")
        if positions and np.asarray(given).tolist() != found.tolist():
            raise ParameterError(
                "name the classes in ascending order, each once: rows of the population say by its "
                f"position which one is meant, and in order they are {found.tolist()}",
                parameter="labels",
            )
        return tuple(found.tolist())

    def _replace(self, fitted: dict[str, Any]) -> None:
        """Replace what an earlier fit has left by that of this one, in one go.

        Certificate and model belong together, and another thread may predict, or fit it, too.
        """
        options = {name: each for name, each in dict(vars(self)).items() if name[-1] != "_"}
        self.__dict__ = options | fitted

    def _make_model(self, order: Order, numbers: Floats, names: tuple[str, ...]) -> dict[str, Any]:
        """Make a model of the released numbers; its attributes are this estimator's, too."""
        scheme, family = order.scheme, order.family
        values = unscale(order, numbers)
        model = base.clone(self.estimator)
        if isinstance(family, Points):
            model = NearestPoint(np.array(family.points), model)
        model.n_features_in_ = scheme.features
        found = {"model_": model, "n_features_in_": scheme.features}
        if scheme.classes:
            model.classes_ = found["classes_"] = np.array(scheme.classes)
        family.fill(model, values)
        if names:
            found["feature_names_in_"] = np.asarray(names, dtype=object)
        found["_scaled"] = scheme if not isinstance(family, Linear) else None
        return found | {name: getattr(model, name) for name in values}

    def _show(self, X: Any) -> tuple[Any, Floats]:
        """Give the model, and rows for it, scaled as those of its fit were."""
        seen = object.__new__(type(self))
        seen.__dict__ = self.__dict__  # as it is now, whatever another thread fits meanwhile
        check_is_fitted(seen, "model_")
        rows = np.asarray(validate_data(seen, X, reset=False, dtype=np.float64))
        return seen.model_, rows if seen._scaled is None else seen._scaled.scale(rows)

    @_model_has("predict")
    def predict(self, X: Any) -> Any:
        """Predict with the released model.

        Parameters
        ----------
        X : array or frame
            Rows.

        Returns
        -------
        ndarray
            One number or class for each row.
        """
        model, rows = self._show(X)
        return model.predict(rows)

    @_model_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Compute chances of the classes by the released model.

        Parameters
        ----------
        X : array or frame
            Rows.

        Returns
        -------
        ndarray
            A chance for each row and class.
        """
        model, rows = self._show(X)
        return model.predict_proba(rows)

    @_model_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Compute margins of the classes by the released model.

        Parameters
        ----------
        X : array or frame
            Rows.

        Returns
        -------
        ndarray
            One margin for each row, or for each row and class.
        """
        model, rows = self._show(X)
        return model.decision_function(rows)

    @_model_has("transform")
    def transform(self, X: Any) -> Any:
        """Transform with the released model: distances to centres, or coordinates on axes.

        Parameters
        ----------
        X : array or frame
            Rows.

        Returns
        -------
        ndarray
            A row of numbers for each row.
        """
        model, rows = self._show(X)
        return model.transform(rows)

    @_model_has("score")
    def score(self, X: Any, y: Any = None) -> float:
        """Score on public rows: on private ones it is an answer of its own, which nobody paid.

        Parameters
        ----------
        X : array or frame
            Rows.
        y : array, optional
            Their labels.

        Returns
        -------
        float
            What the estimator calls its score; with ``points`` the accuracy or R^2 of ``predict``,
            which answers as at the nearest of them.
        """
        model, rows = self._show(X)
        return float(model.score(rows, y))
