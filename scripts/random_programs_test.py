#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random programs against the fp64 evaluator: draws them (bench/make_random_specs.py), makes random legal variants of each and compares their
outputs with the evaluator's, on the PTX simulator or on a device. Programs that once were wrong stand in tests/random_programs; they are run too.

Each program ends as one of
  right      every variant agrees, at the problem of the spec
  refused    no template makes it, no variant compiles in time without spills, the simulator lacks an instruction or takes too long; by reason
  wrong      an output is outside its bound, or the simulator found a race, a missing fence or an access out of bounds
  crashed    anything else: another exit code, a signal, no end, a spec that the checker does not take
Exit code 1 when a program is wrong or crashed, or fewer are right than --least.

With --check-only a program is right when the checker takes its spec.

usage: random_programs_test.py KERNELWRIGHT [--count 300] [--seed 1] [--device none|cuda:0] [--variants 1] [--keep FOLDER] [SPEC...]
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import make_random_specs  # noqa: E402

KNOWN = ROOT / "tests" / "random_programs"
SPILLS = "compiler: spills registers"
VERDICTS = ("right", "refused", "wrong", "crashed")


def without_names(reason):
    """The reason with the names of one program left out, so that equal reasons count as one."""
    reason = re.sub(r"\b(output|argument|tensor) \w+", r"\1 _", reason)
    reason = re.sub(r"\bindex [a-z]\d?\b", "index _", reason)
    reason = re.sub(r"over [\w*,+ ]+ and over [\w*,+ ]+ elements", "over indices of two extents", reason)
    reason = re.sub(r"^(\w+) over \w+(,\w+)+:", r"\1 over _,_:", reason)
    reason = re.sub(r"^\w+ has (one element a row)", r"an output has \1", reason)
    reason = re.sub(r"^\w+ is (read|written|updated)", r"an output is \1", reason)
    # An expression stands before a colon or "depends on".
    reason = re.sub(r"^.*[\[(].*(: | depends on [a-z]\d?)", lambda match: "an expression" + re.sub(r"on [a-z]\d?$", "on an index", match[1]), reason)
    return reason


def why_no_template(text):
    """The reason that tells most: that of the row template, or of a template of contractions where the program has a matrix product."""
    reasons = dict(re.findall(r"^  (\w+): (.*)$", text, re.MULTILINE))
    of_rows = reasons.get("row_sm80", "")
    if of_rows and "product of matrices" not in of_rows:
        return "rows: " + without_names(of_rows)
    of_products = next((reason for name, reason in reasons.items() if name.startswith("gemm")), text.strip().splitlines()[0])
    return "contraction: " + without_names(of_products)


def why_not_compiled(failures):
    texts = " ".join(failures)
    if "compile_timeout" in texts:
        return "compiler: no answer in 30 s"
    return SPILLS if not texts or "spill" in texts else "compiler: " + texts[:120]


def judged(done):
    """(verdict, reason) of one run."""
    errors = done.stderr.strip()
    if done.returncode == 0:
        return "right", ""
    if done.returncode == 1 and ("no template makes" in errors or "not made yet" in errors):
        return "refused", why_no_template(errors) if "no template makes" in errors else "plan: " + without_names(errors.splitlines()[-1].partition(": ")[2])
    if done.returncode in (1, 2) and re.search(r"\.ptx:\d+: .*is not known", errors):
        return "refused", "simulator: " + re.sub(r"^.*\.ptx:\d+: ", "", errors.splitlines()[0])
    if done.returncode == 1 and done.stdout.lstrip().startswith("{"):
        problem = json.loads(done.stdout)["problems"][0]
        if problem.get("variants", problem.get("compiled", 0)) == 0:
            return "refused", why_not_compiled(problem.get("failures", []))
        return "wrong", "; ".join(problem["failures"])
    return "crashed", f"exit code {done.returncode}: {errors[:300]}"


def run_program(args, cache, path):
    spec = tomllib.loads(path.read_text())
    problem = ",".join(f"{dim}={extent}" for dim, extent in spec["dims"].items())
    has_device = args.device != "none"
    command = [args.executable, "verify" if has_device else "simulate", str(path), *(["--set", problem] if problem else []), "--variants", str(args.variants),
               "--seed", str(args.seed), "--arch", args.arch, "--cache", str(cache), "--json", *(["--device", args.device] if has_device else ["--jobs", "1"])]
    begin = time.monotonic()
    try:
        checked = subprocess.run([args.executable, "explain", str(path), "--stop-after", "check"], capture_output=True, text=True, timeout=60, check=False)
        if checked.returncode != 0:
            return "crashed", f"not a legal spec: {checked.stderr.strip()[:300]}", 0.0
        if args.check_only:
            return "right", "", time.monotonic() - begin
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.limit_s, check=False)
        if judged(done) == ("refused", SPILLS):  # few of its variants do not: look at more
            command[command.index("--variants") + 1] = str(16 * args.variants)
            done = subprocess.run(command, capture_output=True, text=True, timeout=args.limit_s, check=False)
    except subprocess.TimeoutExpired:
        # A word that many threads read costs the simulator time in the square of their number. A device has its own limit, so that is a fault.
        return "crashed" if has_device else "refused", f"simulator: no end in {args.limit_s} s", time.monotonic() - begin
    return *judged(done), time.monotonic() - begin


def report(results):
    counts = collections.Counter(verdict for _, verdict, _, _ in results)
    print(f"\n{len(results)} programs: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS))
    by_style = collections.defaultdict(collections.Counter)
    for name, verdict, _, _ in results:
        by_style[name.rpartition("_")[2] if name.startswith("random") else "known"][verdict] += 1
    for style, found in sorted(by_style.items()):
        print(f"  {style:<12}" + ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS if found[verdict]))
    reasons = collections.Counter(reason for _, verdict, reason, _ in results if verdict == "refused")
    for reason, count in sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0])):
        print(f"  refused {count:>3}  {reason}")
    for name, verdict, reason, _ in results:
        if verdict in ("wrong", "crashed"):
            print(f"  {verdict}: {name}: {reason}")
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("executable")
    parser.add_argument("specs", nargs="*", type=pathlib.Path, help="these too")
    make_random_specs.add_draw_options(parser)
    parser.add_argument("--device", default="none")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--variants", type=int, default=1)
    parser.add_argument("--jobs", type=int, help="programs at a time (default: one per core; 1 on a device, which takes them in turn)")
    parser.add_argument("--limit-s", type=int, default=120, help="of one program")
    parser.add_argument("--check-only", action="store_true")
    parser.add_argument("--least", type=int, default=0, help="how many programs must be right")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the specs and the compiled kernels, kept")
    parser.add_argument("--verbose", action="store_true", help="a line for each program")
    args = parser.parse_args()
    args.executable = str(pathlib.Path(args.executable).resolve())
    with tempfile.TemporaryDirectory(prefix="kernelwright-random-") as scratch:
        folder = args.keep or pathlib.Path(scratch)
        (folder / "specs").mkdir(parents=True, exist_ok=True)
        paths = sorted(KNOWN.glob("*.op.toml")) + args.specs
        for name, text in make_random_specs.random_specs(args.count, args.seed, args.styles, args.without, args.max_statements):
            paths.append(folder / "specs" / f"{name}.op.toml")
            paths[-1].write_text(text)
        results = []
        jobs = args.jobs or (1 if args.device != "none" else os.cpu_count() or 2)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for path, (verdict, reason, seconds) in zip(paths, pool.map(lambda path: run_program(args, folder / "cubins", path), paths)):
                results.append((path.name.removesuffix(".op.toml"), verdict, reason, seconds))
                if args.verbose:
                    print(f"{results[-1][0]:<28}{verdict:<9}{seconds:6.1f} s  {reason[:150]}", flush=True)
        counts = report(results)
    is_right = counts["wrong"] + counts["crashed"] == 0 and counts["right"] >= args.least
    print("PASS" if is_right else "FAIL")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
