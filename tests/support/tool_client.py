"""Stands for a tool that `tool_server.py` runs.

    tool_client.py SOCKET TOOL ARGUMENT ...

It starts for each command of a test, so it imports next to nothing.
"""

import os
import socket
import sys

path, *command = sys.argv[1:]
with socket.socket(socket.AF_UNIX) as server:
    server.connect(path)
    socket.send_fds(server, [b"\0"], [0, 1, 2])
    server.sendall(ascii((command, os.getcwd(), dict(os.environ))).encode())
    server.shutdown(socket.SHUT_WR)
    code = server.recv(8)
sys.exit(int(code) if code else f"{command[0]}: crashed")
