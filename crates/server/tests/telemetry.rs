//! What a running gate tells: read by Prometheus's and OpenTelemetry's own rules, and nothing that it must not tell.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod support;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message as _;
use support::{Mcp, World, be_a_gate, eventually};

#[test]
#[ignore = "the gate of the other tests, in a process of its own"]
fn child_gate() {
    be_a_gate();
}

/// An address that was free a moment ago.
fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn world(table: &str) -> World {
    World::with(None, |text| {
        let text = text.replace(
            "class = \"PERSISTENT",
            "timeout = \"300ms\"\nclass = \"PERSISTENT",
        );
        format!("{text}\n[telemetry]\n{table}\n")
    })
}

fn get(address: SocketAddr, request: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

fn metrics(address: SocketAddr) -> Option<String> {
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let (head, body) = get(address, &request)?;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("application/openmetrics-text; version=1.0.0"));
    Some(body)
}

/// A write that passes, one that is denied, one that nobody answers.
fn three_acts(world: &World) {
    let mut mcp = Mcp::ready(world);
    mcp.call(2, "write", &world.root().join("work/a"), "one");
    assert!(mcp.hear().contains("done"));
    mcp.call(3, "write", "/etc/passwd".as_ref(), "two");
    assert!(mcp.hear().contains("EF-"));
    mcp.call(4, "hang", &world.root().join("work/b"), "three");
    let unknown = mcp.hear();
    assert!(unknown.contains("indeterminate"), "{unknown}");
}

#[test]
fn prometheus_reads_what_happened() {
    let address = free();
    let world = world(&format!("prometheus = \"{address}\""));
    three_acts(&world);
    eventually("the endpoint listens", || metrics(address).is_some());
    let text = metrics(address).unwrap();
    let has = |line: &str| assert!(text.contains(line), "no `{line}` in\n{text}");
    has("# TYPE lychgate_decisions counter\n");
    has(
        "lychgate_decisions_total{verdict=\"allow\",code=\"none\",class=\"PERSISTENT_STATE_CHANGE\"} 2\n",
    );
    has("lychgate_refusals_total{door=\"ped\",");
    has("lychgate_outcomes_total{state=\"effected\",reason=\"answered\"} 1\n");
    has("lychgate_outcomes_total{state=\"indeterminate\",reason=\"timed_out\"} 1\n");
    has("# UNIT lychgate_step_duration_seconds seconds\n");
    for step in ["hold", "decide", "present", "effect", "settle"] {
        let many = if matches!(step, "hold" | "decide") {
            3
        } else {
            2
        };
        has(&format!(
            "lychgate_step_duration_seconds_count{{step=\"{step}\"}} {many}\n"
        ));
    }
    has("lychgate_step_duration_seconds_bucket{le=\"+Inf\",step=\"effect\"} 2\n");
    has("lychgate_acts{state=\"indeterminate\"} 1");
    has("lychgate_indeterminate_oldest_age_seconds ");
    has("lychgate_pending_approvals 0");
    has("lychgate_ledger_head_lag_records 0");
    has("lychgate_store_queue_depth 0");
    has("lychgate_commit_group_size_bucket{le=\"1.0\"} ");
    assert!(text.ends_with("# EOF\n"));
    let age = text
        .lines()
        .find_map(|line| line.strip_prefix("lychgate_indeterminate_oldest_age_seconds "));
    assert!(age.unwrap().parse::<f64>().unwrap() > 0.0);
    let (head, _) = get(
        address,
        "GET /metrics HTTP/1.1\r\nHost: rebound.example\r\n\r\n",
    )
    .unwrap();
    assert!(head.starts_with("HTTP/1.1 421 "), "{head}");
    let (head, _) = get(address, "GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    world.stop();
}

/// A collector of a few lines: what is posted to it, by path.
fn collector() -> (SocketAddr, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, posts) = sync_channel(1024);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            let mut chunk = [0; 4096];
            let (head, length) = loop {
                let read = stream.read(&mut chunk).unwrap();
                bytes.extend_from_slice(&chunk[..read]);
                let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
                    continue;
                };
                let head = String::from_utf8(bytes.drain(..end + 4).collect()).unwrap();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("Content-Length: "));
                break (head.clone(), length.unwrap().parse::<usize>().unwrap());
            };
            while bytes.len() < length {
                let read = stream.read(&mut chunk).unwrap();
                bytes.extend_from_slice(&chunk[..read]);
            }
            assert!(head.contains("Content-Type: application/x-protobuf\r\n"));
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
            let path = head.split(' ').nth(1).unwrap().to_owned();
            if sender.send((path, bytes)).is_err() {
                return;
            }
        }
    });
    (address, posts)
}

fn said(attributes: &[KeyValue]) -> BTreeMap<&str, &str> {
    let text = |one: &'_ KeyValue| match one.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        other => panic!("{other:?}"),
    };
    attributes
        .iter()
        .map(|one| (one.key.as_str(), &*text(one).leak()))
        .collect()
}

#[test]
fn opentelemetrys_own_messages_read_what_is_exported() {
    let (address, posts) = collector();
    let world = world(&format!("otlp = \"http://{address}\"\nevery = \"200ms\""));
    world.status();
    // Until the first export nobody listens for traces.
    posts.recv_timeout(Duration::from_secs(20)).unwrap();
    three_acts(&world);
    world.stop();
    let (mut spans, mut metrics) = (Vec::<Span>::new(), None);
    loop {
        match posts.recv_timeout(Duration::from_secs(2)) {
            Ok((path, body)) if path == "/v1/traces" => {
                let request = ExportTraceServiceRequest::decode(&*body).unwrap();
                let resource = request.resource_spans[0].resource.as_ref().unwrap();
                assert_eq!(said(&resource.attributes)["service.name"], "lychgate");
                spans.extend(request.resource_spans[0].scope_spans[0].spans.clone());
            }
            Ok((path, body)) => {
                assert_eq!(path, "/v1/metrics");
                metrics = Some(ExportMetricsServiceRequest::decode(&*body).unwrap());
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    let acts: Vec<_> = spans
        .iter()
        .filter(|span| span.parent_span_id.is_empty())
        .collect();
    assert_eq!(acts.len(), 3, "{acts:?}");
    for act in &acts {
        assert_eq!((act.trace_id.len(), act.span_id.len()), (16, 8));
        let said = said(&act.attributes);
        assert_eq!(said["gen_ai.operation.name"], "execute_tool");
        assert_eq!(said["mcp.method.name"], "tools/call");
        assert_eq!(
            act.name,
            format!("execute_tool {}", said["gen_ai.tool.name"])
        );
        let below: Vec<_> = spans
            .iter()
            .filter(|one| one.parent_span_id == act.span_id)
            .collect();
        let allowed = said["lychgate.verdict"] == "allow";
        assert_eq!(below.len(), if allowed { 5 } else { 2 }, "{below:?}");
        for one in below {
            assert_eq!(one.trace_id, act.trace_id);
            assert!(act.start_time_unix_nano <= one.start_time_unix_nano);
            assert!(one.start_time_unix_nano <= one.end_time_unix_nano);
            assert!(one.end_time_unix_nano <= act.end_time_unix_nano);
        }
    }
    let states: Vec<_> = acts
        .iter()
        .map(|act| said(&act.attributes)["lychgate.state"])
        .collect();
    assert_eq!(states, ["effected", "refused", "indeterminate"]);
    let status: Vec<_> = acts
        .iter()
        .map(|act| act.status.as_ref().unwrap().code())
        .collect();
    assert_eq!(
        status,
        [StatusCode::Ok, StatusCode::Error, StatusCode::Error]
    );
    let metrics = metrics
        .unwrap()
        .resource_metrics
        .remove(0)
        .scope_metrics
        .remove(0)
        .metrics;
    let of = |name: &str| {
        metrics
            .iter()
            .find(|one| one.name == name)
            .unwrap()
            .data
            .clone()
            .unwrap()
    };
    let Data::Sum(decisions) = of("lychgate.decisions") else {
        panic!()
    };
    assert!(decisions.is_monotonic && decisions.data_points.len() == 2);
    let Data::Histogram(steps) = of("lychgate.step_duration") else {
        panic!()
    };
    for point in &steps.data_points {
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
    }
    assert!(matches!(of("lychgate.acts"), Data::Gauge(_)));
}

#[test]
fn a_collector_that_is_not_there_costs_a_number_and_a_line() {
    let (address, nobody) = (free(), free());
    let world = world(&format!(
        "prometheus = \"{address}\"\notlp = \"http://{nobody}\"\nevery = \"200ms\""
    ));
    three_acts(&world);
    let failures = || {
        let text = metrics(address)?;
        let line = text
            .lines()
            .find(|line| line.starts_with("lychgate_telemetry_failures_total "))?;
        line.rsplit(' ').next()?.parse::<u64>().ok()
    };
    eventually("exports have failed", || {
        failures().is_some_and(|many| many > 1)
    });
    let log = std::fs::read_to_string(world.state.log()).unwrap();
    assert_eq!(
        log.matches("telemetry does not reach its collector")
            .count(),
        1,
        "{log}"
    );
    world.stop();
}

#[test]
fn the_gate_leaves_no_core_file_and_its_memory_is_its_own() {
    let world = World::new();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", world.status().pid)).unwrap();
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"))
        .unwrap();
    let words: Vec<_> = core.split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{core}");
    // The files of a process that may not be dumped belong to root, whoever runs it; and so its memory is closed.
    let own = std::fs::metadata("/proc/self/environ").unwrap();
    let theirs = std::fs::metadata(format!("/proc/{}/environ", world.status().pid)).unwrap();
    let uid = |of: &std::fs::Metadata| std::os::unix::fs::MetadataExt::uid(of);
    assert_eq!(uid(&theirs), 0);
    assert!(uid(&own) == 0 || uid(&own) != uid(&theirs));
    world.stop();
}
