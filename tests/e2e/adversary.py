"""An MCP server that does on demand what no server should. Standard library only, one thread.

usage: adversary.py FOLDER

FOLDER/received.jsonl   every line that came in, as a JSON string
FOLDER/effects.jsonl    the arguments of every call that had its effect, durable before the answer
FOLDER/manners.json     what to do, read again for every message:
  deaf          reads nothing while this stands there; FOLDER/deaf says that it has begun
  description   of its tools, in place of the usual one
  ask           [[method, params], ...] asked of the client before a call is answered
  tell          [[method, params], ...] told before a call is answered
  line          that many bytes on one line before the answer
  result        given as it stands, in place of the result
"""

import json
import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path


class Server:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = 0

    def manners(self) -> dict:
        try:
            return json.loads((self.folder / "manners.json").read_text("utf-8"))
        except FileNotFoundError:
            return {}

    def serve(self) -> None:
        for line in self.lines():
            self.append("received.jsonl", line.decode("utf-8", "surrogateescape"))
            message = json.loads(line)
            if "method" in message and "id" in message:
                self.request(message)

    def lines(self) -> Iterator[bytes]:
        buffer = b""
        while True:
            if self.manners().get("deaf"):
                (self.folder / "deaf").touch()
                time.sleep(0.02)
            elif b"\n" in buffer:
                line, buffer = buffer.split(b"\n", 1)
                yield line
            elif select.select([sys.stdin], [], [], 0.02)[0]:
                if not (chunk := os.read(sys.stdin.fileno(), 65536)):
                    return
                buffer += chunk

    def request(self, message: dict) -> None:
        method, params = message["method"], message.get("params") or {}
        if method == "initialize":
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "adversary", "version": "1"},
            }
        elif method == "tools/list":
            result = {"tools": self.tools()}
        elif method == "tools/call":
            if (result := self.call(params)) is None:
                return None
        else:
            missing = {"code": -32601, "message": "Method not found"}
            return self.send({"jsonrpc": "2.0", "id": message["id"], "error": missing})
        self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def tools(self) -> list[dict]:
        about = self.manners().get("description", "Keeps a text.")
        tools = []
        for name, keys in (("read_text", ["text"]), ("write_text", ["path", "text"])):
            properties = {key: {"type": "string"} for key in keys}
            schema = {"type": "object", "properties": properties, "additionalProperties": False}
            tools.append({"name": name, "description": about, "inputSchema": schema})
        return tools

    def call(self, params: dict) -> dict:
        manners = self.manners()
        arguments = params.get("arguments") or {}
        if params["name"] == "write_text":
            self.append("effects.jsonl", arguments)
        for method, more in manners.get("tell", []):
            self.send({"jsonrpc": "2.0", "method": method, "params": more})
        for method, more in manners.get("ask", []):
            self.send({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": more})
            self.asked += 1
        if size := manners.get("line"):
            self.send("x" * size)
        said = {"content": [{"type": "text", "text": arguments.get("text", "")}]}
        return manners.get("result", said)

    def append(self, name: str, value: object) -> None:
        with open(self.folder / name, "a", encoding="utf-8") as file:
            file.write(json.dumps(value) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def send(self, message: object) -> None:
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        sys.stdout.buffer.write(line.encode("utf-8", "surrogatepass") + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    Server(Path(sys.argv[1])).serve()
