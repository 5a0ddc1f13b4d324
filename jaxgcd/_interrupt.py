"""Running code of others that knows of no time limit."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


def within(seconds: float, function: Callable[[], T]) -> T:
    """What `function` returns or raises; it runs in a thread of its own, which is stopped when time is up.

    Python code is stopped, wherever it is, and also when the caller is interrupted; a single operation of a
    C library is waited for.

    Raises:
        TimeoutError: `function` took longer than that.

    >>> within(10.0, lambda: 6 * 7)
    42
    """
    worker = _Worker(function)
    worker.start()
    try:
        worker.join(min(seconds, threading.TIMEOUT_MAX))
        stopped = worker.is_alive()
    finally:
        while worker.is_alive():  # again, as an exception is lost where Python ignores exceptions
            worker.stop()
            worker.join(0.1)
    if stopped:
        raise TimeoutError
    if worker.error is not None:
        raise worker.error
    return worker.result[0]


class _Worker(threading.Thread, Generic[T]):
    def __init__(self, function: Callable[[], T]):
        super().__init__(daemon=True)
        self._function = function
        self._over = threading.Lock()  # held for good once the function has come to its end
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
            self._over.acquire()
        except SystemExit:  # what `stop` raises
            pass

    def stop(self) -> None:
        """Raises an exception in the thread, unless it has come to its end."""
        if self._over.acquire(blocking=False):
            number = ctypes.c_ulong(self.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(SystemExit))
            self._over.release()
