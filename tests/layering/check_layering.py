#!/usr/bin/env python3
# Checks the folders' direction, the doors of foreign headers, file sizes and licence lines, by reading the sources.
#   check_layering.py ROOT          prints one line for each finding; exit 1 when there is one
#   check_layering.py --self-test   plants each fault in a made-up tree and checks that it is found
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys
import tempfile

GENERATOR = ["base", "spec", "plan", "rewrite", "space", "lower", "emit"]  # each may include those before it

# Header pattern -> folders whose files may include it.
DOORS = [
    (r"sqlite3\.h", ["db"]),
    (r"(clang|llvm)/", ["generator/rewrite"]),
    (r"toml\+\+/", ["generator/base"]),
    (r"boost/", ["tuner/cli"]),
    (r"catch2/", ["tests"]),
    (r"xxhash\.h", ["generator/base", "db"]),
    (r"zstd\.h", ["db"]),
    (r"cuda\.h", ["tests/tuner/device", "tests/simulator/kernels", "tests/simulator/mutation"]),  # our own declarations against the toolkit's, where it is
    (r"(cuda_fp16|cuda_bf16|cuda_fp8|cuda_runtime)\.h", ["tests/simulator/kernels", "tests/simulator/mutation"]),  # texts of kernels, compiled by hand
    (r"cublasLt\.h", ["tests/tuner/device"]),  # the same
    (r"(nvrtc|nvml|cuda_runtime_api)\.h", []),
    (r"dlfcn\.h", ["tuner/device", "tuner/compile", "tests"]),
]
MAX_LINES = 500
CODE = {".h", ".cpp", ".cuh", ".cu", ".py", ".sh", ".sql", ".in"}
FOLDERS = ["generator", "templates", "simulator", "db", "tuner", "tests", "scripts", "bench", "examples", "cmake", "docs", ".ci"]
# Paths of one machine have no place in the project.
FORBIDDEN = re.compile("(?<![A-Za-z0-9_.])/(work|root)" + "/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def allowed_folders(folder):
    """Top folders (or generator/x) that a file of `folder` may include from; None: any."""
    if folder.startswith("generator/"):
        part = folder.split("/")[1]
        if part not in GENERATOR:
            return {folder}
        before = {"generator/" + name for name in GENERATOR[: GENERATOR.index(part) + 1]}
        # The templates' embedded text is read where variants are made.
        return before | {"templates"} if part == "emit" else before
    if folder == "db":
        return {"db", "generator/base"}
    if folder == "simulator":
        return {"simulator", "generator/base"}
    if folder == "templates":
        return {"templates", "parts", "ptx", "gemm", "rows", "generator/base"}
    if folder == "tuner":
        return {"tuner", "db", "simulator", "templates"} | {"generator/" + name for name in GENERATOR}
    return None


def folder_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "generator" and len(parts) > 2 else parts[0]


def check_includes(path, lines):
    folder = folder_of(path)
    allowed = allowed_folders(folder)
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, header = match.groups()
        where = f"{path}:{number}: includes {header}"
        if "../" in header:
            yield f"{where}: includes start at the root, without ../"
            continue
        if quote == '"' and allowed is not None:
            target = folder_of(header)
            if "/" in header and target not in allowed:
                yield f"{where}: {folder} may include only from {', '.join(sorted(allowed))}"
        for pattern, doors in DOORS:
            # tests/export/host_cuda stands in for the CUDA run-time, and emitted text names its headers.
            if re.match(pattern, header) and not any(path.startswith(door + "/") for door in doors):
                yield f"{where}: only {' and '.join(doors) or 'nothing'} may include it"
        if path.endswith(".h") and header.startswith("fmt/"):
            yield f"{where}: fmt is for .cpp files"


def check_file(path, text):
    lines = text.splitlines()
    if pathlib.PurePath(path).suffix in {".h", ".cpp", ".cuh", ".cu", ".in"}:
        yield from check_includes(path, lines)
    is_golden = path.startswith("tests/golden/")  # generated text
    if len(lines) > MAX_LINES and not is_golden:
        yield f"{path}: {len(lines)} lines: the hard limit is {MAX_LINES}"
    if not is_golden and not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:15]):
        yield f"{path}: no line 'SPDX-License-Identifier: Apache-2.0' among the first 15"


def check_tree(root):
    findings = []
    for top in FOLDERS:
        for file in sorted((root / top).rglob("*")):
            if not file.is_file() or "__pycache__" in file.parts:
                continue
            path = file.relative_to(root).as_posix()
            try:
                text = file.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # a test input that is not text
            if file.suffix in CODE:
                findings += check_file(path, text)
            for number, line in enumerate(text.splitlines(), 1):
                if FORBIDDEN.search(line):
                    findings.append(f"{path}:{number}: names a path of one machine")
    return findings


SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
PLANTED = [
    ("generator/spec/a.h", SPDX + '#include "generator/plan/b.h"\n', "may include only"),
    ("generator/base/a.h", SPDX + '#include "db/database.h"\n', "may include only"),
    ("generator/emit/a.cpp", SPDX + '#include "tuner/session/a.h"\n', "may include only"),
    ("db/a.cpp", SPDX + '#include "generator/spec/program.h"\n', "may include only"),
    ("tuner/cli/a.cpp", SPDX + "#include <sqlite3.h>\n", "only db may include"),
    ("generator/space/a.cpp", SPDX + "#include <clang/AST/AST.h>\n", "only generator/rewrite"),
    ("generator/plan/a.cpp", SPDX + "#include <toml++/toml.h>\n", "only generator/base"),
    ("tuner/compile/a.cpp", SPDX + "#include <nvrtc.h>\n", "only nothing"),
    ("tuner/session/a.cpp", SPDX + '#include "../b.h"\n', "without ../"),
    ("tuner/session/a.h", SPDX + "#include <fmt/format.h>\n", "fmt is for .cpp"),
    ("db/b.cpp", SPDX + "\n" * MAX_LINES, "hard limit"),
    ("db/c.cpp", "int x;\n", "no line 'SPDX"),
    ("docs/a.md", "see /wo" + "rk/x\n", "path of one machine"),
]
CLEAN = [
    ("generator/spec/ok.cpp", SPDX + '#include "generator/base/error.h"\n#include <vector>\n'),
    ("tuner/session/ok.cpp", SPDX + '#include "generator/emit/variant.h"\n#include "db/database.h"\n'),
    ("db/ok.cpp", SPDX + "#include <sqlite3.h>\n"),
    ("docs/ok.md", "a framework/x and ../root/x\n"),
]


def self_test():
    num_failed = 0
    for path, text, expected in PLANTED + [(path, text, None) for path, text in CLEAN]:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True)
            file.write_text(text)
            findings = check_tree(pathlib.Path(folder))
        is_right = not findings if expected is None else len(findings) == 1 and expected in findings[0]
        if not is_right:
            num_failed += 1
            print(f"{path}: expected {expected!r}, found {findings}")
    print(f"{len(PLANTED) + len(CLEAN) - num_failed} passed, {num_failed} failed")
    return 1 if num_failed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    findings = check_tree(pathlib.Path(sys.argv[1]))
    for finding in findings:
        print(finding)
    print(f"layering: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
