"""Execute the tutorials, each in a process and a folder of its own, and keep what they print.

python scripts/tutorials.py            all of them
python scripts/tutorials.py NOTEBOOK   only try this one
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "tutorials"


def execute(path: Path) -> Any:
    """The notebook with the outputs of its cells; a cell that fails is an error. Warnings are not kept."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=f"{folder}/kernel")
        client = NotebookClient(notebook, km=kernel, timeout=240, resources={"metadata": {"path": folder}})
        client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


if __name__ == "__main__":
    for name in sys.argv[1:]:
        execute(Path(name))
    for path in [] if sys.argv[1:] else sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(execute(path), path)
        print(path)
