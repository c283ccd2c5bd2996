"""A pipeline on real Spark, ingested and run in a process of its own: `python -m tests.chaos.sparked FOLDER`."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import forebay
from optimizer.errors import ForebayError
from tests.jobs.pipelines import boundary, pipeline, restarted, rows

QUERIES = {
    "q": "SELECT v.k, COUNT(*) AS n, SUM(b.x) AS x FROM views AS v [WINDOW 30 SECONDS], buys AS b [WINDOW 20 SECONDS] "
         "WHERE v.k = b.k GROUP BY v.k",
    "pairs": "SELECT v.x, b.k FROM views AS v [WINDOW 10 SECONDS], buys AS b [WINDOW 10 SECONDS] WHERE v.k = b.k AND "
             "v.x > 2"
}


def prepared(folder: Path, spark: str) -> None:
    """Rows for six boundaries of which each is worth a batch, and one query that keeps state by task."""
    pipe = pipeline(folder, {"views": "", "buys": ""}, queries=QUERIES)
    for stream in ("views", "buys"):
        for k in range(4):
            rows(pipe, [s / 4 + k / 100 for s in range(260)], stream, k=k, x=k)
    pipe.create("q", QUERIES["q"])
    pipe.change("q", "pin", "EAP11 expire")
    file = folder / "forebay.yml"
    file.write_text(file.read_text().replace("spark: {master: inline}", f"spark: {spark}"))


def main(folder: str) -> int:
    pipe = forebay.open(folder)
    restarted(pipe, clock=lambda: boundary(10**6))
    try:
        while pipe.run(batches=1)["ran"]:
            print("batch", flush=True)
    except ForebayError as error:
        print(json.dumps(error.document()), flush=True)
        return error.exit_code
    print(json.dumps(pipe.verify()["queries"]), flush=True)
    pipe.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
