//! The text form of Prometheus, version 0.0.4.

use std::fmt::Write;

use super::histogram::Histogram;
use super::names::{FAMILIES, Family, Kind};

/// Pairs of a label and its value.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// Writes families one after the other; each begins once.
#[derive(Default)]
pub struct Text {
    out: String,
}

impl Text {
    /// Begins a family of the table; the samples that follow belong to it.
    pub fn family(&mut self, name: &'static str) -> Samples<'_> {
        let known = FAMILIES.iter().find(|family| family.name == name);
        let family = known.unwrap_or_else(|| panic!("{name} is not in the table of metrics"));
        let Family {
            name, help, kind, ..
        } = family;
        let _ = writeln!(self.out, "# HELP {name} {help}");
        let _ = writeln!(self.out, "# TYPE {name} {}", kind.as_str());
        Samples {
            out: &mut self.out,
            family,
        }
    }

    /// A family with one sample and no labels.
    pub fn single(&mut self, name: &'static str, value: f64) {
        self.family(name).add(&[], value);
    }

    pub fn take(self) -> String {
        self.out
    }
}

pub struct Samples<'a> {
    out: &'a mut String,
    family: &'static Family,
}

impl Samples<'_> {
    pub fn add(&mut self, labels: Labels<'_>, value: f64) {
        let keys = labels.iter().map(|(key, _)| *key);
        debug_assert!(keys.eq(self.family.labels.iter().copied()));
        self.sample("", labels, None, value);
    }

    pub fn histogram(&mut self, labels: Labels<'_>, histogram: &Histogram) {
        debug_assert_eq!(self.family.kind, Kind::Histogram);
        for (bound, count) in histogram.cumulative() {
            self.sample("_bucket", labels, Some(&bound.to_string()), count as f64);
        }
        self.sample("_bucket", labels, Some("+Inf"), histogram.count() as f64);
        self.sample("_sum", labels, None, histogram.sum());
        self.sample("_count", labels, None, histogram.count() as f64);
    }

    fn sample(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: f64) {
        self.out.push_str(self.family.name);
        self.out.push_str(suffix);
        let pairs = labels
            .iter()
            .copied()
            .chain(bound.map(|bound| ("le", bound)));
        let mut open = '{';
        for (key, value) in pairs {
            let _ = write!(self.out, "{open}{key}=\"");
            escape(value, self.out);
            self.out.push('"');
            open = ',';
        }
        if open == ',' {
            self.out.push('}');
        }
        let _ = writeln!(self.out, " {value}");
    }
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_histograms_end_in_infinity() {
        let mut text = Text::default();
        text.family("drumtower_refused_requests_total")
            .add(&[("code", "a\"b\\c\nd")], 3.0);
        let mut histogram = Histogram::new(&[0.5, 1.0]);
        histogram.observe(0.7);
        text.family("drumtower_commit_seconds")
            .histogram(&[], &histogram);
        let text = text.take();
        assert!(text.contains("code=\"a\\\"b\\\\c\\nd\"} 3\n"), "{text}");
        for line in [
            "drumtower_commit_seconds_bucket{le=\"0.5\"} 0\n",
            "drumtower_commit_seconds_bucket{le=\"1\"} 1\n",
            "drumtower_commit_seconds_bucket{le=\"+Inf\"} 1\n",
            "drumtower_commit_seconds_sum 0.7\n",
            "drumtower_commit_seconds_count 1\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
