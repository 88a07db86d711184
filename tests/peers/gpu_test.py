"""The GPU of a race, by a library that answers as the driver's do: usage: gpu_test.py LIBRARY"""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../bench/race"))
import gpu

FAKE = sys.argv.pop(1) if len(sys.argv) > 1 else None
IDENTITY = "00010203-0405-0607-0809-0a0b0c0d0e0f"


class Gpu(unittest.TestCase):
    def test_a_device_is_found_by_its_number(self):
        self.assertEqual(gpu.find(0, FAKE), {"name": "Fake H200", "uuid": IDENTITY})

    def test_a_number_too_high_is_refused_with_how_many_there_are(self):
        with self.assertRaisesRegex(gpu.NoGpu, "no device 1; the driver shows 1 of them"):
            gpu.find(1, FAKE)

    def test_a_driver_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(gpu.NoGpu, "/no/such/driver of the NVIDIA driver cannot be loaded"):
            gpu.find(0, "/no/such/driver")

    def test_a_reading_has_what_the_library_tells_and_nothing_else(self):
        monitor = gpu.Monitor(IDENTITY, FAKE)
        self.assertEqual(monitor.reason, "")
        self.assertEqual(monitor.read(), {"sm_mhz": 1980, "power_w": 123.4, "throttled": "power cap, thermal slowdown"})

    def test_without_the_library_there_are_no_readings_and_a_reason(self):
        monitor = gpu.Monitor(IDENTITY, "/no/such/library")
        self.assertEqual(monitor.read(), {})
        self.assertIn("/no/such/library", monitor.reason)

    def test_a_device_that_the_library_does_not_know_has_no_readings_and_a_reason(self):
        monitor = gpu.Monitor("another", FAKE)
        self.assertEqual(monitor.read(), {})
        self.assertIn("no device of the identity another", monitor.reason)


if __name__ == "__main__":
    unittest.main()
