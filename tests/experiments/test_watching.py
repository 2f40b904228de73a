"""One training gives both numbers: the honest one, and the one that the authors' rule would have picked."""

from dataclasses import replace

from conjoint.experiments.watching import ReleaseWatcher
from conjoint.training import TrainConfig, evaluate, fit
from small_training import same_weights, small_data, small_model, small_split

CONFIG = TrainConfig(epochs=60, patience=15, lr=0.02, seed=5)


def test_the_watcher_sees_what_the_release_rule_would_have_kept() -> None:
    data, split = small_data(), small_split()
    model = small_model()
    watcher = ReleaseWatcher(model, data, split, CONFIG)
    honest = fit(model, data, split, CONFIG, progress=watcher)

    by_test = replace(CONFIG, rule="release", see_test=True)
    release = fit(small_model(), data, split, by_test)
    expected = evaluate(release, data, split)

    seen = watcher.report()
    assert seen["saw_test"] is True and seen["rule"] == "release"
    assert seen["best_epoch"] == release.best_epoch
    assert seen["test_accuracy"] == expected["test_accuracy"]
    assert seen["all_accuracy"] == expected["all_accuracy"]
    assert len(honest.history) == len(release.history)  # both run out of patience together


def test_watching_changes_nothing() -> None:
    data, split = small_data(), small_split()
    watched, alone = small_model(), small_model()
    one = fit(watched, data, split, CONFIG, progress=ReleaseWatcher(watched, data, split, CONFIG))
    other = fit(alone, data, split, CONFIG)
    assert one.history == other.history
    assert same_weights(watched, alone)


def test_epochs_that_were_not_evaluated_are_passed_over() -> None:
    data, split, config = small_data(), small_split(), replace(CONFIG, evaluate_every=7)
    model = small_model()
    watcher = ReleaseWatcher(model, data, split, config)
    fit(model, data, split, config, progress=watcher)
    assert watcher.report()["best_epoch"] in {*range(7, 60, 7), 60}
