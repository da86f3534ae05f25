# SPDX-License-Identifier: Apache-2.0
"""Recorder: a reverse proxy before a store that keeps the profiles which clients send through it.

It reads as little of them as it must to tell their kinds apart; what is in them is for `go tool pprof` to say."""

import email.parser
import email.policy
import gzip
import http.client
import http.server
import threading
import typing
import urllib.parse


class Recorded(typing.NamedTuple):
    """A profile as it came, with what its kind is known by."""
    kind: tuple  # its sample types; what the client calls contentions before them
    pprof: bytes
    samples: int


def fields(message):
    """The fields of a protobuf message: (number, int or bytes)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(tag & 7) or varint()
        yield tag >> 3, message[at:at + size]
        at += size


def parts(content_type, body):
    """The parts of a multipart body by name."""
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(
        b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in message.iter_parts()}


def record(pprof, config=b""):
    plain = gzip.decompress(pprof) if pprof.startswith(b"\x1f\x8b") else pprof
    top = list(fields(plain))
    strings = [value.decode() for number, value in top if number == 6]
    types = tuple(strings[dict(fields(value)).get(1, 0)] for number, value in top if number == 1)
    named = [name for name in ("mutex", "block") if f'"{name}_count"'.encode() in config]
    return Recorded((*named, *types), pprof, sum(number == 2 for number, _ in top))


def profiles_of(path, headers, body):
    """The profiles of a request."""
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    if path.startswith("/ingest"):
        content_type = headers.get("content-type", "")
        if not content_type.startswith("multipart/"):
            return [record(body)]
        found = parts(content_type, body)
        return [record(found["profile"], found.get("sample_type_config", b""))]
    if path == "/push.v1.PusherService/Push":
        series = [value for number, value in fields(body) if number == 1]
        samples = [value for one in series for number, value in fields(one) if number == 2]
        return [record(value) for one in samples for number, value in fields(one) if number == 1]
    return []


class Recorder:
    """What came is in `profiles` by the time its client has the answer; `refused` has the answers that are no 200."""

    def __init__(self, store_url):
        self.profiles = []
        self.refused = []
        self.lock = threading.Lock()
        upstream = urllib.parse.urlsplit(store_url).netloc
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                connection = http.client.HTTPConnection(upstream)
                connection.request("POST", self.path, body, dict(self.headers))
                answer = connection.getresponse()
                content = answer.read()
                connection.close()
                with recorder.lock:
                    if answer.status == 200:
                        recorder.profiles += profiles_of(self.path, self.headers, body)
                    else:
                        recorder.refused.append((self.path, answer.status, content))
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() in ("content-type", "content-encoding"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
