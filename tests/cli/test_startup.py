"""What a command imports before it answers, in real processes: start-up time is made of little else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SLOW = {"torch", "torch_geometric", "numpy", "scipy", "sklearn", "polars", "pandas", "matplotlib"}
TRAIN = ["train", "cora", "--edition", "embedded", "--seed", "0", "--no-plots", "--quiet", "--epochs", "2"]


def python(code: str, folder: Path) -> str:
    command = [sys.executable, "-c", code]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}  # members are trained in the process that is looked at
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("verb", ["datasets", "doctor", "describe"])
def test_verbs_that_compute_nothing_import_nothing_heavy(verb: str, tmp_path: Path) -> None:
    code = (
        f"import sys; from conjoint.cli import main; assert main([{verb!r}]) == 0\n"
        f"sys.exit(' '.join({SLOW} & set(sys.modules)) or None)"
    )
    assert python(code, tmp_path).count("\n") > 5


@pytest.mark.parametrize("options", [[], ["--model", "cat-i-mf"]], ids=["ensemble", "network"])
def test_training_reaches_its_first_epoch_without_what_it_does_not_need(
    options: list[str], tmp_path: Path
) -> None:
    """torch_geometric and torch's compiler each take longer to import than torch itself."""
    code = f"""if True:
        import sys, conjoint.cli.train
        from conjoint.training.steps import WholeSteps
        def first(steps, epoch):
            print(steps.nodes, *sorted({{"torch._dynamo", *{SLOW}}} & set(sys.modules)))
            raise KeyboardInterrupt
        WholeSteps.train_epoch = first
        from conjoint.cli import main
        sys.exit(main({[*TRAIN, *options]}) - 130)
    """
    assert python(code, tmp_path) == "2708 numpy polars scipy torch\n"


@pytest.mark.parametrize("model", ["cat-i-mf", "rescat-e-smooth"])
def test_layers_with_and_without_pyg_train_to_the_same_bits(model: str, tmp_path: Path) -> None:
    weights = []
    for first in ("sys", "torch_geometric"):
        command = [*TRAIN, "--model", model, "--out", first]
        code = (
            f"import sys, {first}; from conjoint.cli import main; assert main({command}) == 0\n"
            "from conjoint.nn.layer_class import layer_class\n"
            "print(layer_class().__name__, 'torch_geometric' in sys.modules)"
        )
        found = python(code, tmp_path).splitlines()[-1]
        assert found == ("ConjointLayer False" if first == "sys" else "CATConv True")
        weights.append((tmp_path / first / "weights.safetensors").read_bytes())
    assert weights[0] == weights[1]
