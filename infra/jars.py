"""The jars that Spark does not ship: resolved once with Spark's own Ivy, checked by digest, kept with the environment;
no start of Spark resolves any.

`python infra/jars.py spark` (or s3, kafka) does nothing where the set is complete. Ivy's default settings say where
jars come from; FOREBAY_IVY_SETTINGS names another settings file, for a mirror. `--write` accepts what was resolved as
the new digests.
"""
from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHARE = Path(sys.prefix) / "share" / "forebay"
FOLDERS = {"spark": SHARE / "jars", "s3": SHARE / "s3", "kafka": SHARE / "kafka"}
DIGESTS = HERE / "jars.sha256"          # as sha256sum writes it: digest, two spaces, set/jar
SHIPPED = Path(sysconfig.get_paths()["purelib"]) / "pyspark" / "jars"
ATTEMPTS = 3                            # a mirror that does not answer once often answers the next time


def digests(chosen: str) -> dict[str, str]:
    """Jar → SHA-256 of one set."""
    lines = (line.split() for line in DIGESTS.read_text().splitlines()) if DIGESTS.exists() else iter(())
    return {name.removeprefix(f"{chosen}/"): digest for digest, name in lines if name.startswith(f"{chosen}/")}


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def artifact(jar: str) -> str:
    """`jackson-core-2.19.0.jar` → `jackson-core`."""
    return re.sub(r"-\d.*$", "", jar.removesuffix(".jar"))


def resolve(chosen: str, scratch: Path) -> list[Path]:
    """The set's jars with what they need at run time, without what Spark ships."""
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    ivy = next(SHIPPED.glob("ivy-*.jar"))
    settings = ["-settings", os.environ["FOREBAY_IVY_SETTINGS"]] if os.environ.get("FOREBAY_IVY_SETTINGS") else []
    command = [
        java, "-jar", str(ivy), *settings,
        "-ivy", str(HERE / "ivy.xml"),
        "-confs", chosen,
        "-types", "jar", "bundle",
        "-cache", str(scratch / "cache"),
        "-retrieve", str(scratch / "out" / "[artifact]-[revision].[ext]"),
    ]
    for attempt in range(1, ATTEMPTS + 1):
        ivy_run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ivy_run.returncode == 0:
            shipped = {artifact(j.name) for j in SHIPPED.glob("*.jar")} if chosen != "kafka" else set()
            return sorted(j for j in (scratch / "out").glob("*.jar") if artifact(j.name) not in shipped)
        time.sleep(attempt * 2)
    last = "\n".join(ivy_run.stdout.splitlines()[-25:])
    raise SystemExit(
        f"forebay: the jars of {chosen} could not be had in {ATTEMPTS} attempts; the last lines of Ivy:\n{last}")


def complete(chosen: str) -> bool:
    wanted, folder = digests(chosen), FOLDERS[chosen]
    return bool(wanted) and all(
        (folder / jar).exists() and digest(folder / jar) == value for jar, value in wanted.items())


def refuse_strangers(chosen: str, jars: list[Path]) -> None:
    """What was resolved must be, byte for byte, what the repository says."""
    wanted, got = digests(chosen), {j.name: digest(j) for j in jars}
    wrong = sorted(name for name in wanted.keys() | got.keys() if wanted.get(name) != got.get(name))
    if wrong:
        raise SystemExit(f"forebay: these jars of {chosen} are not those of infra/jars.sha256: {', '.join(wrong)}; "
                         f"if infra/ivy.xml was changed, run: .venv/bin/python infra/jars.py {chosen} --write")


def write(chosen: str, jars: list[Path]) -> None:
    others = [
        line for line in (DIGESTS.read_text().splitlines() if DIGESTS.exists() else [])
        if not line.split()[1].startswith(f"{chosen}/")
    ]
    DIGESTS.write_text("\n".join(
        sorted([*others, *(f"{digest(j)}  {chosen}/{j.name}" for j in jars)], key=lambda line: line.split()[1])) + "\n")


def install(chosen: str, accept: bool) -> None:
    if complete(chosen) and not accept:
        return
    with tempfile.TemporaryDirectory(prefix="forebay-ivy-") as scratch:
        jars = resolve(chosen, Path(scratch))
        write(chosen, jars) if accept else refuse_strangers(chosen, jars)
        FOLDERS[chosen].mkdir(parents=True, exist_ok=True)
        for jar in jars:
            # a copy that is interrupted leaves no half a jar under its name
            shutil.copyfile(jar, FOLDERS[chosen] / f".{jar.name}")
            os.replace(FOLDERS[chosen] / f".{jar.name}", FOLDERS[chosen] / jar.name)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in FOLDERS:
        raise SystemExit(f"usage: jars.py {'|'.join(FOLDERS)} [--write]")
    install(sys.argv[1], accept="--write" in sys.argv[2:])
