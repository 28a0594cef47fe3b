"""Stands before a real MCP server and writes down every line that reaches it.

usage: tee_server.py LOG COMMAND [ARG...]

The log is the server's side of the story: one JSON string a line, each the exact text that came in
on standard input, in order. It says what arrived, whatever the gate says it sent.
"""

import json
import os
import signal
import subprocess
import sys
import threading


def main() -> int:
    log_path, *server = sys.argv[1:]
    child = subprocess.Popen(server, stdin=subprocess.PIPE)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    threading.Thread(target=relay, args=(log_path, child), daemon=True).start()
    code = child.wait()
    # The relay may still sit in a read of standard input: leave without waiting for it.
    os._exit(code if code >= 0 else 128 - code)


def relay(log_path: str, child: subprocess.Popen) -> None:
    with open(log_path, "a", encoding="utf-8", buffering=1) as log:
        for line in sys.stdin.buffer:
            log.write(json.dumps(line.decode("utf-8", "surrogateescape")) + "\n")
            try:
                child.stdin.write(line)
                child.stdin.flush()
            except BrokenPipeError:
                return
    child.stdin.close()


if __name__ == "__main__":
    main()
