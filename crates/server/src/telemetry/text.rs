//! The measures as OpenMetrics text, which Prometheus reads.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::measures::{Distribution, Family, Labels, Samples};

/// The content type of the text.
pub(super) const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The whole text.
///
/// # Errors
/// None in practice: a text takes whatever is written to it.
pub(super) fn render(families: Vec<Family>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Now(Arc::new(families))));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

struct Now(Arc<Vec<Family>>);

impl fmt::Debug for Now {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Now").finish_non_exhaustive()
    }
}

impl Collector for Now {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in self.0.iter() {
            let unit = family.seconds.then_some(Unit::Seconds);
            let kind = match family.samples {
                Samples::Counter(_) => MetricType::Counter,
                Samples::Gauge(_) => MetricType::Gauge,
                Samples::Histogram(_) => MetricType::Histogram,
            };
            let encoder =
                encoder.encode_descriptor(family.name, family.help, unit.as_ref(), kind)?;
            samples(encoder, &family.samples)?;
        }
        Ok(())
    }
}

fn samples(mut encoder: MetricEncoder<'_>, samples: &Samples) -> fmt::Result {
    match samples {
        Samples::Counter(all) => all.iter().try_for_each(|(labels, value)| {
            one(&mut encoder, labels, |encoder| {
                encoder.encode_counter::<NoLabelSet, _, u64>(value, None)
            })
        }),
        Samples::Gauge(all) => all.iter().try_for_each(|(labels, value)| {
            one(&mut encoder, labels, |encoder| encoder.encode_gauge(value))
        }),
        Samples::Histogram(all) => all.iter().try_for_each(|(labels, value)| {
            let Distribution {
                sum,
                count,
                buckets,
            } = value;
            one(&mut encoder, labels, |encoder| {
                encoder.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
            })
        }),
    }
}

fn one(
    encoder: &mut MetricEncoder<'_>,
    labels: &Labels,
    encode: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    if labels.is_empty() {
        return encode(encoder);
    }
    encode(&mut encoder.encode_family(&labels.as_slice())?)
}
