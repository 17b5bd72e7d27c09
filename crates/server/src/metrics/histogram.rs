//! Counts of durations under a few bounds.

/// A bound a bucket, and one more for what lies above all of them.
#[derive(Clone, Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    pub fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    pub fn observe(&mut self, value: f64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts[place] += 1;
        self.sum += value;
    }

    /// Adds what another one with the same bounds has counted.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum += other.sum;
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Each bound with how many were at or below it.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut below = 0;
        self.bounds
            .iter()
            .zip(&self.counts)
            .map(move |(bound, count)| {
                below += count;
                (*bound, below)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_under_every_bound_that_it_reaches() {
        let mut histogram = Histogram::new(&[0.1, 1.0, 10.0]);
        for value in [0.05, 0.1, 0.5, 99.0] {
            histogram.observe(value);
        }
        let cumulative: Vec<(f64, u64)> = histogram.cumulative().collect();
        assert_eq!(cumulative, [(0.1, 2), (1.0, 3), (10.0, 3)]);
        assert_eq!(histogram.count(), 4);
        assert!((histogram.sum() - 99.65).abs() < 1e-9);
    }
}
