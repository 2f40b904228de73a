"""The losses over all N x N pairs must cost what the edges cost: measured on a graph of OGB-Arxiv's size."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, torch
from conjoint import MatrixFactorization, SelfExpression, adjacency

def memory(field):  # in MB; VmHWM is the peak since it was last reset
    return int(next(l for l in open("/proc/self/status") if l.startswith(field)).split()[1]) / 1024

kind = {"mf": MatrixFactorization, "sc": SelfExpression}[sys.argv[1]]
nodes, edges = 170_000, 1_165_000
ends = torch.randint(0, nodes, (2, edges), generator=torch.Generator().manual_seed(0))
adj = adjacency(torch.cat([ends, ends.flip(0)], dim=1), nodes)
adj.transposed, adj.simple, adj.row, adj.degree  # the graph itself, loaded before training
intervention = kind(nodes, 40)
open("/proc/self/clear_refs", "w").write("5")
before = memory("VmRSS")
intervention.penalty(adj).backward()
print(memory("VmHWM") - before, adj.num_entries)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads peak memory from Linux's /proc")
@pytest.mark.parametrize("kind", ["mf", "sc"])
def test_penalty_and_backward_stay_linear_in_the_edges(kind: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, kind], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    megabytes, entries = map(float, done.stdout.split())
    assert entries > 2.4e6
    assert megabytes < 400, f"{kind}: {megabytes:.0f} MB"
    print(f"{kind}: {megabytes:.0f} MB above the loaded graph")
