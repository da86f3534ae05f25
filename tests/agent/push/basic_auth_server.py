# SPDX-License-Identifier: Apache-2.0
"""An https server that takes pushes from one user.

usage: basic_auth_server.py CERTIFICATE KEY USER:PASSWORD; says "ACCEPT ADDRESS" once it listens.
"""
import base64
import http.server
import ssl
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        wanted = "Basic " + base64.b64encode(sys.argv[3].encode()).decode()
        self.send_response(200 if self.headers["Authorization"] == wanted else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print("ACCEPT 127.0.0.1:%d" % server.server_port, flush=True)
server.serve_forever()
