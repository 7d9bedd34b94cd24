"""In a real Jupyter kernel: `await` works, the synchronous twin explains itself, progress shows."""

from __future__ import annotations

from pathlib import Path

import pytest

CELLS = [
    "from ragscore import ContextRecall, run_evals, run_evals_sync\n"
    "rows = [{'input': f'{n}?', 'reference': 'It rains.'} for n in range(3)]\n"
    "scorer = ContextRecall(context=['It rains.'])\n"
    "result = await run_evals(data=rows, scorers=[scorer])\n"
    "print(result.scores)",
    "print((await scorer.run(input='?', reference='It rains.')).score)",
    "try:\n    run_evals_sync(data=rows, scorers=[scorer])\nexcept Exception as error:\n    print(error)",
]


@pytest.mark.e2e
@pytest.mark.filterwarnings("ignore")  # those of the kernel's own packages
def test_await_works_the_twin_explains_itself_and_progress_shows(tmp_path: Path) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    here = {"metadata": {"path": tmp_path}}
    client = nbclient.NotebookClient(book, timeout=50, kernel_name="python3", resources=here)
    client.execute()
    said = ["".join(out.get("text", "") for out in cell.outputs) for cell in book.cells]
    assert "{'context_recall': 1.0}" in said[0]
    assert "3/3 items" in said[0]
    assert said[1].strip() == "1.0"
    assert "await run_evals(…)" in said[2]
