# SPDX-License-Identifier: Apache-2.0
"""Profiles itself with pyroscope-io until its input ends: client.py URL NAME PASSWORD."""

import sys
import threading

import pyroscope


def hot_leaf(number):
    return sum(i * i for i in range(number))


def outer():
    return hot_leaf(2000)


def wait_for_end(ended):
    sys.stdin.read()
    ended.set()


def main():
    url, name, password = sys.argv[1:]
    pyroscope.configure(application_name="python-client", server_address=url, basic_auth_username=name,
                        basic_auth_password=password, tags={"team": "a.b"}, upload_interval=1)
    ended = threading.Event()
    threading.Thread(target=wait_for_end, args=(ended,), daemon=True).start()
    while not ended.is_set():
        outer()
    pyroscope.shutdown()


main()
