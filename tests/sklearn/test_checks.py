"""What scikit-learn asks of every estimator, and what cannot hold of a private one, and why."""

import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import check_estimator

from hushed.sklearn import PrivateEstimator

NOISE = "two fits on the same rows differ, by noise that cannot be seeded"
SILENT = "an error that depends on a cell tells of the rows, and nobody paid for it"
NAMED = "the classes are those that were named in public, whatever labels the rows have"
CANNOT = {
    "check_fit_idempotent": NOISE,
    "check_regressor_data_not_an_array": NOISE,
    "check_regressors_int": NOISE,
    "check_supervised_y_2d": NOISE,
    "check_estimators_nan_inf": SILENT,
    "check_supervised_y_no_nan": SILENT,
    "check_classifiers_regression_target": SILENT,
    "check_dtype_object": SILENT,  # asks for an error that says what the cell is
    "check_classifiers_classes": NAMED,
    "check_classifiers_train": NAMED,
}
SKIPPED = {
    "check_pipeline_consistency": NOISE,
    "check_array_api_input": "rows go through the gate as NumPy arrays",
}
ROUTE = {"epsilon": 1e4, "route": "objective", "bounds": (-10, 10)}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [
        PrivateEstimator(Ridge(), labels=(-200, 200), **ROUTE),
        PrivateEstimator(LogisticRegression(), labels=[0, 1], **ROUTE),
    ],
    ids=["a regressor", "a classifier"],
)
def test_all_checks_of_scikit_learn_hold_but_those_that_noise_and_privacy_forbid(model):
    """None fails that is not listed above, and most are passed."""
    found = check_estimator(model, on_fail=None)
    failed = {each["check_name"]: each["exception"] for each in found if each["status"] == "failed"}
    assert set(failed) <= set(CANNOT), failed
    skipped = {each["check_name"] for each in found if each["status"] == "skipped"}
    assert skipped <= set(SKIPPED)
    assert sum(each["status"] == "passed" for each in found) >= 30
