"""The other side of `forking.py`: a process that has imported what `tenure serve` needs, and forks for each start.

It reads one request a message from the socket it was given (words, environment and folder as JSON, with the file to
write to), answers with the process id, and reports each end with its exit code. It ends when the socket is closed.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from typing import Any, NoReturn

# What `tenure serve` imports, here once for all of its starts.
import psycopg  # noqa: F401
import uvloop  # noqa: F401

from tenure.__main__ import main as tenure_main

LONGEST = 1 << 18  # bytes of a request
_PR_SET_PDEATHSIG = 1


def main(line: socket.socket) -> None:
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
                request, files, _, _ = socket.recv_fds(line, LONGEST, 1)
                if not request:
                    return
                pid = os.fork()
                if not pid:
                    events.close()
                    become(line, json.loads(request), files[0])
                os.close(files[0])
                line.send(json.dumps({"started": pid}).encode())
                events.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)


def become(line: socket.socket, request: dict[str, Any], out: int) -> NoReturn:
    """Run `tenure` in this process, as if it had been started so."""
    code = 1
    try:
        line.close()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
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
