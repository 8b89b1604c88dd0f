#!/usr/bin/env python3
# Checks the table of docs/hopper-evidence.md against the tests: every test that a row names exists, every tag [V:row] of a test stands in
# the table beside that test, and a row without a test gives its reason.
#   check_evidence.py ROOT          prints one line for each finding; exit 1 when there is one
#   check_evidence.py --self-test   plants each fault in a made-up tree and checks that it is found
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys
import tempfile

TABLE = "docs/hopper-evidence.md"
TESTS = "tests/simulator"
NOT_SIMULATED = "not simulated:"
ROW = re.compile(r"^\| `([a-z0-9-]+)` \| (.+) \| (.+) \|$")
CITATION = re.compile(r"`(tests/[^`:]+): ([^`]+)`")
# TEST_CASE("name", "[V:row][V:row]"), either text perhaps in several adjacent literals.
LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
TEST_CASE = re.compile(r"TEST_CASE\(\s*" + LITERALS + r"(?:,\s*" + LITERALS + r")?\)")
TAG = re.compile(r"\[V:([a-z0-9-]+)\]")


def joined(literals):
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals or ""))


def read_tests(root):
    """{path: {test name: set of tagged rows}}"""
    tests = {}
    for file in sorted((root / TESTS).rglob("*_test.cpp")):
        cases = {joined(name): set(TAG.findall(joined(tags))) for name, tags in TEST_CASE.findall(file.read_text(encoding="utf-8"))}
        tests[file.relative_to(root).as_posix()] = cases
    return tests


def read_table(root):
    """[(line number, row, cited tests, last cell)], and the findings of lines that look like rows and are none"""
    rows, findings = [], []
    for number, line in enumerate((root / TABLE).read_text(encoding="utf-8").splitlines(), 1):
        match = ROW.match(line)
        if match:
            rows.append((number, match[1], CITATION.findall(match[3]), match[3]))
        elif line.startswith("| `"):
            findings.append(f"{TABLE}:{number}: a row is | `name` | behaviour | tests |")
    return rows, findings


def check(root):
    tests = read_tests(root)
    rows, findings = read_table(root)
    seen, cited_by_row = set(), {}
    for number, row, citations, cell in rows:
        where = f"{TABLE}:{number}: {row}"
        if row in seen:
            findings.append(f"{where}: the row is there twice")
        seen.add(row)
        if not citations and not cell.startswith(NOT_SIMULATED):
            findings.append(f"{where}: names no test and does not begin with '{NOT_SIMULATED}'")
        for path, name in citations:
            cited_by_row.setdefault(row, set()).add((path, name))
            if path not in tests:
                findings.append(f"{where}: {path} does not exist")
            elif name not in tests[path]:
                findings.append(f"{where}: {path} has no test '{name}'")
    if not rows:
        findings.append(f"{TABLE}: no rows")
    for path, cases in tests.items():
        for name, tagged in cases.items():
            for row in sorted(tagged):
                if row not in seen:
                    findings.append(f"{path}: '{name}': no row {row} in {TABLE}")
                elif (path, name) not in cited_by_row.get(row, set()):
                    findings.append(f"{path}: '{name}': the row {row} of {TABLE} does not name it")
    return findings


GOOD_TEST = 'TEST_CASE("a b",\n          "[V:one]") {\n}\nTEST_CASE("c "\n          "d") {\n}\n'
GOOD_TABLE = "| row | behaviour | tests |\n|---|---|---|\n| `one` | text | `tests/simulator/x_test.cpp: a b` |\n"
MORE = "| `two` | text | `tests/simulator/x_test.cpp: c d` |\n| `three` | text | not simulated: timing |\n"
PLANTED = [
    (GOOD_TEST, GOOD_TABLE + MORE, None),
    (GOOD_TEST, GOOD_TABLE + "| `two` | text | `tests/simulator/x_test.cpp: c  d` |\n", "has no test 'c  d'"),
    (GOOD_TEST, GOOD_TABLE + "| `two` | text | `tests/simulator/y_test.cpp: c d` |\n", "y_test.cpp does not exist"),
    (GOOD_TEST, GOOD_TABLE + "| `one` | text | not simulated: timing |\n", "is there twice"),
    (GOOD_TEST, GOOD_TABLE + "| `two` | text | timing |\n", "names no test"),
    (GOOD_TEST, GOOD_TABLE + "| `two` | text |\n", "a row is"),
    (GOOD_TEST, "| `two` | text | not simulated: timing |\n", "no row one"),
    (GOOD_TEST, GOOD_TABLE.replace("a b", "c d"), "does not name it"),
    ("", "nothing\n", "no rows"),
]


def self_test():
    num_failed = 0
    for test, table, expected in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in (("tests/simulator/x_test.cpp", test), (TABLE, table)):
                (root / path).parent.mkdir(parents=True)
                (root / path).write_text(text, encoding="utf-8")
            findings = check(root)
        is_right = not findings if expected is None else len(findings) == 1 and expected in findings[0]
        if not is_right:
            num_failed += 1
            print(f"expected {expected!r}, found {findings}")
    print(f"{len(PLANTED) - num_failed} passed, {num_failed} failed")
    return 1 if num_failed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    findings = check(pathlib.Path(sys.argv[1]))
    for finding in findings:
        print(finding)
    print(f"evidence: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
