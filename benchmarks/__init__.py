"""Speed and memory against PyG's GATConv: `python -m benchmarks.run`."""
