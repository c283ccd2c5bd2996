"""One runner a pipeline: the second one says who holds it and exits 3, in time; a killed one holds nothing."""
from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs.storage.lock import held, holder
from optimizer.errors import ForebayError

HOLD = ("import sys, time; from jobs.storage.lock import held\nwith held(sys.argv[1]):\n    print('held', flush=True); "
        "time.sleep(60)")


@pytest.mark.slow
def test_the_second_runner_names_the_first_and_a_killed_one_blocks_nobody(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True,
                              cwd=Path(__file__).parents[3])
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    began = time.monotonic()
    with pytest.raises(ForebayError, match=f"process {holder.pid} on") as caught, held(str(tmp_path)):
        pass
    assert caught.value.exit_code == 3 and time.monotonic() - began < 5
    holder.kill()
    holder.wait()
    with held(str(tmp_path), patience=0.5):
        pass


def test_a_process_holds_it_once(tmp_path: Path) -> None:
    with held(str(tmp_path)), pytest.raises(ForebayError,
                                            match="is held by process"), held(str(tmp_path), patience=0.1):
        pass


def test_an_error_gives_it_back(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), held(str(tmp_path)):
        raise ZeroDivisionError
    with held(str(tmp_path), patience=0.1):
        pass


def test_who_holds_it_is_told_without_waiting(tmp_path: Path) -> None:
    assert holder(str(tmp_path)) is None
    with held(str(tmp_path)):
        assert f"process {os.getpid()} on" in str(holder(str(tmp_path)))
    assert holder(str(tmp_path)) is None
    with held(str(tmp_path), patience=0.1):      # to ask takes nothing from anybody
        pass
