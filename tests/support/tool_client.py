"""Forwards a command to `tool_server.py`, which runs the tool.

    tool_client.py SOCKET TOOL ARGUMENT ...

Tests start this client for each command, so it imports almost nothing: importing
`socket` takes as long as starting Python.
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
