"""Build the wheel and the source archive, and use the wheel as a stranger would.

`make package` runs this. The sources are copied first, so that nothing an older build left behind
can get into the wheel. It is installed into two environments of its own, without extras and with
the usual ones, at the locked versions; there commands and scripts run in a folder outside of the
repository. pytest runs none of it: it would bring packages that a user does not have.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "package"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ARCHIVED = {"LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg", "src"}
DESCRIBED = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt"}
EXTRAS = "tables,plot,demo,sklearn,workbench"
VISITS = "who,city\n1,Rome\n1,Oslo\n2,Rome\n3,Rome\n"
FIGURE = ("compose", "laplace:0.1x300", "--delta", "1e-5", "--plot", "levels.svg")


def require(holds: bool, words: str) -> None:
    """Stop here unless something holds."""
    if not holds:
        raise SystemExit(f"make package: {words}")


def run(*words: object, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command that has to end with a certain code, with nothing of this environment."""
    clean = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV" and k[:6] != "PYTHON"}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**clean, "PYTHONNOUSERSITE": "1", "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = f"{' '.join(map(str, words))}\nended with {done.returncode} in place of {code}"
    require(done.returncode == code, f"{said}\n{done.stdout}{done.stderr}")
    return done


def copied(folder: Path) -> Path:
    """Copy what git has, or would take, as it is in the working tree."""
    asked = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in run(*asked, cwd=ROOT).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def built(source: Path) -> tuple[Path, Path]:
    """Build the archive, the wheel from it, and one from the tree, which has to be the same."""
    for folder, options in ((BUILD / "dist", ()), (BUILD / "from-tree", ("--wheel",))):
        run(sys.executable, "-m", "build", *options, "--outdir", folder, source, cwd=BUILD)
    (archive,) = (BUILD / "dist").glob("*.tar.gz")
    (wheel,) = (BUILD / "dist").glob("*.whl")
    (other,) = (BUILD / "from-tree").glob("*.whl")
    require(held(wheel) == held(other), "the archive builds another wheel than the tree")
    return archive, wheel


def held(wheel: Path) -> dict[str, bytes]:
    """Read the files in a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def check_archive(archive: Path) -> None:
    """What builds the wheel is in the archive, and no more."""
    with tarfile.open(archive) as opened:
        parts = [Path(name).parts for name in opened.getnames()]
    found = {part[1] for part in parts if len(part) > 1}
    require(found == ARCHIVED, f"the archive differs by {sorted(found ^ ARCHIVED)}")


def check_wheel(wheel: Path, source: Path) -> None:
    """The wheel holds every file of src/hushed as it is, data files too, and no more."""
    source = source / "src"
    files = (p for p in (source / "hushed").rglob("*") if p.is_file())
    wanted = {p.relative_to(source).as_posix(): p.read_bytes() for p in files}
    about = f"hushed-{PROJECT['version']}.dist-info/"
    found = held(wheel)
    names = set(wanted) | {about + name for name in DESCRIBED}
    require(set(found) == names, f"the wheel differs by {sorted(set(found) ^ names)}")
    changed = [name for name, content in wanted.items() if found[name] != content]
    require(not changed, f"files changed on their way into the wheel: {changed}")


def installed(name: str, wheel: Path, extras: str) -> Path:
    """Make an environment with the wheel and what it asks for; give its folder of commands."""
    folder = BUILD / name
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=BUILD)
    pip = (sys.executable, "-m", "pip", "--python", folder)
    locked = ("--constraint", ROOT / "requirements" / "dev.txt")
    asked = f"hushed{extras} @ {wheel.as_uri()}"
    run(*pip, "install", "--quiet", "--no-compile", *locked, asked, cwd=BUILD)
    run(*pip, "check", cwd=BUILD)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def listed(text: str) -> list[str]:
    """Read the names of commands off a help text."""
    return re.findall(r"^│ ([a-z][a-z-]*) {2,}\S", text, re.MULTILINE)


def check_help(hushed: Path, folder: Path, *, above: tuple[str, ...] = ()) -> int:
    """Ask each command for its help, those below others too; give how many there are."""
    shown = run(hushed, *above, "-h", cwd=folder).stdout
    require("Usage:" in shown and "--help" in shown, f"no help for {above}: {shown}")
    below = listed(shown)
    return len(below) + sum(check_help(hushed, folder, above=(*above, name)) for name in below)


def check_command(bin_: Path, folder: Path) -> None:
    """The command starts by its name and by the module's, and every command has a help text."""
    version = f"hushed {PROJECT['version']}\n"
    require(run(bin_ / "hushed", "--version", cwd=folder).stdout == version, "not this version")
    as_module = (bin_ / "python", "-m", "hushed")
    require(run(*as_module, "--version", cwd=folder).stdout == version, "not this version")
    names = listed(run(bin_ / "hushed", "--help", cwd=folder).stdout)
    require({"audit", "ledger", "query", "release"} <= set(names), f"commands are missing: {names}")
    require(check_help(bin_ / "hushed", folder) > len(names), "the commands below ledger are gone")


def without_extras(wheel: Path, folder: Path) -> None:
    """The core works; what needs an extra is refused in words that name it."""
    bin_ = installed("without-extras", wheel, "")
    shutil.copy(HERE / "core.py", folder)
    (folder / "visits.csv").write_text(VISITS)
    run(bin_ / "python", "core.py", cwd=folder)
    check_command(bin_, folder)
    query = (bin_ / "hushed", "query", "visits.csv", "--count", "--epsilon", "1")
    said = run(*query, cwd=folder, code=1).stderr
    require("pip install 'hushed[tables]'" in said, f"query does not name its extra: {said}")
    said = run(bin_ / "hushed", *FIGURE, cwd=folder, code=1).stderr
    require("pip install 'hushed[plot]'" in said, f"a figure does not name its extra: {said}")
    said = run(bin_ / "hushed", "workbench", "--no-browser", cwd=folder, code=1).stderr
    require("pip install 'hushed[workbench]'" in said, f"it does not name its extra: {said}")


def with_extras(wheel: Path, folder: Path) -> None:
    """The demo, queries on tables and figures work."""
    bin_ = installed("with-extras", wheel, f"[{EXTRAS}]")
    for script in (HERE / "extras.py", ROOT / "examples" / "demo.py"):
        shutil.copy(script, folder)
    (folder / "visits.csv").write_text(VISITS)
    run(bin_ / "python", "extras.py", cwd=folder)
    query = (bin_ / "hushed", "query", "visits.csv", "--count", "--epsilon", "1")
    said = run(*query, cwd=folder).stdout
    require(bool(re.match(r"count\n-?\d+ ", said)), f"query answers otherwise: {said}")
    run(bin_ / "hushed", *FIGURE, cwd=folder)
    require("<svg" in (folder / "levels.svg").read_text(), "the figure is no picture")
    run(bin_ / "python", "demo.py", cwd=folder)
    written = {path.name for path in (folder / "demo-output").iterdir()}
    wanted = {
        "certificate.html",
        "certificate.json",
        "movements.png",
        "movements.svg",
        "visits.csv",
    }
    require(written == wanted, f"the demo wrote {sorted(written)}")


def main() -> None:
    """Build, look inside, install, run."""
    begun = time.perf_counter()
    shutil.rmtree(BUILD, ignore_errors=True)
    source = copied(BUILD / "source")
    archive, wheel = built(source)
    check_archive(archive)
    check_wheel(wheel, source)
    print(f"{wheel.name} and {archive.name} hold what they should", flush=True)
    with tempfile.TemporaryDirectory() as outside, ThreadPoolExecutor(2) as pool:
        jobs = {}
        for use in (without_extras, with_extras):
            folder = Path(outside) / use.__name__
            folder.mkdir()
            jobs[use] = pool.submit(use, wheel, folder)
        for use, job in jobs.items():
            job.result()
            print(f"{use.__name__.replace('_', ' ')}: {use.__doc__}", flush=True)
    print(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
