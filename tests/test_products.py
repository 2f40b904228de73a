"""The same seed gives the same bits at any number of threads, in this process or another."""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch

from conjoint.threads import LARGE, _mkl_thread_limit, steady_products

HERE = Path(__file__).parent


def digests(*threads: int) -> dict[str, list[str]]:
    paths = os.pathsep.join([str(HERE), str(HERE.parent / "src")])
    command = [sys.executable, str(HERE / "threads_and_bits.py"), *map(str, threads)]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_weights_do_not_depend_on_threads_or_process() -> None:
    several, alone = digests(1, 2, 3), digests(2)
    assert len(several) == 8
    for case, found in several.items():
        assert len(set(found)) == 1, case
        assert alone[case] == found[:1], case


def test_the_limit_is_lifted_again_and_only_small_graphs_have_it() -> None:
    limit = _mkl_thread_limit()
    if limit is None:
        assert not torch.backends.mkl.is_available()
        return
    limit(0)  # torch.set_num_threads, which other tests call, sets it too
    with steady_products(LARGE):
        assert limit(0) == 0
    with steady_products(LARGE - 1):
        assert limit(1) == 1
    assert limit(0) == 0
