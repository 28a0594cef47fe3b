"""A destination that can be looked at: it keeps entries, durably, and tells which it has. Standard library only.

usage: bank.py FOLDER, a folder as `adversary.py` has it; further manners, of `put_entry` and `pay`:
  gone    ends the process: "before" or "after" the effect
  late    that many seconds pass between the effect and its answer
  later   that many seconds pass before the effect
  silent  never answers
  error   answers with that text as an error; nothing is done
and of `find_entry`:
  lie     says that it has nothing
  mute    never answers
  broken  says that it is broken
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from adversary import Server

TOOLS = {
    "put_entry": ["path", "ref"],
    "pay": ["to", "ref"],
    "find_entry": ["ref"],
}


class Bank(Server):
    def tools(self) -> list[dict]:
        tools = []
        for name, keys in TOOLS.items():
            properties = {key: {"type": "string"} for key in keys}
            schema = {
                "type": "object",
                "properties": properties,
                "required": keys,
                "additionalProperties": False,
            }
            tools.append({"name": name, "description": "Entries.", "inputSchema": schema})
        status = {"type": "object", "properties": {"status": {"type": "string"}}}
        tools[-1]["outputSchema"] = status
        return tools

    def call(self, params: dict) -> dict | None:
        manners, arguments = self.manners(), params["arguments"]
        if params["name"] == "find_entry":
            return self.find(manners, arguments["ref"])
        if text := manners.get("error"):
            return {"content": [{"type": "text", "text": text}], "isError": True}
        if manners.get("gone") == "before":
            os._exit(0)
        time.sleep(manners.get("later", 0))
        key = (params.get("_meta") or {}).get("dev.lychgate/idempotency-key")
        self.append("effects.jsonl", {**arguments, "key": key})
        if manners.get("gone") == "after":
            os._exit(0)
        time.sleep(manners.get("late", 0))
        if manners.get("silent"):
            return None
        return {"content": [{"type": "text", "text": "done"}]}

    def find(self, manners: dict, ref: str) -> dict | None:
        if manners.get("mute"):
            return None
        if manners.get("broken"):
            return {"content": [{"type": "text", "text": "out of order"}], "isError": True}
        try:
            lines = (self.folder / "effects.jsonl").read_text("utf-8").splitlines()
        except FileNotFoundError:
            lines = []
        there = any(json.loads(line)["ref"] == ref for line in lines)
        status = "booked" if there and not manners.get("lie") else "unknown"
        return {"content": [{"type": "text", "text": status}], "structuredContent": {"status": status}}


if __name__ == "__main__":
    Bank(Path(sys.argv[1])).serve()
