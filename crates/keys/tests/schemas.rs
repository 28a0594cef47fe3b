//! The published samples of the approver's objects and the trust bundle are read by the types, and nothing near them
//! is. That the samples pass their schemas is checked in `crates/core/tests/schemas`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lychgate_core::json::{self, Limits, Value};
use lychgate_keys::TrustBundle;
use lychgate_keys::verdict::{
    AnchorVerdict, ApprovalVerdict, ApproverChange, ConfigurationChange, ConsentGrant, KeyChange,
    PruneVerdict, ReconciliationVerdict, RestorationVerdict,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../../schemas/samples/", $name, ".json"))
    };
}

#[test]
fn every_sample_is_read_and_nothing_near_it() {
    holds(sample!("approval-verdict"), read::<ApprovalVerdict>);
    holds(sample!("configuration-change"), read::<ConfigurationChange>);
    holds(
        sample!("reconciliation-verdict"),
        read::<ReconciliationVerdict>,
    );
    holds(sample!("key-change"), read::<KeyChange>);
    holds(sample!("anchor-verdict"), read::<AnchorVerdict>);
    holds(sample!("prune-verdict"), read::<PruneVerdict>);
    holds(sample!("approver-change"), read::<ApproverChange>);
    holds(sample!("consent-grant"), read::<ConsentGrant>);
    holds(sample!("restoration-verdict"), read::<RestorationVerdict>);
    holds(sample!("trust-bundle"), |value| {
        let bytes = lychgate_core::jcs::to_bytes(value);
        let bundle = TrustBundle::from_bytes(&bytes).ok()?;
        assert_eq!(bundle.to_bytes().unwrap(), bytes, "not written back");
        Some(())
    });
}

fn read<T: Serialize + DeserializeOwned>(value: &Value) -> Option<()> {
    let object: T = json::from_value(value).ok()?;
    assert_eq!(json::to_value(&object).unwrap(), *value, "not written back");
    Some(())
}

fn holds(sample: &str, read: fn(&Value) -> Option<()>) {
    let sample = json::parse(sample.as_bytes(), &Limits::OBJECT).unwrap();
    read(&sample).expect("the sample is read");
    for pointer in places(&sample) {
        for put in ["null", "1", "\"\"", "{}", "[[]]"] {
            let mut changed = sample.clone();
            *at(&mut changed, &pointer) = json::parse(put.as_bytes(), &Limits::OBJECT).unwrap();
            assert!(read(&changed).is_none(), "{pointer} = {put}");
        }
        let mut more = sample.clone();
        if let Some(object) = at(&mut more, &pointer).as_object_mut() {
            object.insert("x".to_owned(), Value::from(true));
            assert!(read(&more).is_none(), "{pointer}/x");
        }
        let Some((parent, key)) = pointer.rsplit_once('/') else {
            continue;
        };
        let mut less = sample.clone();
        if let Some(object) = at(&mut less, parent).as_object_mut() {
            object.remove(key);
            let optional = ["from", "retired_at"].contains(&key);
            assert_eq!(read(&less).is_some(), optional, "no {pointer}");
        }
    }
}

fn places(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let items = value.as_array().into_iter().flatten().enumerate();
    let mut below: Vec<_> = items.map(|(at, item)| (at.to_string(), item)).collect();
    let members = value
        .as_object()
        .into_iter()
        .flat_map(|object| object.iter());
    below.extend(members.map(|(key, member)| (key.to_owned(), member)));
    for (token, value) in below {
        let deeper = places(value).into_iter();
        found.extend(deeper.map(|pointer| format!("/{token}{pointer}")));
    }
    found
}

fn at<'v>(value: &'v mut Value, pointer: &str) -> &'v mut Value {
    pointer
        .split('/')
        .skip(1)
        .fold(value, |place, token| match place {
            Value::Array(items) => &mut items[token.parse::<usize>().unwrap()],
            Value::Object(object) => object.get_mut(token).unwrap(),
            _ => panic!("no such place"),
        })
}
