#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;

fn ticket(arguments: &str, change: impl FnOnce(&mut serde_json::Value)) -> Ticket {
    let mut display = serde_json::json!({
        "tool_id": "files", "function_id": "write_file", "endpoint": "stdio:node#abc",
        "arguments": arguments, "arguments_digest": Digest::sha256(arguments.as_bytes()).to_base64url(),
        "agent_id": "local-agent", "principal_id": "user:alice", "purpose": "What the user asks",
        "consequence_class": "PERSISTENT_STATE_CHANGE", "provenance": "UNKNOWN", "vouched": false,
        "destination": {"destination_id": "file:/srv/x"}, "targets": ["/srv/x"], "recipients": [],
        "code": "EF-070", "why": "a write outside a recoverable root",
    });
    change(&mut display);
    let display = json::parse(display.to_string().as_bytes(), &Limits::CANON).unwrap();
    Ticket {
        id: "tkt-0190a5d6-8f2b-7c3e-9d41-5b6a7c8d9e0f".parse().unwrap(),
        subject: Digest::sha256(b"subject"),
        created_at: Timestamp::from_millis(1_787_766_000_000),
        expires_at: Timestamp::from_millis(1_787_766_900_000),
        waiting: true,
        asked: Vec::new(),
        display: String::from_utf8(jcs::to_bytes(&display)).unwrap(),
    }
}

fn shown(arguments: &str) -> String {
    let mut terminal = Terminal::captured(80);
    let checked = Checked::new(ticket(arguments, |_| {})).unwrap_or_else(|stop| panic!("{stop:?}"));
    checked.show(Timestamp::from_millis(1_787_766_060_000), &mut terminal);
    terminal.taken().0
}

#[test]
fn everything_that_would_run_is_shown_with_its_pointer() {
    let text = shown(r#"{"a":{"b/c":[1,true,null,{}]},"path":"/srv/x"}"#);
    for line in [
        "files/write_file   PERSISTENT_STATE_CHANGE",
        "asked 60 s ago · 840 s left",
        "/a/b~1c/0  1\n",
        "/a/b~1c/1  true\n",
        "/a/b~1c/2  null\n",
        "/a/b~1c/3  {}\n",
        "/path      \"/srv/x\"\n",
        "a write outside a recoverable root (EF-070)",
        "tkt-0190a5d6-8f2b-7c3e-9d41-5b6a7c8d9e0f",
    ] {
        let minutes = line.replace("840 s left", "14 min left");
        assert!(text.contains(&minutes), "{line}\n{text}");
    }
}

#[test]
fn hostile_arguments_cannot_steer_hide_or_imitate() {
    // Carriage return and ANSI, bidi, tag and variation characters, padding, a forged row.
    let padding = " ".repeat(5000);
    let value = serde_json::json!({
        "path": "rm -rf /\rls", "ansi": "\u{1b}[2K\u{1b}[1Aok", "bidi": "\u{202e}txt.exe",
        "tag": "a\u{e0041}\u{fe0f}\u{200b}", "pad": format!("harmless{padding}; rm -rf /"),
        "forged": "x\n    /path  \"/safe\"", "backslash": "\\u{1b}",
    });
    let canonical =
        jcs::to_bytes(&json::parse(value.to_string().as_bytes(), &Limits::CANON).unwrap());
    let text = shown(&String::from_utf8(canonical).unwrap());
    for escaped in [
        "rm -rf /\\rls",
        "\\u{1b}[2K\\u{1b}[1Aok",
        "\\u{202e}txt.exe",
        "a\\u{e0041}\\u{fe0f}\\u{200b}",
        "harmless\\u{20}×5000; rm -rf /",
        "x\\n    /path  \\\"/safe\\\"",
        "\\\\u{1b}",
    ] {
        let escaped = escaped.replace("\\\"", "\"");
        assert!(text.contains(&escaped), "{escaped}\n{text}");
    }
    assert!(!text.contains([
        '\r',
        '\u{1b}',
        '\u{202e}',
        '\u{200b}',
        '\u{fe0f}',
        '\u{e0041}'
    ]));
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "no line wraps by itself"
    );
}

#[test]
fn a_long_value_is_whole_and_goes_on_under_a_bar() {
    let long = "#".repeat(500);
    let text = shown(&format!(r#"{{"content":"{long}"}}"#));
    assert_eq!(
        text.matches('#').count() - text.matches("#abc").count(),
        500
    );
    assert!(
        text.lines()
            .filter(|line| line.trim_start().starts_with('┊'))
            .count()
            >= 6
    );
}

#[test]
fn letters_outside_ascii_are_pointed_out_in_names_not_in_prose() {
    assert!(shown(r#"{"to":"pаypal.com"}"#).contains("look closely"));
    assert!(!shown(r#"{"text":"Grüße an alle"}"#).contains("look closely"));
}

#[test]
fn a_ticket_whose_text_and_digest_differ_is_refused() {
    let substituted =
        |display: &mut serde_json::Value| display["arguments"] = r#"{"path":"/etc"}"#.into();
    let spaced = |display: &mut serde_json::Value| {
        display["arguments"] = r#"{ "path":"/srv" }"#.into();
        display["arguments_digest"] = Digest::sha256(br#"{ "path":"/srv" }"#)
            .to_base64url()
            .into();
    };
    assert!(Checked::new(ticket(r#"{"path":"/srv"}"#, substituted)).is_err());
    assert!(Checked::new(ticket(r#"{"path":"/srv"}"#, spaced)).is_err());
}
