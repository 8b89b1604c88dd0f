#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of bench/traffic.py: shapes of a spec, ncu's table, the cut of a config."""
import pathlib
import sys
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import traffic  # noqa: E402

REPORT = """==PROF== Connected to process 1
"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum"
"","","byte","byte"
"0","first","1,000","24"
"1","second","2000","1"
child {"variant": "x"}"""


class TrafficTest(unittest.TestCase):
    def test_bytes_of_each_kernel_are_means_over_the_launches(self):
        kernels = traffic.bytes_of_kernels(REPORT)
        self.assertEqual(kernels, [(1000, 24), (2000, 1)])
        self.assertEqual(traffic.by_position(kernels, 2), [[1500 / 1e6, 12.5 / 1e6]])
        self.assertEqual(traffic.by_position(kernels, 1), [[1000 / 1e6, 24 / 1e6], [2000 / 1e6, 1 / 1e6]])
        with self.assertRaisesRegex(ValueError, "3 launches"):
            traffic.by_position(kernels, 3)

    def test_a_report_without_a_table_is_an_error_with_its_end(self):
        with self.assertRaisesRegex(ValueError, "no permission"):
            traffic.bytes_of_kernels("==ERROR== no permission")

    def test_the_cut_is_read_from_the_config(self):
        self.assertEqual(traffic.cut_of("0.BLOCK_K=64,1.STAGES=4,CUT=2"), 2)
        self.assertEqual(traffic.cut_of("BLOCK_K=64"), 0)

    def test_every_case_is_a_spec_whose_dims_are_given(self):
        for op, large, small in traffic.CASES:
            spec = tomllib.loads(traffic.spec_path(op).read_text())
            self.assertEqual(spec["name"], op)
            for dims in (large, small):
                self.assertEqual(set(dims), set(spec["dims"]))
                shapes = traffic.shapes_of(spec, dims)
                self.assertTrue(any(is_output for _, is_output in shapes.values()))


if __name__ == "__main__":
    unittest.main()
