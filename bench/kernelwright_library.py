# SPDX-License-Identifier: Apache-2.0
"""libkernelwright.so for Python programs that hold device pointers (PyTorch, CuPy): tuner/runtime/include/kernelwright.h through ctypes."""
import ctypes

MATCHES = ("exact", "near", "modelled", "other_device")
FIND_OTHER_DEVICE = 1


class Value(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_int64)]


class Arguments(ctypes.Structure):
    _fields_ = [("tensors", ctypes.POINTER(ctypes.c_void_p)), ("num_tensors", ctypes.c_size_t), ("scalars", ctypes.POINTER(ctypes.c_double)),
                ("num_scalars", ctypes.c_size_t), ("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_size_t),
                ("zeroed_workspace", ctypes.c_void_p), ("zeroed_workspace_bytes", ctypes.c_size_t)]


class LibraryError(RuntimeError):
    """A call that failed; the text is kw_last_error()."""


class Library:
    """The loaded library with one open database."""

    def __init__(self, library_path, database_path):
        self.calls = ctypes.CDLL(library_path)
        handle = ctypes.c_void_p
        for name, result, arguments in (
                ("kw_last_error", ctypes.c_char_p, []),
                ("kw_find", ctypes.c_int, [handle, ctypes.c_char_p, ctypes.POINTER(Value), ctypes.c_size_t, ctypes.c_uint, ctypes.POINTER(handle)]),
                ("kw_launch", ctypes.c_int, [handle, ctypes.POINTER(Arguments), ctypes.c_void_p]),
                ("kw_close", None, [handle]),
                ("kw_kernel_release", None, [handle]),
                ("kw_kernel_match", ctypes.c_int, [handle]),
                ("kw_kernel_explanation", ctypes.c_char_p, [handle]),
                ("kw_kernel_variant", ctypes.c_char_p, [handle]),
                ("kw_kernel_config", ctypes.c_char_p, [handle]),
                ("kw_kernel_num_tensors", ctypes.c_size_t, [handle]),
                ("kw_kernel_tensor_name", ctypes.c_char_p, [handle, ctypes.c_size_t]),
                ("kw_workspace_bytes", ctypes.c_size_t, [handle]),
                ("kw_zeroed_workspace_bytes", ctypes.c_size_t, [handle])):
            function = getattr(self.calls, name)
            function.restype, function.argtypes = result, arguments
        self.database = handle()
        self.check(self.calls.kw_open(str(database_path).encode(), ctypes.byref(self.database)))

    def check(self, status):
        if status != 0:
            raise LibraryError(self.calls.kw_last_error().decode())

    def find(self, op, dims, flags=0):
        """The kernel for `dims` (name -> number) on the current context's device."""
        values = (Value * len(dims))(*[Value(name.encode(), number) for name, number in dims.items()])
        handle = ctypes.c_void_p()
        self.check(self.calls.kw_find(self.database, op.encode(), values, len(dims), flags, ctypes.byref(handle)))
        return Kernel(self, handle)

    def __del__(self):
        if getattr(self, "database", None):
            self.calls.kw_close(self.database)


class Kernel:
    def __init__(self, library, handle):
        self.owner, self.handle = library, handle
        calls = library.calls
        self.match = MATCHES[calls.kw_kernel_match(handle)]
        self.explanation = calls.kw_kernel_explanation(handle).decode()
        self.variant = calls.kw_kernel_variant(handle).decode()
        self.config = calls.kw_kernel_config(handle).decode()
        self.tensor_names = [calls.kw_kernel_tensor_name(handle, index).decode() for index in range(calls.kw_kernel_num_tensors(handle))]
        self.workspace_bytes = calls.kw_workspace_bytes(handle)
        self.zeroed_workspace_bytes = calls.kw_zeroed_workspace_bytes(handle)

    def bind(self, pointers, workspace=0, zeroed_workspace=0):
        """A function of a stream's handle that launches; `pointers` by tensor name. The memory is the caller's and must live on."""
        tensors = (ctypes.c_void_p * len(self.tensor_names))(*[pointers[name] for name in self.tensor_names])
        arguments = Arguments(tensors, len(self.tensor_names), None, 0, workspace, self.workspace_bytes, zeroed_workspace, self.zeroed_workspace_bytes)
        return lambda stream: self.owner.check(self.owner.calls.kw_launch(self.handle, ctypes.byref(arguments), stream))

    def __del__(self):
        self.owner.calls.kw_kernel_release(self.handle)
