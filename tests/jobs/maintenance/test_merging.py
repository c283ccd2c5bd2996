"""How the small files of a table that people read are put together anew."""
from __future__ import annotations

from jobs.maintenance import compact
from jobs.storage.tables import File


def test_files_are_divided_into_runs_of_about_one_size() -> None:
    files = [File(str(n), 1, size) for n, size in enumerate([5, 5, 5, 5, 10, 10])]
    assert [[f.path for f in share] for share in compact._shares(files, 2)] == [["0", "1", "2", "3"], ["4", "5"]]
    assert compact._shares(files[:1], 4) == [files[:1]] and compact._shares(files, 1) == [files]


def test_files_of_a_boundary_each_are_merged_without_sorting() -> None:
    files = [File("a", 1, 1, {"_boundary": 10}, {"_boundary": 10}),
             File("b", 1, 1, {"_boundary": 20}, {"_boundary": 20})]
    assert compact._order(files, "_boundary") == ""
    for doubtful in (File("c", 1, 1, {"_boundary": 20}, {"_boundary": 30}), File("c", 1, 1)):
        assert compact._order([*files, doubtful], "_boundary") == "ORDER BY _boundary"
