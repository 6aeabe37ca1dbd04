"""Serves the build of payments-api that is live, over HTTP on a free port of this machine.

    python3 serve.py FOLDER

FOLDER is an environment of the deployer: `current` in it leads to the build. The port is printed first. A call after a
switch is answered by the new build.

    GET /health                          {"build": "...", "status": "ok"}
    GET /refund?charge=3000&amount=6.00  {"gross": 600, "net": 450}, cents of a refund of some euros; 400 when it is
                                         more than was paid
"""

import http.server
import importlib
import json
import os
import sys
import threading
import urllib.parse

CURRENT = os.path.join(sys.argv[1], "current")
LOCK = threading.Lock()
live = None


def build():
    """The build that is live now, with its modules loaded."""
    global live
    folder = os.path.realpath(CURRENT)
    if not os.path.isdir(folder):
        raise FileNotFoundError("no build is live")
    if folder != live:
        for name in [name for name in sys.modules if name.split(".")[0] == "payments"]:
            del sys.modules[name]
        sys.path[0] = folder
        importlib.invalidate_caches()
        live = folder
    return importlib.import_module("payments.charges"), importlib.import_module("payments.refunds")


def answer(path, query):
    """The status and the body of a call."""
    with LOCK:
        try:
            charges, refunds = build()
        except Exception as cause:  # Whatever is wrong with the build: the server stays up and says so.
            return 503, {"status": "down", "error": str(cause)}
        if path == "/health":
            return 200, {"build": os.path.basename(live), "status": "ok"}
        if path != "/refund":
            return 404, {"error": "there are /health and /refund"}
        try:
            charge = charges.charge(int(query["charge"][0]))
            refund = refunds.partial_refund(charge, query["amount"][0])
        except (KeyError, ValueError, ArithmeticError) as cause:
            return 400, {"error": str(cause)}
        return 200, {"gross": refund.gross, "net": refund.net}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        status, body = answer(url.path, urllib.parse.parse_qs(url.query))
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    # Whoever started it holds the other end of its input; when they are gone, it goes.
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    server.serve_forever()
