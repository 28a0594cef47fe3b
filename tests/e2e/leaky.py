"""An MCP server that repeats what it is told wherever it can. Standard library only.

usage: leaky.py FILE

FILE gets the arguments of every call, so that a test can tell that they came through. What else a call does is in its
`mode`: `error` an error result with the arguments as its text, `rpc` a JSON-RPC error with them as its message,
`garbage` lines that are no messages with them inside, then an answer, `hang` no answer, `die` ends without one.
Everything is on its standard error as well.
"""

import json
import sys

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "mode": {"enum": ["say", "error", "rpc", "garbage", "hang", "die"]},
        "data": {},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def send(message: object) -> None:
    print(json.dumps(message), flush=True)


def answer(id: object, arguments: dict) -> None:
    told = json.dumps(arguments, ensure_ascii=False)
    with open(sys.argv[1], "a", encoding="utf-8") as file:
        file.write(told + "\n")
    print(told, file=sys.stderr, flush=True)
    mode = arguments.get("mode", "say")
    if mode == "rpc":
        return send({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": told}})
    if mode == "garbage":
        print(told, flush=True)
        print(f'{{"jsonrpc":"2.0",{json.dumps(told)}:1,{json.dumps(told)}:2}}', flush=True)
        print(f'{{"jsonrpc":"2.0","method":{json.dumps(told)}}}', flush=True)
        print(f'{{"jsonrpc":"2.0","id":{json.dumps(told)},"method":"roots/{arguments["path"]}"}}', flush=True)
    if mode == "die":
        sys.exit(1)
    if mode != "hang":
        content = [{"type": "text", "text": told}]
        send({"jsonrpc": "2.0", "id": id, "result": {"content": content, "isError": mode == "error"}})


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "leaky", "version": "1"},
        }
        send({"jsonrpc": "2.0", "id": message["id"], "result": result})
    elif method == "tools/list":
        tools = [{"name": name, "description": "Keeps it.", "inputSchema": SCHEMA} for name in ("put", "odd")]
        send({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}})
    elif method == "tools/call":
        answer(message["id"], message["params"].get("arguments") or {})
