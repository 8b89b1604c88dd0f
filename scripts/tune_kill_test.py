#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `kernelwright tune --device none` (kill -9) at random moments and checks after each kill that the database is sound, that every
row committed before the kill is still there, and that the next run goes on where the killed one stopped.

Half of the kills hit the whole process group, as a crash of the machine would; half hit the parent alone, whose workers must then end by
themselves. The moments are drawn in equal parts over a whole run, from the short phase in which a run with a warm cubin cache writes its
rows, from a run that compiles and simulates, between and during its first rows, and, where there is no database yet, from the few
milliseconds in which it is made. After each kill follows either
another killed run or a complete one, which must end with all 32 rows and reuse those that were there; then a new database is begun.
The op is the example in f32: few configs, so that a run is short and much of it is writing.

usage: tune_kill_test.py KERNELWRIGHT [ROUNDS=200] [--seed S] [--cubins FOLDER]   (FOLDER: compiled kernels kept between calls)
"""
import argparse
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent / "examples/matmul_bias_relu/matmul_bias_relu.op.toml"
ROWS_OF_A_RUN = 32
SECONDS_TO_END = 60  # for the workers of a killed parent


def committed_rows(database):
    """What a reader sees now: content keys of the trials."""
    if not database.exists():
        return set()
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=20)
    try:
        return {key for (key,) in connection.execute("SELECT content_key FROM trial")}
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return set()
        raise
    finally:
        connection.close()


def members_of_group(group):
    """Processes of the group that still run (zombies do not count)."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, _, member_of = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(member_of) == group and state not in "ZX":
            found.append(int(entry.name))
    return found


class KillTest:
    def __init__(self, executable, folder, cubins, rng):
        self.executable, self.cubins, self.rng = executable, cubins, rng
        self.database = folder / "tuning.db"
        self.spec = folder / "matmul_bias_relu.op.toml"
        self.spec.write_text(EXAMPLE.read_text().replace('"f16"', '"f32"'))
        self.run_seconds = 0.0
        self.num_kills = self.num_finished_first = self.num_with_rows = self.num_runs_done = 0

    def command(self, *arguments):
        return [self.executable, *arguments, "--db", str(self.database)]

    def tune_command(self, has_cache=True):
        """With a warm cache a run also leaves the simulator out: it is short, and much of it is writing."""
        return self.command("tune", str(self.spec), "--device", "none", "--arch", "sm_80", "--jobs", "2", "--budget", "24h", "--json",
                            *(["--cache", str(self.cubins), "--no-simulation"] if has_cache else ["--cache", ""]))

    def complete_run(self):
        """A run to its end; it must reuse what is there and end with all rows."""
        before = committed_rows(self.database)
        start = time.monotonic()
        done = subprocess.run(self.tune_command(), capture_output=True, text=True, timeout=900, check=False)
        self.run_seconds = time.monotonic() - start
        if done.returncode != 0:
            sys.exit(f"FAIL: the resumed run ended with {done.returncode}: {done.stderr}")
        summary = json.loads(done.stdout)[0]
        after = committed_rows(self.database)
        if summary["reused"] != len(before) or len(after) != ROWS_OF_A_RUN or not before <= after:
            sys.exit(f"FAIL: {len(before)} rows before the resumed run, {summary['reused']} reused, {len(after)} after it")
        self.num_runs_done += 1

    def killed_run(self):
        hits_group = self.rng.random() < 0.5
        phase = self.rng.choice(["whole", "writing", "compiling"] if self.database.exists() else ["whole", "writing", "compiling", "creating"])
        before = committed_rows(self.database)
        process = subprocess.Popen(self.tune_command(phase != "compiling"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        if phase == "whole":
            time.sleep(self.rng.uniform(0, self.run_seconds))
        elif phase == "creating":
            while not self.database.exists() and process.poll() is None:
                pass
            time.sleep(self.rng.choice([0, 0.001, 0.003, 0.01]))
        else:
            for line in process.stderr:  # "generated 32/32" comes just before the first row
                if b"generated" in line:
                    break
            time.sleep(self.rng.uniform(0, 0.1 if phase == "writing" else 1.5))
        before |= committed_rows(self.database)
        self.num_finished_first += process.poll() is not None
        if hits_group and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
        process.stderr.close()
        self.num_kills += 1
        self.check(before)
        self.wait_for_workers(process.pid)

    def check(self, before):
        done = subprocess.run(self.command("db", "check"), capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0 and self.database.exists():
            sys.exit(f"FAIL: db check ended with {done.returncode}: {done.stdout}{done.stderr}")
        after = committed_rows(self.database)
        if not before <= after:
            sys.exit(f"FAIL: {len(before - after)} of {len(before)} committed rows are lost")
        self.num_with_rows += 0 < len(after) < ROWS_OF_A_RUN

    def wait_for_workers(self, group):
        deadline = time.monotonic() + SECONDS_TO_END
        while members_of_group(group):
            if time.monotonic() > deadline:
                sys.exit(f"FAIL: processes {members_of_group(group)} outlive their killed parent by {SECONDS_TO_END} s")
            time.sleep(0.02)

    def begin_new_database(self):
        for suffix in ("", "-wal", "-shm", "-journal"):
            pathlib.Path(f"{self.database}{suffix}").unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("executable")
    parser.add_argument("rounds", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--cubins", type=pathlib.Path)
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="kernelwright-kill-") as folder:
        test = KillTest(args.executable, pathlib.Path(folder), args.cubins or pathlib.Path(folder) / "cubins", random.Random(args.seed))
        test.complete_run()  # fills the cubin cache
        test.begin_new_database()
        test.complete_run()  # measures what a run takes with it
        test.begin_new_database()
        for round_number in range(args.rounds):
            test.killed_run()
            if args.rounds < 50 or round_number % 10 == 0:
                print(f"round {round_number}: {len(committed_rows(test.database))} rows", flush=True)
            if test.rng.random() < 0.4 or round_number == args.rounds - 1:
                test.complete_run()
                test.begin_new_database()
        print(f"{test.num_kills} kills (run of {test.run_seconds:.1f} s; {test.num_with_rows} left a part of the rows, "
              f"{test.num_finished_first} came after the end), {test.num_runs_done - 2} runs resumed to all {ROWS_OF_A_RUN} rows")
    print("PASS: every database sound, no committed row lost, every next run resumed")


if __name__ == "__main__":
    main()
