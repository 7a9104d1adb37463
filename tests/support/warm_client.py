"""Stands in for the command `privlearn`: a fork of a process that has read the library does the work.

Called as: warm_client.py SOCKET REAL_COMMAND ARGUMENT...
"""

from __future__ import annotations

import json
import os
import socket
import sys

ENDLESS = ("coordinate", "party", "serve")  # ended by signals, which are for the real process

place, real, *arguments = sys.argv[1:]
if not {*ENDLESS}.isdisjoint(arguments):
    os.execv(real, [real, *arguments])
with socket.socket(socket.AF_UNIX) as line:
    line.connect(place)
    request = json.dumps([os.getcwd(), dict(os.environ), arguments]).encode()
    socket.send_fds(line, [request[:1]], [0, 1, 2])
    line.sendall(request[1:])
    line.shutdown(socket.SHUT_WR)
    sys.exit(int(line.recv(16) or b"1"))  # nothing: it was killed
