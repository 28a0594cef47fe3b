"""The draft's operator tests (§5.10) over what a real gate recorded, and the page they are shown on."""

from __future__ import annotations

import html.parser
import json
from pathlib import Path

from harness import Lychgate, until

VOID = {"meta", "rect", "line", "br", "th"}


class Page(html.parser.HTMLParser):
    """Every tag is closed in order, and nothing on the page asks for anything or runs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "img", "link", "iframe", "object", "a", "form"}, tag
        for name, value in attributes:
            assert not name.startswith("on") and name not in {"src", "href", "action"}, name
            assert "//" not in (value or ""), value
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


async def test_a_gate_that_was_used_and_killed_holds(used: Lychgate, tmp_path: Path) -> None:
    running = used.json("report")
    used.kill()
    until(lambda: used.status() is None, "the gate's end")
    used.run("acts")
    used.run("gate", "stop")
    page = tmp_path / "page.html"
    said = used.run("report", "--html", str(page)).stdout
    stopped = used.json("report")
    assert used.status() is None, "a report starts no gate"
    for report in running, stopped:
        assert report["whole"] and report["clean"] and report["violations"] == []
        verdicts = [test["verdict"] for test in report["tests"]]
        assert verdicts == ["held", "nothing_to_judge", "held", "not_measured"], report["tests"]
        assert report["counts"]["states"]["effected"] == 3
        assert report["record"]["head"].startswith(report["record"]["log"] + "\n")
    assert running["gate"]["without_stop"]["number"] == 0
    assert stopped["gate"]["without_stop"]["number"] == 1
    assert [gap["stopped"] for gap in stopped["timeline"]["without_gate"]] == [False, True]
    assert "secret" not in said + page.read_text("utf-8") + json.dumps(stopped)
    words = " ".join(Page(page.read_text("utf-8")).words)
    assert "not measured" in words and stopped["record"]["root"] in words


async def test_an_auditor_reports_from_an_export(used: Lychgate, tmp_path: Path) -> None:
    trust, whole, redacted = tmp_path / "trust.json", tmp_path / "whole", tmp_path / "redacted"
    trust.write_text(used.run("keys", "export").stdout)
    used.run("ledger", "export", str(whole))
    used.run("ledger", "export", str(redacted), "--redact")
    used.run("gate", "stop")
    found = used.json("report", "--dir", str(whole), "--trust", str(trust))
    assert found["clean"] and found["tests"][0]["examined"]["invoked"] == 3
    # Of hashes alone nothing is claimed.
    found = used.json("report", "--dir", str(redacted), "--trust", str(trust))
    assert {test["verdict"] for test in found["tests"]} == {"not_measured"}
    [bundle] = [path for path in (whole / "tile" / "entries").rglob("*") if path.is_file()]
    bundle.write_bytes(bundle.read_bytes().replace(b'"kind":"denied"', b'"kind":"outcom"', 1))
    page = tmp_path / "page.html"
    ended = used.run(
        "report", "--dir", str(whole), "--trust", str(trust), "--html", str(page), status=1
    )
    assert ended.stdout == "" and "does not verify" in ended.stderr
    words = " ".join(Page(page.read_text("utf-8")).words)
    assert "does not verify" in words and "held" not in words
