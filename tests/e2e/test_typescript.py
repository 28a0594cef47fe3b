"""The TypeScript SDK's two generations as clients; the second one starts its server twice."""

from __future__ import annotations

import json
import subprocess

import peers
import pytest
from harness import BINARY, Lychgate


@pytest.mark.parametrize("generation", ["v1", "v2", "v2-auto"])
@pytest.mark.parametrize("server", ["all", "time"])
def test_a_typescript_client_is_served(
    gate: Lychgate, server_log: peers.ServerLog, generation: str, server: str
) -> None:
    command, tool, arguments, expected = {
        "all": (peers.everything(), "echo", {"message": "hello"}, "Echo: hello"),
        "time": (peers.time(), "get_current_time", {"timezone": "UTC"}, '"timezone": "UTC"'),
    }[server]
    gate.add(server, server_log.wrap(command), **{tool: "INFORMATIONAL"})
    script = str(peers.HERE / "ts_client.mjs")
    client = [peers.NODE, script, generation, str(peers.MODULES), tool, json.dumps(arguments)]
    done = subprocess.run(
        [*client, BINARY, "mcp", server],
        env=gate.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert tool in answer["tools"]
    assert expected in answer["result"]["content"][0]["text"]
    assert [call["arguments"] for call in server_log.calls()] == [arguments]
