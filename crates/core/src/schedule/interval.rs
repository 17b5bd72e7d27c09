//! Fixed intervals of elapsed time: `anchor + k · period` for every whole `k`, negative ones too.

#[derive(Debug, Clone)]
pub(super) struct Interval {
    period: i128,
    anchor: i128,
}

impl Interval {
    /// `None` when the period is zero.
    pub(super) fn new(period_ms: u64, anchor_ms: i64) -> Option<Self> {
        (period_ms > 0).then(|| Self {
            period: period_ms.into(),
            anchor: anchor_ms.into(),
        })
    }

    pub(super) fn next_from(&self, from: i64) -> Option<i64> {
        let last = self.index_at(i128::from(from) - 1);
        i64::try_from(self.anchor + (last + 1) * self.period).ok()
    }

    pub(super) fn prev_from(&self, from: i64) -> Option<i64> {
        i64::try_from(self.anchor + self.index_at(from.into()) * self.period).ok()
    }

    pub(super) fn count_between(&self, after: i64, through: i64) -> u64 {
        let count = self.index_at(through.into()) - self.index_at(after.into());
        u64::try_from(count.max(0)).unwrap_or(u64::MAX)
    }

    /// The `k` of the last time at or before `t`.
    fn index_at(&self, t: i128) -> i128 {
        (t - self.anchor).div_euclid(self.period)
    }
}
