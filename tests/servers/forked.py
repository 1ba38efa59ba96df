"""The other side of `forking.py`: a process that imports all modules of tenure once, and forks for each start.

A message on its socket is one request: words, environment and folder as JSON, with the three standard files. It answers
with the process id, and reports the exit code of each process. It ends when the socket is closed.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pkgutil
import selectors
import signal
import socket
import sys
import traceback
from importlib import import_module
from typing import Any, NoReturn

import psycopg  # noqa: F401
import uvicorn.lifespan.on
import uvicorn.loops.uvloop
import uvicorn.protocols.http.httptools_impl
import uvicorn.protocols.websockets.auto  # noqa: F401
import uvloop  # noqa: F401

import tenure
from tenure.__main__ import main as tenure_main

LONGEST = 1 << 18  # bytes of a request
_PR_SET_PDEATHSIG = 1


def main(line: socket.socket) -> None:
    # Commands import most modules inside functions; here all are imported once for all starts.
    for module in pkgutil.walk_packages(tenure.__path__, "tenure."):
        if not module.name.startswith(("tenure.testing", "tenure.__main__")):
            import_module(module.name)
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page that it shares with us
    with selectors.DefaultSelector() as events:
        events.register(line, selectors.EVENT_READ)
        while True:
            for key, _ in events.select():
                if key.fileobj is not line:
                    pid, handle = key.data, key.fd
                    events.unregister(handle)
                    os.close(handle)
                    _, status = os.waitpid(pid, 0)
                    line.send(json.dumps({"ended": pid, "code": os.waitstatus_to_exitcode(status)}).encode())
                    continue
                request, files, _, _ = socket.recv_fds(line, LONGEST, 3)
                if not request:
                    return
                pid = os.fork()
                if not pid:
                    events.close()
                    become(line, json.loads(request), files)
                for file in files:
                    os.close(file)
                line.send(json.dumps({"started": pid}).encode())
                events.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)


def become(line: socket.socket, request: dict[str, Any], files: list[int]) -> NoReturn:
    """Run `tenure` in this process."""
    code = 1
    try:
        line.close()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(3, 64)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environ"])
        sys.argv = ["tenure", *request["words"]]
        tenure_main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - it is printed and ends the process, as at any start
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
