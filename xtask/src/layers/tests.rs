use super::*;

fn layer(name: &str) -> &'static Layer {
    LAYERS.iter().find(|layer| layer.name == name).unwrap()
}

#[test]
fn an_import_against_the_direction_is_a_fault() {
    let mut faults = Vec::new();
    let wrong = [("lychgate-store", DependencyKind::Normal)];
    manifest_faults(layer("lychgate-core"), wrong.into_iter(), &mut faults);
    manifest_faults(layer("lychgate-sinks"), wrong.into_iter(), &mut faults);
    manifest_faults(layer("lychgate-gate"), wrong.into_iter(), &mut faults);
    assert_eq!(faults.len(), 2, "{faults:?}");
    let tested = [("lychgate-store", DependencyKind::Development)];
    manifest_faults(layer("lychgate-sinks"), tested.into_iter(), &mut faults);
    assert_eq!(faults.len(), 2, "its tests may");
}

#[test]
fn io_in_a_pure_crate_is_a_fault_except_for_its_tests() {
    let mut faults = Vec::new();
    let tokio = |kind| [("tokio", kind)].into_iter();
    manifest_faults(
        layer("lychgate-policy"),
        tokio(DependencyKind::Normal),
        &mut faults,
    );
    manifest_faults(
        layer("lychgate-policy"),
        tokio(DependencyKind::Development),
        &mut faults,
    );
    manifest_faults(
        layer("lychgate-gate"),
        tokio(DependencyKind::Normal),
        &mut faults,
    );
    assert_eq!(faults.len(), 1, "{faults:?}");
}

#[test]
fn only_named_files_may_name_a_process_or_a_connection() {
    let process = "use std::process::Command;\n// tokio::process\n#[cfg(test)]\nmod tests { use tokio::process; }\n";
    let connection = "let stream = std::net::TcpStream::connect(place);\n";
    let found = |name: &str, place: &str, text: &str| {
        let mut faults = Vec::new();
        source_faults(layer(name), (place, "a.rs"), text, &mut faults);
        faults
    };
    assert_eq!(
        found("lychgate-gate", "gate.rs", process),
        ["a.rs:1: `process::Command` has no place in this file"]
    );
    for (name, place, may_start, may_connect) in [
        ("lychgate-sinks", "mcp/launch.rs", true, true),
        ("lychgate-sinks", "lib.rs", false, false),
        ("lychgate-server", "client.rs", true, true),
        ("lychgate-server", "link.rs", false, true),
        ("lychgate-server", "log.rs", false, false),
        ("lychgate", "commands/add/mod.rs", false, false),
        ("xtask", "main.rs", false, false),
    ] {
        assert_eq!(
            found(name, place, process).is_empty(),
            may_start,
            "{name} {place}"
        );
        let quiet = found(name, place, connection).is_empty();
        assert_eq!(quiet, may_connect, "{name} {place}");
    }
}

#[test]
fn every_file_that_is_named_is_there() {
    for layer in LAYERS {
        let short = layer.name.strip_prefix("lychgate-").unwrap_or(layer.name);
        let folder = match short {
            "xtask" => "xtask".to_owned(),
            "lychgate" => "crates/cli".to_owned(),
            short => format!("crates/{short}"),
        };
        let source = crate::workspace_root().join(folder).join("src");
        for place in layer.processes.iter().chain(layer.connections) {
            assert!(source.join(place).exists(), "{}: {place}", layer.name);
        }
    }
}

#[test]
fn the_table_points_downwards_only() {
    for (place, layer) in LAYERS.iter().enumerate() {
        for used in layer.may_use {
            let below = LAYERS
                .iter()
                .position(|other| other.name.strip_prefix("lychgate-") == Some(used))
                .unwrap();
            assert!(below < place, "`{}` uses `{used}`", layer.name);
        }
    }
}

/// What a library's macro takes, an argument fits into.
#[test]
fn only_the_log_itself_may_name_a_logging_library() {
    let found = |name: &str, place: &str| {
        let mut faults = Vec::new();
        let text = "tracing::warn!(%fault, \"a line is no message\");\n";
        source_faults(layer(name), (place, "a.rs"), text, &mut faults);
        faults.len()
    };
    assert_eq!(found("lychgate-gate", "log.rs"), 0);
    assert_eq!(found("lychgate-server", "log.rs"), 0);
    for name in [
        "lychgate-gate",
        "lychgate-server",
        "lychgate-sinks",
        "lychgate",
    ] {
        assert_eq!(found(name, "a.rs"), 1, "{name}");
    }
}
