"""Writes the data files of interpreter/text/tests/fixtures: what pyarrow, pandas and `datasets` write.

    python tests/reference/data_files.py    (pyarrow, pandas and datasets installed)
"""

from pathlib import Path

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

OUT = Path(__file__).parents[2] / "interpreter/text/tests/fixtures"


def rows(start, stop):
    return {
        "t": [None if i % 5 == 4 else f"é{i}" for i in range(start, stop)],
        "i": [None if i == 3 else i for i in range(start, stop)],
        "f": [float("nan") if i == 2 else i / 4 for i in range(start, stop)],
        "b": [i % 2 == 0 for i in range(start, stop)],
        "l": [[f"w{j}" for j in range(i % 3)] for i in range(start, stop)],
        "c": [
            [{"role": "user", "content": f"q{i}"}, {"role": "assistant", "content": f"a{i}"}]
            for i in range(start, stop)
        ],
        "extra": [b"\xff\x00" for _ in range(start, stop)],
    }


def main():
    OUT.mkdir(exist_ok=True)
    for codec in ["none", "snappy", "zstd", "gzip"]:
        # Three row groups, pages of both versions.
        version = "2.0" if codec == "zstd" else "1.0"
        pq.write_table(
            pa.table(rows(0, 10)),
            OUT / f"{codec}.parquet",
            compression=codec,
            row_group_size=4,
            data_page_version=version,
        )
    hub = OUT / "hub/data"
    hub.mkdir(parents=True, exist_ok=True)
    for shard in range(2):
        part = datasets.Dataset.from_dict(
            {k: v for k, v in rows(5 * shard, 5 * shard + 5).items() if k in "tc"}
        )
        part.to_parquet(hub / f"train-0000{shard}-of-00002.parquet")
    frame = pd.DataFrame({"t": ["x", "y"], "c": [rows(0, 1)["c"][0]] * 2})
    frame.to_parquet(hub / "test-00000-of-00001.parquet")


main()
