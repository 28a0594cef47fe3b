"""The counts of a run as a piece of Markdown, and its place in docs/RELIABILITY.md."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from . import errors, kills, powercut
from .disk import MODES

PAGE = Path(__file__).parents[2] / "docs/RELIABILITY.md"
BEGIN = "<!-- begin: written by `cargo xtask faults --full --table` -->"
END = "<!-- end -->"
PARTS = ["dispatch commit", "effect", "outcome commit", "answer", "delivery", "anchor"]


def text(
    reports: dict[str, list], failures: list[str], version: str, seed: int, took: float, full: bool
) -> str:
    day = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    command = f"cargo xtask faults{' --full' if full else ''} --seed {seed}"
    lines = [f"{day}, `{command}`, {took / 60:.0f} min, strace {version}. **Violations: {len(failures)}.**"]
    lines += control_lines(reports["controls"])
    lines += kill_lines(reports["kills"])
    lines += error_lines(reports["errors"])
    lines += power_lines(reports["power"])
    return "\n".join(lines) + "\n"


def control_lines(found: list[list[str]]) -> list[str]:
    if not found:
        return []
    lines = ["", "Controls, which must be found, and were:", ""]
    return lines + [f"- {said.partition(':')[0]}" for said in found[0]]


def kill_lines(reports: list[kills.Report]) -> list[str]:
    if not reports:
        return []
    points: dict[kills.Point, Counter] = {}
    for report in reports:
        for point, sides in report.points.items():
            points[point] = points.get(point, Counter()) + sides
    lines = ["", "### Killed", "", "| part of a dispatch | call | on | before | after |", "|---|---|---|--:|--:|"]
    for point in sorted(points, key=lambda point: (PARTS.index(point.part), point.call, point.target)):
        sides = points[point]
        lines.append(f"| {point.part} | `{point.call}` | `{shown(point.target)}` | {sides['before']} | {sides['after']} |")
    before = sum(sides["before"] for sides in points.values())
    after = sum(sides["after"] for sides in points.values())
    lines.append(f"| all | | | {before} | {after} |")
    found, later = total(r.found for r in reports), total(r.after for r in reports)
    lines += [
        "",
        f"The act as the dead gate left it: {counts(found)}. After the next start and the client's next call: "
        f"{counts(later)}. {missing(reports)}",
    ]
    return lines


def error_lines(reports: list[errors.Report]) -> list[str]:
    if not reports:
        return []
    gate: dict[tuple[str, str, str], Counter] = {}
    for report in reports:
        for key, found in report.gate.items():
            gate[key] = gate.get(key, Counter()) + found
    lines = ["", "### Failing storage", ""]
    lines += ["| while | call | fault | runs | went on | ended itself | did not start |", "|---|---|---|--:|--:|--:|--:|"]
    for (phase, call, fault), found in sorted(gate.items()):
        numbers = " | ".join(str(found[what]) for what in ("went on", "ended itself", "did not start"))
        lines.append(f"| {phase} | `{call}` | {fault} | {found.total()} | {numbers} |")
    lines.append(f"| all | | | {total(gate.values()).total()} | | | |")
    lines += ["", f"What clients were told of their calls: {counts(total(r.told for r in reports))}. {missing(reports)}"]
    return lines


def power_lines(reports: list[powercut.Report]) -> list[str]:
    if not reports:
        return []
    images = total(report.images for report in reports)
    wheres = sorted({where for where, _ in images})
    lines = ["", "### Power cuts", "", "| unsynced writes | " + " | ".join(wheres) + " |"]
    lines.append("|---|" + "--:|" * len(wheres))
    for mode in MODES:
        lines.append(f"| {mode} | " + " | ".join(str(images[where, mode]) for where in wheres) + " |")
    lines.append("| all | " + " | ".join(str(sum(images[w, m] for m in MODES)) for w in wheres) + " |")
    lost = sum(total(report.lost for report in reports).values())
    lines += [
        "",
        f"{len(reports)} recorded runs with {sum(r.acts for r in reports)} acts, {sum(r.events for r in reports)} "
        f"events, {sum(r.syncs for r in reports)} syncs and {sum(r.pages for r in reports)} pages written back by "
        f"checkpoints; {images.total()} images, of which {lost} ended before the "
        f"run did. Calls repeated whose answer was lost: {counts(total(r.repeated for r in reports))}; "
        "sent again: 0.",
    ]
    return lines


def missing(reports: list) -> str:
    planned, missed = sum(report.planned for report in reports), sum(report.missed for report in reports)
    return f"Planned by the recorded run: {planned}; not met again, threads being free to go another way: {missed}."


def shown(target: str) -> str:
    return target.removeprefix(".local/share/lychgate/")


def total(counters) -> Counter:
    return sum(counters, Counter())


def counts(found: Counter) -> str:
    return ", ".join(f"{word} {n}" for word, n in sorted(found.items(), key=str)) or "none"


def write(text: str) -> None:
    """Puts it between the markers."""
    page = PAGE.read_text("utf-8")
    before, mark, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise SystemExit(f"{PAGE} has no markers")
    PAGE.write_text(f"{before}{BEGIN}\n{text}{END}{after}", "utf-8")
