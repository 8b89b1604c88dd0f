#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tunes a small op with a template among the others whose every variant is wrong in one way (tests/faults/templates): it hangs, reads or
writes out of bounds, gives old results, crashes the compiler and so on. Then checks that each fault ends as one row with the right status,
that all other variants are measured, that the winner is the one of a run without the faults, that nothing outlives its limit by more than
five seconds, that a second run does nothing again, and that no process is left behind.

With a GPU 45 other variants are measured. Without one (--device none) the kernels run on the PTX simulator, with fewer others: that finds
every fault but the two that only timing shows, which are expected to be predicted. One fault is expected to pass on a device: a read just
past the end that changes no result. The simulator alone finds it.

usage: planted_faults_test.py KERNELWRIGHT [--device none|cuda:0] [--arch sm_90a] [--cubins FOLDER]   (FOLDER: compiled kernels kept)
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# FAULT of planted_faults.cuh: what it does, its status on a device, its status on the simulator. They run in the order of their texts (1, 10,
# 11, ..., 2, 20, 3): the first is one that ends by itself, so that the start of the workers is no part of the time of the one that hangs.
FAULTS = {
    1: ("writes nothing", "wrong_result", "wrong_result"),
    2: ("reads far outside", "out_of_bounds", "out_of_bounds"),
    # The guard band holds NaN: the read shows because NaN times 0 is not 0.
    3: ("reads past the end, masked by 0", "wrong_result", "out_of_bounds"),
    4: ("writes past the end", "out_of_bounds", "out_of_bounds"),
    5: ("hangs", "hung", "hung"),
    6: ("is right once", "wrong_result", "wrong_result"),
    7: ("keeps the old output", "wrong_result", "wrong_result"),
    8: ("caches by pointer", "wrong_result", "wrong_result"),
    9: ("drops the tail of k", "wrong_result", "wrong_result"),
    10: ("is wrong in the last row", "wrong_result", "wrong_result"),
    11: ("is wrong in the last tile", "wrong_result", "wrong_result"),
    12: ("takes too much smem", "launch_failed", "launch_failed"),
    13: ("traps", "launch_failed", "launch_failed"),
    14: ("is misaligned", "launch_failed", "launch_failed"),
    15: ("crashes the compiler", "compile_crashed", "compile_crashed"),
    16: ("hangs the compiler", "compile_timeout", "compile_timeout"),
    17: ("spills", "spills_refused", "spills_refused"),
    18: ("stops when timed", "under_floor", "predicted"),
    19: ("does half when timed", "wrong_result", "predicted"),
    # The one fault that a device does not show: what is read changes nothing. Only the simulator has bounds for reads.
    20: ("reads past the end, for nothing", "ok", "out_of_bounds"),
}

SPEC = """
name = "planted_faults"
[dims]
M = 2048
N = 2048
K = 2048
[tensors]
A    = { dtype = "f16", shape = ["M", "K"] }
B    = { dtype = "f16", shape = ["N", "K"] }
bias = { dtype = "f16", shape = ["N"] }
out  = { dtype = "f16", shape = ["M", "N"], role = "out" }
[compute]
accumulate = "f32"
body = \"\"\"
acc[m,n] = sum[k](A[m,k] * B[n,k])
out[m,n] = relu(acc[m,n] + bias[n])
\"\"\"
[tune]
BLOCK_M = [64, 128]
BLOCK_N = [64, 128]
WARPS_M = [2]
WARPS_N = [2]
MIN_CTAS_PER_SM = [1]
SPLIT_K = [1]
A_VEC_BYTES = [16]
B_VEC_BYTES = [16]
STAGED_EPILOGUE = [1]
"""
# The rest of [tune], and how many variants the templates proper then have, by whether the target has wgmma.
MANY = {False: ("BLOCK_K = [32]\nTHREAD_M = [8]\nTHREAD_N = [4, 8]\nSTAGES = [2, 3, 4, 5, 6]\nGROUP_M = [1, 8]\n", 45),
        True: ("BLOCK_K = [32, 64]\nTHREAD_M = [8]\nTHREAD_N = [4, 8]\nSTAGES = [3, 4]\nGROUP_M = [8]\nCONSUMERS = [2]\nCLUSTER_M = [1, 2]\n"
               "CLUSTER_N = [1]\nSWIZZLE_BYTES = [128]\nIS_STAGED = [0]\nSPLITS_ARE_CLUSTER = [0]\n", 45)}
FEW = ("BLOCK_K = [32]\nTHREAD_M = [8]\nTHREAD_N = [8]\nSTAGES = [3]\nGROUP_M = [8]\n", 5)

COMPILE_LIMIT_S = 30  # CompilePoolOptions::time_limit
CHECK_LIMIT_S = 20    # GpuWorkerOptions::verify_limit
GRACE_S = 5
TIE_BAND = 0.03       # kTieBand of the tuner: closer than this two variants may take turns as the winner


def children_of(parent):
    """Processes of the tool that run now, zombies left out: {pid: "__gpu-worker" or "__compile-worker"}."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, of = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(of) == parent and state not in "ZX" and len(arguments) > 1:
            found[int(entry.name)] = arguments[1].decode(errors="replace")
    return found


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gpu_processes():
    """Process ids that nvidia-smi lists; None where there is no nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        return None
    done = subprocess.run(["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"], capture_output=True, text=True, timeout=60, check=False)
    return {int(line) for line in done.stdout.split() if line.isdigit()} if done.returncode == 0 else None


class Watch(threading.Thread):
    """Notes the tool's workers while it runs, and the longest time for which there were more than may be: a killed one that does not end."""

    def __init__(self, pid, num_jobs):
        super().__init__(daemon=True)
        self.pid, self.allowed = pid, {"__gpu-worker": 1, "__compile-worker": num_jobs}
        self.seen, self.longest_excess_s, self.is_over = {}, 0.0, False

    def run(self):
        excess_since = None
        while not self.is_over:
            now = children_of(self.pid)
            self.seen.update(now)
            kinds = list(now.values())
            has_excess = any(kinds.count(kind) > most for kind, most in self.allowed.items())
            excess_since = (excess_since or time.monotonic()) if has_excess else None
            if excess_since is not None:
                self.longest_excess_s = max(self.longest_excess_s, time.monotonic() - excess_since)
            time.sleep(0.1)


class Run:
    """One `tune`: its summary, its rows in the order in which they were written, and its workers."""

    def __init__(self, args, folder, name, templates):
        self.database = folder / f"{name}.db"
        command = [args.executable, "tune", str(folder / "planted_faults.op.toml"), "--device", args.device, "--arch", args.arch, "--search", "exhaustive",
                   "--jobs", str(args.jobs), "--json", "--db", str(self.database), "--cache", str(args.cubins or folder / "cubins"),
                   *(["--templates", str(templates)] if templates else [])]
        self.begin = time.time()
        # The crash is an overflow of the compiler's stack: it must have an end.
        limit_stack = lambda: resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=limit_stack)
        self.watch = Watch(process.pid, args.jobs)
        self.watch.start()
        try:
            output, errors = process.communicate(timeout=1800)
        except subprocess.TimeoutExpired:
            for pid in [process.pid, *children_of(process.pid)]:
                os.kill(pid, signal.SIGKILL)
            sys.exit(f"FAIL: {name}: tune does not end")
        finally:
            self.watch.is_over = True
            self.watch.join()
        self.seconds = time.time() - self.begin
        if process.returncode != 0:
            sys.exit(f"FAIL: {name}: tune ended with {process.returncode}: {errors}")
        self.summary = json.loads(output)[0]
        self.rows = self.read_rows()

    def read_rows(self):
        connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        rows = connection.execute("SELECT variant_name, template_name, status, reason, median_us, protocol_name, unix_time_s FROM trial_details ORDER BY trial_id").fetchall()
        connection.close()
        return rows

    def winner(self):
        return self.summary["winner"]["variant"]

    def final_us(self, variant):
        """Time by the full protocol, which is the one without a suffix; None where the variant was no finalist."""
        times = [row["median_us"] for row in self.rows if row["variant_name"] == variant and row["status"] == "ok" and not row["protocol_name"].endswith("-early")]
        return times[-1] if times else None


class Verdicts:
    def __init__(self):
        self.num_failed = 0

    def __call__(self, is_right, text):
        print(f"{'PASS' if is_right else 'FAIL'}  {text}", flush=True)
        self.num_failed += not is_right


def is_tie(run, one, other):
    times = [run.final_us(variant) for variant in (one, other)]
    return None not in times and max(times) <= min(times) * (1 + TIE_BAND)


def check_faults(run, has_device, verdict):
    wrong = []
    print(f"\n{'fault':<36}{'expected':<17}{'found':<17}{'rows':<6}reason")
    for number, (name, on_device, simulated) in FAULTS.items():
        expected = on_device if has_device else simulated
        rows = [row for row in run.rows if row["variant_name"] == f"planted_faults__fault{number}"]
        statuses = [row["status"] for row in rows]
        # What is not told apart from a right kernel may become a finalist: a second row.
        is_right = set(statuses) == {expected} and (len(rows) == 1 or expected == "ok")
        reason = rows[0]["reason"].replace("\n", " ")[:150] if rows else ""
        print(f"{number:>2} {name:<33}{expected:<17}{','.join(sorted(set(statuses))):<17}{len(rows):<6}{reason}")
        if not is_right:
            wrong.append(f"fault {number}, {name}: {len(rows)} rows with status {statuses}, expected one with {expected}")
    print()
    verdict(not wrong, f"{len(FAULTS) - len(wrong)} of {len(FAULTS)} faults end as one row with the right status {wrong or ''}")


def check_others(run, clean, has_device, num_expected, verdict):
    measured = "ok" if has_device else "predicted"
    def names(of):
        return {row["variant_name"] for row in of.rows if row["template_name"] != "planted_faults" and row["status"] == measured}
    def failures(of):  # the same in both runs: a variant may spill
        return {(row["variant_name"], row["status"]) for row in of.rows if row["template_name"] != "planted_faults" and row["status"] != measured}
    bad = sorted(failures(run) - failures(clean))
    verdict(len(names(clean)) == num_expected, f"{len(names(clean))} variants are {measured} without the faults, {num_expected} were meant")
    verdict(names(run) == names(clean) and not bad, f"{len(names(run))} of the {len(names(clean))} other variants are {measured} beside the faults {bad or ''}")
    one, other = run.winner(), clean.winner()
    is_same = one == other or (has_device and is_tie(run, one, other) and is_tie(clean, one, other))
    verdict(is_same, f"winner: {one}" + ("" if one == other else f"; without the faults {other}: {'a tie in both runs' if is_same else 'not a tie'}"))


def check_limits(run, verdict):
    """Rows are written as the trials end, to the second: the time since the row before is that of the trial, and the wait for its kernel."""
    limits = {"hung": CHECK_LIMIT_S, "compile_timeout": COMPILE_LIMIT_S}
    before = run.begin
    longest = 0.0
    for row in run.rows:
        took = row["unix_time_s"] - before
        before = row["unix_time_s"]
        longest = max(longest, took)
        if row["status"] in limits:
            limit = limits[row["status"]]
            verdict(took <= limit + GRACE_S + 1, f"{row['variant_name']} ({row['status']}): {took:.0f} s after the row before, the limit is {limit} s")
    verdict(longest <= COMPILE_LIMIT_S + GRACE_S + 1, f"longest time between two rows: {longest:.0f} s")
    verdict(run.watch.longest_excess_s <= GRACE_S, f"a worker that was killed was gone after {run.watch.longest_excess_s:.1f} s at the latest")


def check_processes(runs, gpu_before, verdict):
    pids = {pid for run in runs for pid in run.watch.seen}
    deadline = time.monotonic() + GRACE_S
    while any(is_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    left = [pid for pid in pids if is_alive(pid)]
    verdict(bool(pids) and not left, f"{len(pids)} workers were seen, {len(left)} are left {left or ''}")
    if gpu_before is None:
        print("      nvidia-smi is not here: its list of processes was not looked at")
        return
    gpu_after = gpu_processes()
    while gpu_after - gpu_before and time.monotonic() < deadline:
        time.sleep(0.5)
        gpu_after = gpu_processes()
    verdict(not gpu_after - gpu_before, f"nvidia-smi lists {len(gpu_after)} processes, {len(gpu_before)} before the runs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("executable")
    parser.add_argument("--device", default="none")
    parser.add_argument("--arch", help="default: sm_90a with a device, else sm_80")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--cubins", type=pathlib.Path)
    args = parser.parse_args()
    args.device = f"cuda:{args.device}" if args.device.isdigit() else args.device
    has_device = args.device != "none"
    args.arch = args.arch or ("sm_90a" if has_device else "sm_80")
    tunables, num_expected = MANY[args.arch == "sm_90a"] if has_device else FEW
    verdict = Verdicts()
    gpu_before = gpu_processes() if has_device else None
    with tempfile.TemporaryDirectory(prefix="kernelwright-faults-") as name:
        folder = pathlib.Path(name)
        (folder / "planted_faults.op.toml").write_text(SPEC + tunables)
        shutil.copytree(ROOT / "templates", folder / "templates")
        shutil.copytree(ROOT / "tests/faults/templates", folder / "templates", dirs_exist_ok=True)
        clean = Run(args, folder, "clean", None)
        print(f"without the faults: {len(clean.rows)} rows, {clean.seconds:.1f} s", flush=True)
        planted = Run(args, folder, "planted", folder / "templates")
        print(f"with them: {len(planted.rows)} rows, {planted.seconds:.1f} s", flush=True)
        again = Run(args, folder, "planted", folder / "templates")
        check_faults(planted, has_device, verdict)
        check_others(planted, clean, has_device, num_expected, verdict)
        verdict(again.summary["compiles"] == 0 and again.summary["launches"] == 0 and len(again.rows) == len(planted.rows),
                f"run again: {again.summary['compiles']} compiled, {again.summary['launches']} runs on the device, {again.seconds:.1f} s")
        check_limits(planted, verdict)
        check_processes([clean, planted, again], gpu_before, verdict)
    print("FAIL" if verdict.num_failed else "PASS: every fault has its row, and nothing else was touched")
    return 1 if verdict.num_failed else 0


if __name__ == "__main__":
    sys.exit(main())
