"""The GPU of a race, by the driver's own libraries and nothing but the standard library: whether there is one, which it
is, and its clock, temperature and power."""

import ctypes
import uuid

NO_ERROR = 0
SM_CLOCK, GPU_SENSOR = 1, 0  # NVML_CLOCK_SM, NVML_TEMPERATURE_GPU
REASONS = ("", "application clocks", "power cap", "hardware slowdown", "sync boost", "thermal slowdown",
           "hardware thermal slowdown", "power brake", "display clocks")  # bit by bit; the first is an idle GPU


class NoGpu(Exception):
    """There is no such GPU here; the message says why."""


def load(name):
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise NoGpu(f"{name} of the NVIDIA driver cannot be loaded ({error})") from error


def find(index, driver=None):
    """{"name", "uuid"} of a GPU by CUDA's own number, which is what both sides count by; NoGpu where there is none.
    `driver`: the path of another libcuda."""
    cuda = load(driver or "libcuda.so.1")

    def call(function, *arguments):
        status = getattr(cuda, function)(*arguments)
        if status != NO_ERROR:
            text = ctypes.c_char_p()
            cuda.cuGetErrorName(status, ctypes.byref(text))
            raise NoGpu(f"{function} answers {(text.value or b'error').decode()} ({status})")

    call("cuInit", 0)
    count, device = ctypes.c_int(), ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    if index >= count.value:
        raise NoGpu(f"there is no device {index}; the driver shows {count.value} of them, counted from 0")
    call("cuDeviceGet", ctypes.byref(device), index)
    name, identity = ctypes.create_string_buffer(128), ctypes.create_string_buffer(16)
    call("cuDeviceGetName", name, len(name), device)
    # Of a part of a GPU (MIG) the second version answers the part's own identity.
    call("cuDeviceGetUuid_v2" if hasattr(cuda, "cuDeviceGetUuid_v2") else "cuDeviceGetUuid", identity, device)
    return {"name": name.value.decode(), "uuid": str(uuid.UUID(bytes=identity.raw))}


class Monitor:
    """Readings of one GPU. What it does not report is left out; where it reports nothing, `reason` says why."""

    def __init__(self, identity, library=None):
        self.handle, self.reason = ctypes.c_void_p(), ""
        try:
            self.nvml = load(library or "libnvidia-ml.so.1")
        except NoGpu as error:
            self.nvml, self.reason = None, str(error)
            return
        status = self.nvml.nvmlInit_v2()
        if status == NO_ERROR:
            for prefix in ("GPU-", "MIG-"):
                status = self.nvml.nvmlDeviceGetHandleByUUID((prefix + identity).encode(), ctypes.byref(self.handle))
                if status == NO_ERROR:
                    return
        self.nvml, self.reason = None, f"NVML knows no device of the identity {identity} (status {status})"

    def value(self, function, *arguments, kind=ctypes.c_uint):
        """What one of NVML's functions answers, or None."""
        found = kind()
        call = getattr(self.nvml, function, None)
        if call is None or call(self.handle, *arguments, ctypes.byref(found)) != NO_ERROR:
            return None
        return found.value

    def read(self):
        """The reading of this moment, in the names of lamina_bench: the clock of the multiprocessors, the temperature,
        the power of the last sample period, and what holds the clock down, where something does."""
        if self.nvml is None:
            return {}
        milliwatts = self.value("nvmlDeviceGetPowerUsage")
        reasons = self.value("nvmlDeviceGetCurrentClocksEventReasons", kind=ctypes.c_ulonglong)
        if reasons is None:  # the older name
            reasons = self.value("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)
        throttled = ", ".join(text for bit, text in enumerate(REASONS) if text and (reasons or 0) >> bit & 1)
        found = {"sm_mhz": self.value("nvmlDeviceGetClockInfo", SM_CLOCK),
                 "temperature_c": self.value("nvmlDeviceGetTemperature", GPU_SENSOR),
                 "power_w": None if milliwatts is None else milliwatts / 1000, "throttled": throttled or None}
        return {key: value for key, value in found.items() if value is not None}
