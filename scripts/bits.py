"""Train twelve networks on the embedded Cora and compare their weights, bit for bit, with those kept.

    python scripts/bits.py                 all of them against tests/golden/bits.json; under two minutes
    python scripts/bits.py gcn cat-i-mf    only these
    python scripts/bits.py --record        write that file anew: only for a change of bits that was meant

Bits depend on torch and on the processor's instructions, so a difference on another machine is no fault.
"""

import argparse
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from golden.bits import EPOCHS, MODELS, differences, machine, train  # noqa: E402

FILE = ROOT / "tests" / "golden" / "bits.json"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; default: all")
    parser.add_argument("--record", action="store_true", help="keep what comes out")
    options = parser.parse_args()
    names = options.models or list(MODELS)
    recorded = json.loads(FILE.read_text()) if FILE.exists() else {"made_with": {}, "models": {}}
    for difference in [] if options.record else differences(recorded["made_with"]):
        print(f"another machine: {difference}")
    other = 0
    for name in names:
        started = time.perf_counter()
        made, kept = train(name), recorded["models"].get(name)
        same = made == kept
        other += not same
        words = "as before" if same else f"new: {made}" if kept is None else f"OTHER: {made}, before {kept}"
        print(f"{name}, {time.perf_counter() - started:.1f} s: {words}", flush=True)
        recorded["models"][name] = made
    if options.record:
        document = {**recorded, "epochs": EPOCHS, "made_with": machine()}
        FILE.write_text(json.dumps(document, indent=1) + "\n")
        return 0
    return min(other, 1)


if __name__ == "__main__":
    raise SystemExit(main())
