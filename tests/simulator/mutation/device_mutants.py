#!/usr/bin/env python3
# Chooses mutants of the GEMM fixtures to run on a GPU, and compares what the device shows with what the simulator shows.
#   device_mutants.py prepare BUILD OUT    after the test_mutants_* tests and test_mutants_kernels '[.write]' have run in BUILD:
#                                          OUT gets the program, cubins (OUT/cubin), their PTX (OUT/ptx) and simulator.tsv; needs nvcc
#   OUT/run_mutants_on_device OUT/cubin/*.cubin > device.tsv      on a machine with a GPU of compute capability 9.0
#   device_mutants.py compare OUT/simulator.tsv device.tsv        prints a table; exit 1 when the device shows what the simulator does not
# Chosen: of each operator and GEMM the found mutant with the least CRC of its name, and every survivor of the GEMMs.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import shutil
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
FIXTURES = {
    "gemm_sm90": "gemm_tma_wgmma_sm90a.ptx",
    "gemm_sm80": "gemm_sm80_plain.ptx",
    "split_k_sm80": "gemm_sm80_split_k.ptx",
}
CLEAN = "clean"
UNCHANGED = "unchanged"


def read_table(path):
    """NAME <tab> TEXT lines, in order."""
    rows = [line.split("\t", 1) for line in pathlib.Path(path).read_text().splitlines() if "\t" in line]
    return {name.replace(":", "-"): text for name, text in rows}


def choose(simulator):
    """Names of the chosen mutants."""
    least = {}
    for name, shown in simulator.items():
        case, _, rest = name.partition("-")
        if case not in FIXTURES:
            continue
        operator = rest.partition("-")[2]
        key = name if shown == CLEAN else (case, operator.rstrip("+-^0123456789"))
        least[key] = min(least.get(key, name), name, key=lambda each: zlib.crc32(each.encode()))
    return sorted(least.values())


def prepare(build, out):
    mutants = build / "mutants"
    simulator = {}
    for table in sorted(mutants.glob("*.tsv")):
        simulator.update(read_table(table))
    names = choose(simulator)
    for folder in ("ptx", "cubin"):
        shutil.rmtree(out / folder, ignore_errors=True)
        (out / folder).mkdir(parents=True)
    for case, fixture in FIXTURES.items():
        shutil.copy(ROOT / "tests/simulator/kernels" / fixture, out / "ptx" / f"{case}-{UNCHANGED}.ptx")
        simulator[f"{case}-{UNCHANGED}"] = CLEAN
    for name in names:
        shutil.copy(mutants / f"{name}.ptx", out / "ptx")
    for ptx in sorted((out / "ptx").iterdir()):
        subprocess.run(["ptxas", "-arch=sm_90a", "-o", out / "cubin" / f"{ptx.stem}.cubin", ptx], check=True)
    names += [f"{case}-{UNCHANGED}" for case in FIXTURES]
    (out / "simulator.tsv").write_text("".join(f"{name}\t{simulator[name]}\n" for name in names))
    source = ROOT / "tests/simulator/mutation/run_mutants_on_device.cu"
    stubs = pathlib.Path(shutil.which("nvcc")).resolve().parents[1] / "lib64/stubs"
    subprocess.run(["nvcc", "-std=c++17", "-O3", "-cudart", "static", f"-I{ROOT}", f"-L{stubs}", "-lcuda",
                    "-o", out / "run_mutants_on_device", source], check=True)
    print(f"{len(names)} files in {out / 'cubin'}")


def compare(simulator, device):
    counts = {}
    missed = []
    print("| mutant | simulator | device |\n|---|---|---|")
    for name, shown in device.items():
        expected = simulator[name]
        is_seen_on_device = shown != "right"
        if is_seen_on_device and expected == CLEAN:
            missed.append(name)
        key = ("shown" if is_seen_on_device else "right", "clean" if expected == CLEAN else "found")
        counts[key] = counts.get(key, 0) + 1
        print(f"| {name} | {': '.join(expected.split(': ')[:2])} | {shown} |")
    print()
    for (on_device, on_simulator), count in sorted(counts.items()):
        print(f"device {on_device}, simulator {on_simulator}: {count}")
    not_run = [name for name in simulator if name not in device]
    for name in not_run:
        print(f"not run: {name}")
    for name in missed:
        print(f"MISSED: the device shows {name}, the simulator does not")
    return 1 if missed or not_run else 0


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "prepare":
        prepare(pathlib.Path(arguments[1]), pathlib.Path(arguments[2]))
        return 0
    if len(arguments) == 3 and arguments[0] == "compare":
        return compare(read_table(arguments[1]), read_table(arguments[2]))
    print("usage: device_mutants.py prepare BUILD OUT | compare SIMULATOR_TSV DEVICE_TSV", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
