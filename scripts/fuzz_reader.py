"""The body of scripts/fuzz: seeds, a guarded child that tries mutated files, and the findings.

The child notes what fails and goes on; when it dies (a crash, a hang, no memory) that is a finding too, and
the next child starts.
"""

from __future__ import annotations

import argparse
import faulthandler
import gzip
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "scripts")]

from mutations import Mutator  # noqa: E402

HOME = CHECKOUT / ".fuzz"
SEEDS, CORPUS, FINDINGS = HOME / "seeds", HOME / "corpus", HOME / "findings"
#: The file that the child is at, and where it was in the code before it was ended.
LAST, STACK = HOME / "last", HOME / "stack"
TRACES = CHECKOUT.parent / "shared" / "traces"
_SEED_BYTES = 6 << 10
_MAX_BYTES = 64 << 10
#: CPU seconds for a MiB of unpacked input; what is smaller has as much as a quarter of one.
_S_PER_MIB = 10
_MEMORY = 3 << 30
_HANG_S = 100


def main() -> int:
    parser = argparse.ArgumentParser(description="read and analyse mutated traces")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=None, help="of the random numbers; default: the time")
    parser.add_argument("--child", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    seed = int(time.time()) if args.seed is None else args.seed
    if args.child is not None:
        return child(args.child, seed)
    for folder in (SEEDS, CORPUS, FINDINGS):
        folder.mkdir(parents=True, exist_ok=True)
    make_seeds()
    end = time.monotonic() + 60 * args.minutes
    while (left := end - time.monotonic()) > 1:
        watched(left, seed)
        seed += 1
    found = sorted(path.name for path in FINDINGS.glob("*.txt"))
    print(f"fuzz: {len(found)} findings" + "".join(f"\n  .fuzz/findings/{name}" for name in found))
    return int(bool(found))


def watched(seconds: float, seed: int) -> None:
    """One child; the file that it died on, or hangs at, is kept."""
    command = [sys.executable, __file__, "--child", str(seconds), "--seed", str(seed)]
    LAST.write_bytes(b"")
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            time.sleep(0.2)
            if time.time() - LAST.stat().st_mtime > _HANG_S:
                process.kill()
                keep(LAST.read_bytes(), "hang", f"no end after {_HANG_S} s\n{STACK.read_text()}")
                return
    if process.returncode:
        status = process.returncode
        keep(LAST.read_bytes(), f"died-{abs(status)}", f"the process ended with status {status}")


def keep(data: bytes, what: str, detail: str) -> None:
    """A finding: the file, and beside it what happened; one of each kind."""
    if not (FINDINGS / f"{what}.txt").exists():
        (FINDINGS / f"{what}.bin").write_bytes(data)
        (FINDINGS / f"{what}.txt").write_text(detail, encoding="utf-8", errors="backslashreplace")
        print(f"fuzz: {what}", flush=True)


# -- seeds -------------------------------------------------------------------------------------------


def make_seeds() -> None:
    """Small whole files: the cases, and a few events of each shared trace; plain, in gzip, in zip."""
    documents = [p.read_bytes() for p in sorted((CHECKOUT / "tests/data/cases").glob("*/input*.json*"))]
    documents += [cut(path) for path in sorted(TRACES.rglob("*.json*")) if path.is_file()]
    for i, data in enumerate(d for d in documents if 0 < len(d) <= 2 * _SEED_BYTES):
        (SEEDS / f"{i:03}").write_bytes(data)
        if i % 8 == 0:
            (SEEDS / f"{i:03}.gz").write_bytes(gzip.compress(data, mtime=0))
            with zipfile.ZipFile(SEEDS / f"{i:03}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("t.json", data)
    for stored in (CHECKOUT / "tests/data").glob("*.rooflight"):
        (SEEDS / stored.stem).write_bytes(stored.read_bytes())
    execution = json.loads(gzip.decompress((CHECKOUT / "tests/data/execution/et.json.gz").read_bytes()))
    for i in range(0, len(execution["nodes"]), 40):
        few = {**execution, "nodes": execution["nodes"][i : i + 8]}
        (SEEDS / f"execution{i:03}").write_bytes(json.dumps(few).encode())


def cut(path: Path) -> bytes:
    """Some events of a trace that belong together: launches, their kernels and ops, steps."""
    try:
        data = path.read_bytes()
        document = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data, strict=False)
        rows = document["traceEvents"]
    except (ValueError, KeyError, TypeError, OSError):
        return b""
    kinds: dict[str, list[object]] = {}
    linked = {e["args"]["correlation"] for e in rows if _cat(e) == "kernel" and "correlation" in e["args"]}
    few = set(sorted(linked, key=str)[:4])
    for e in rows:
        args = e.get("args") if isinstance(e.get("args"), dict) else {}
        kind = "linked" if args.get("correlation") in few else str(e.get("cat", e.get("ph"))).lower()
        if len(kinds.setdefault(kind, [])) < (10 if kind == "linked" else 3):
            kinds[kind].append(e)
    meta = {k: v for k, v in document.items() if k != "traceEvents" and len(json.dumps(v)) < 2000}
    return _fitting({**meta, "traceEvents": [e for some in kinds.values() for e in some]})


def _cat(event: dict[str, object]) -> str:
    return str(event.get("cat", "")).lower() if isinstance(event.get("args"), dict) else ""


def _fitting(document: dict[str, list[object]]) -> bytes:
    while len(text := json.dumps(document).encode()) > _SEED_BYTES and len(document["traceEvents"]) > 4:
        document["traceEvents"].remove(max(document["traceEvents"], key=lambda e: len(json.dumps(e))))
    return text


# -- the child ---------------------------------------------------------------------------------------


def child(seconds: float, seed: int) -> int:
    """Try files until the time is over."""
    faulthandler.enable()
    warnings.simplefilter("error")
    try:
        import atheris
    except ImportError:
        return at_random(one_input(), seconds, seed)
    with atheris.instrument_imports(include=["rooflight"]):
        try_file = one_input()
    room = _MEMORY + _address_space()
    resource.setrlimit(resource.RLIMIT_AS, (room, room))

    def changed(data: bytes, max_size: int, number: int) -> bytes:
        if number % 8 == 0:
            return bytes(atheris.Mutate(data, max_size))
        return Mutator(number)(data)[:max_size]

    options = [
        f"-max_total_time={int(seconds)}", f"-seed={seed % (1 << 31)}", f"-max_len={_MAX_BYTES}",
        "-timeout=86400", "-rss_limit_mb=0", f"-artifact_prefix={HOME}/", "-print_final_stats=1",
        "-verbosity=0", "-len_control=0",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(CORPUS), str(SEEDS)], try_file, custom_mutator=changed)
    atheris.Fuzz()
    return 0


def at_random(try_file: Callable[[bytes], None], seconds: float, seed: int) -> int:
    """The same without knowing what an input reached."""
    room = _MEMORY + _address_space()
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    files = [path.read_bytes() for path in sorted(SEEDS.iterdir())]
    dice, end, n = random.Random(seed), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = dice.choice(files)
        for _ in range(dice.choice((1, 2, 4))):
            data = Mutator(dice.getrandbits(32))(data)[:_MAX_BYTES]
        try_file(data)
        n += 1
    print(f"fuzz: {n} files")
    return 0


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def one_input() -> Callable[[bytes], None]:
    """What is done with one file; the library is imported here, where it is instrumented."""
    from rooflight.readers.source import unpacked_file
    from tests.attempts import CHUNKS, LIMITS, attempt

    file = Path(os.environ.get("XDG_RUNTIME_DIR", "/dev/shm")) / f"fuzz-{os.getpid()}"

    def size() -> int:
        try:
            return sum(map(len, unpacked_file(file, LIMITS)))
        except Exception:  # a bug in there is found below
            return LIMITS.ratio_floor

    stack = STACK.open("w", encoding="utf-8")

    def try_file(data: bytes) -> None:
        faulthandler.dump_traceback_later(_HANG_S / 2, file=stack)
        file.write_bytes(data)
        LAST.write_bytes(data)
        dice = hashlib.blake2b(data, digest_size=2).digest()
        begin = time.process_time()
        try:
            attempt(file, chunk=CHUNKS[dice[0] % len(CHUNKS)], salvage=dice[1] % 4 == 0)
        except Exception as e:  # every one is a finding
            keep(data, _kind(e), traceback.format_exc())
        spent = time.process_time() - begin
        if spent > 1 and spent > _S_PER_MIB * max(0.25, size() / (1 << 20)):
            keep(data, f"slow-{int(spent)}s", f"{spent:.1f} s of CPU for {size()} bytes")

    return try_file


def _kind(error: Exception) -> str:
    """What failed and where in the library, as the name of a finding."""
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if "/rooflight/" in f.filename or "/tests/" in f.filename
    ]
    place = f"{Path(frames[-1].filename).stem}-{frames[-1].lineno}" if frames else "nowhere"
    return f"{type(error).__name__}-{place}"


if __name__ == "__main__":
    sys.exit(main())
