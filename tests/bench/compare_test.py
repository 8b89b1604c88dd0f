#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench/compare.py computes without a GPU: intervals, headroom, the summary, the shapes file; and its binding of the library.

usage: compare_test.py BENCH_FOLDER LIBRARY KERNELWRIGHT
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

bench, library_path, executable = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
sys.path.insert(0, str(bench))
import compare  # noqa: E402
import kernelwright_library  # noqa: E402
import ladder  # noqa: E402


class Ladder(unittest.TestCase):
    def test_every_pinned_rung_is_one_legal_config_of_its_template(self):
        example = ladder.ROOT / "examples/matmul_bias_relu/matmul_bias_relu.op.toml"
        for title, template, config in ladder.rungs():
            if config is None:
                continue
            with self.subTest(title), tempfile.TemporaryDirectory() as folder:
                spec = pathlib.Path(folder) / "rung.op.toml"
                spec.write_text(ladder.pinned(example, config))
                templates = ladder.only_template(template, pathlib.Path(folder) / "templates")
                done = subprocess.run([executable, "generate", spec, "--arch", "sm_90a", "--templates", templates, "--limit", "2", "--json", "-o",
                                       pathlib.Path(folder) / "out"], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(len(json.loads(done.stdout)["variants"]), 1)


class Numbers(unittest.TestCase):
    def test_an_interval_holds_its_median_and_shrinks_to_a_constant(self):
        middle, low, high = compare.interval([0.98, 1.0, 1.01, 1.02, 0.99, 1.0, 1.03])
        self.assertEqual(middle, 1.0)
        self.assertTrue(0.98 <= low <= middle <= high <= 1.03)
        self.assertEqual(compare.interval([0.9] * 5), (0.9, 0.9, 0.9))

    def test_headroom_is_one_at_the_bound_and_nothing_where_the_peer_is_there(self):
        self.assertAlmostEqual(compare.headroom(2.0, 20.0, 10.0), 1.0)
        self.assertAlmostEqual(compare.headroom(1.0, 20.0, 10.0), 0.0)
        self.assertIsNone(compare.headroom(1.0, 10.0, 10.0))
        self.assertIsNone(compare.headroom(1.0, 10.0, None))

    def test_the_bound_is_arithmetic_or_traffic_whichever_is_longer(self):
        args = compare.read_arguments(["--db", "x", "--peak-tflops", "1000", "--peak-gbs", "4000"])
        large = {"M": 8192, "N": 8192, "K": 8192, "dtype": "bf16"}
        self.assertAlmostEqual(compare.bound_us("gemm", large, args), 2 * 8192**3 / 1e9)
        thin = {"M": 1, "N": 4096, "K": 4096, "dtype": "bf16"}
        self.assertAlmostEqual(compare.bound_us("gemm", thin, args), 2 * (4096 * 4096 + 2 * 4096) / 4e6)

    def test_the_work_of_a_plan_counts_no_intermediate(self):
        mlp = {"op": "swiglu_mlp", "M": 2, "D": 3, "F": 5, "dtype": "bf16"}
        self.assertEqual(compare.bytes_of("plans", mlp), 2 * (2 * 3 + 3 * 5 * 3 + 2 * 3))
        self.assertEqual(compare.flops_of("plans", mlp), 3 * 2 * 2 * 3 * 5)
        norm = {"op": "linear_residual_rmsnorm", "M": 2, "D": 3, "K": 5, "dtype": "bf16"}
        self.assertEqual(compare.bytes_of("plans", norm), 2 * (2 * 5 + 3 * 5 + 3 + 3 * 2 * 3))
        self.assertEqual(compare.flops_of("plans", norm), 2 * 2 * 3 * 5)

    def test_the_summary_names_losers_only_when_the_whole_interval_is_below_one(self):
        rows = [{"case": "won", "ratio_peer_over_ours": {"cublas": [1.5, 1.4, 1.6], "cublaslt": [1.2, 1.1, 1.3]}},
                {"case": "open", "ratio_peer_over_ours": {"cublas": [0.99, 0.97, 1.01]}},
                {"case": "lost", "ratio_peer_over_ours": {"cublas": [0.5, 0.49, 0.51]}},
                {"case": "broken", "error": "RuntimeError: wrong result"}, {"case": "absent", "not_served": "no op"}]
        summary = compare.summary(rows)
        self.assertEqual(summary["cases"], 3)
        self.assertAlmostEqual(summary["geometric_mean"], (1.2 * 0.99 * 0.5) ** (1 / 3), places=4)
        self.assertEqual((summary["minimum"], summary["losers"]), (0.5, ["lost"]))
        self.assertEqual((summary["failed"], summary["not_served"]), (["broken"], ["absent"]))

    def test_cases_are_chosen_by_kind_and_name_and_have_a_type(self):
        shapes = {"gemm": [{"name": "a1", "M": 1}, {"name": "b1", "M": 1, "dtype": "f16"}], "rows": [{"name": "a2"}]}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(shapes, file)
            file.flush()
            chosen = compare.read_cases(file.name, ["gemm", "rows"], "^a")
            self.assertEqual([(kind, case["name"], case["dtype"]) for kind, case in chosen], [("gemm", "a1", "bf16"), ("rows", "a2", "bf16")])
            with self.assertRaisesRegex(SystemExit, "--only: convs"):
                compare.read_cases(file.name, ["convs"], "")
        self.assertGreater(len(compare.read_cases(bench / "shapes.json", list(compare.KINDS), "")), 100)

    def test_the_library_is_called_and_its_sentence_comes_back(self):
        with self.assertRaisesRegex(kernelwright_library.LibraryError, "absent.db: no such database"):
            kernelwright_library.Library(library_path, "/nowhere/absent.db")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
