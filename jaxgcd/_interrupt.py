"""Running code of others that knows of no limits."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

INTERVAL = 0.05
"""Seconds from one look at the code to the next."""


def supervised(function: Callable[[], T], watch: Callable[[float], None]) -> T:
    """What `function` returns or raises; it runs in a thread of its own.

    Every now and then `watch` is called with the processor seconds that the thread has used (where the
    system does not tell, the seconds since it began). What `watch` raises stops the thread and is raised
    here. Python code is stopped wherever it is; a single operation of a C library is waited for.

    >>> supervised(lambda: 6 * 7, lambda seconds: None)
    42
    """
    worker = _Worker(function)
    worker.start()
    # Not `join`: a KeyboardInterrupt within it makes Python take the thread for ended (bpo-45274).
    try:
        worker.over.wait(INTERVAL)
        while worker.is_alive():
            watch(worker.seconds())
            worker.over.wait(INTERVAL)
    finally:
        while worker.is_alive():  # again, as an exception is lost where Python ignores exceptions
            worker.stop()
            worker.over.wait(INTERVAL)
    if worker.error is not None:
        raise worker.error
    return worker.result[0]


class _Worker(threading.Thread, Generic[T]):
    def __init__(self, function: Callable[[], T]):
        super().__init__(daemon=True)
        self._function = function
        self._ended = threading.Lock()  # held for good once the function has come to its end
        self.over = threading.Event()
        self._begin = time.monotonic()
        self.result: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            try:
                self.result.append(self._function())
            except SystemExit:
                raise
            except BaseException as error:
                self.error = error
            self._ended.acquire()
        except SystemExit:  # what `stop` raises
            pass
        finally:
            self.over.set()

    def seconds(self) -> float:
        """Processor seconds used so far."""
        try:
            return time.clock_gettime(time.pthread_getcpuclockid(self.ident or 0))
        except (AttributeError, OSError):  # another system, or the thread is just over
            return time.monotonic() - self._begin

    def stop(self) -> None:
        """Raises an exception in the thread, unless it has come to its end."""
        if self._ended.acquire(blocking=False):
            number = ctypes.c_ulong(self.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(SystemExit))
            self._ended.release()
