"""Stands for a tool that `tool_server.py` runs.

    tool_client.py SOCKET TOOL ARGUMENT ...

It starts for each command of a test, so it imports next to nothing: `socket` takes as
long to load as Python takes to start.
"""

import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SHUT_WR, SOL_SOCKET, socket

path, *command = sys.argv[1:]
files = b"".join(file.to_bytes(4, sys.byteorder) for file in (0, 1, 2))
server = socket(AF_UNIX)
server.connect(path)
server.sendmsg([b"\0"], [(SOL_SOCKET, SCM_RIGHTS, files)])
server.sendall(ascii((command, os.getcwd(), dict(os.environ))).encode())
server.shutdown(SHUT_WR)
code = server.recv(8)
sys.exit(int(code) if code else f"{command[0]}: crashed")
