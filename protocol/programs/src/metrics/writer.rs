//! Writes one metric with its samples.

use prometheus_client::{
    encoding::{
        DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, EncodeMetric,
    },
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge, histogram::Histogram},
};
use std::{fmt, time::Duration};

/// The labels of a sample.
pub type Labels = Vec<(&'static str, String)>;

/// Writes metrics, one after the other. Names come without the prefix, and counters' without `_total`.
#[derive(Debug)]
pub struct MetricWriter<'a>(DescriptorEncoder<'a>);

impl<'a> MetricWriter<'a> {
    /// Writes to this encoder.
    #[must_use]
    pub fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// A gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)
    }

    /// A gauge with a sample for each of these labels.
    pub fn gauges<V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in samples {
            ConstGauge::new(value).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// A counter without labels.
    pub fn counter(
        &mut self,
        name: &str,
        help: &str,
        value: impl EncodeCounterValue,
    ) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

    /// A counter with a sample for each of these labels.
    pub fn counters<V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in samples {
            ConstCounter::new(value).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// A histogram without labels.
    pub fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        histogram.encode(encoder)
    }

    /// A histogram with samples for each of these labels.
    pub fn histograms<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, Histogram)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, histogram) in samples {
            histogram.encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// One label.
pub fn label(name: &'static str, value: impl Into<String>) -> Labels {
    vec![(name, value.into())]
}

/// Whole millionths, of a second or of a dollar, as a number of ones.
pub const fn millionths(micros: u64) -> f64 {
    // Without a conversion that loses digits in silence.
    Duration::from_micros(micros).as_secs_f64()
}
