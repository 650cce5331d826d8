"""Orders to wrapped functions, in memory that the run and the engine's processes share. Used by both ends."""
import ctypes
import mmap
import os

ORDERS = 8


class Order(ctypes.Structure):
    _fields_ = [("t0_ns", ctypes.c_int64), ("t1_ns", ctypes.c_int64), ("ns", ctypes.c_int64), ("max_hits", ctypes.c_int64),
                ("hits", ctypes.c_int64), ("objects", ctypes.c_int64), ("rank", ctypes.c_int64), ("share", ctypes.c_double), ("site", ctypes.c_wchar * 24),
                ("effect", ctypes.c_wchar * 24), ("place", ctypes.c_wchar * 64), ("text", ctypes.c_wchar * 256)]


class Table(ctypes.Structure):
    """`count` orders are in force; 0 while they are being changed."""
    _fields_ = [("count", ctypes.c_int64), ("orders", Order * ORDERS)]


def attach(path):
    """The table in this file. Raises OSError or ValueError when there is none."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return Table.from_buffer(mmap.mmap(file, ctypes.sizeof(Table)))
    finally:
        os.close(file)
