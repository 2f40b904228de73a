"""benchmarks/instructions.py: valgrind's files are read right, and a rise is told. CI counts (.ci/run)."""

import json

from benchmarks import instructions

DUMP = """# callgrind format
version: 1
desc: Trigger: Client Request: a layer

positions: line
events: Ir
summary: 1000

ob=(1) /lib/libtorch_cpu.so
fl=(1) torch.cpp
fn=(1) mm
10 500
cob=(2) /src/conjoint_kernels_avx2.so
cfn=(2) aggregate_f32
calls=2 0
* 300

ob=(2)
fn=(2)
0 100
+3 20
calls=1 5
* 70
fn=(3) aggregate_f32._omp_fn.0
* 180
fn=(4) fold
-2
0 7

totals: 1000
"""


def test_a_dump_gives_the_step_and_its_kernels() -> None:
    """A call's line counts what the callee took, which is counted where the callee is."""
    assert instructions.read_dump(DUMP) == {
        "a layer": 1000,
        "a layer: aggregate_f32": 300,
        "a layer: fold": 7,
    }
    assert instructions.read_dump(DUMP.replace("Client Request: a layer", "Program termination")) == {}


def test_a_rise_above_the_limit_is_told() -> None:
    before = {"a layer": 1000, "a layer: aggregate_f32": 300, "a layer: fold": 1}
    assert (
        instructions.risen(before, {"a layer": 1019, "a layer: aggregate_f32": 200, "a layer: fold": 1}) == []
    )
    assert instructions.risen(before, {"a layer": 900, "a layer: new": 100}) == []
    (line,) = instructions.risen(before, {"a layer": 1000, "a layer: aggregate_f32": 309})
    assert line == "a layer: aggregate_f32: 300 -> 309 instructions, +3.0%"


def test_the_record_names_what_it_depends_on() -> None:
    record = json.loads(instructions.RECORD.read_text())
    assert set(record["made_with"]) == {"compiler", "valgrind", "torch", "python", "processor"}
    assert {name.partition(": ")[0] for name in record["counts"]} >= {"CATConv 64", "CATConv 256, mf"}
