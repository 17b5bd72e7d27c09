//! How far a time is put off: always the same for the same time of the same job.

/// The place of a time in its span, `0..span_ms`.
///
/// Part of the contract: servers of any build must agree, so the arithmetic never changes. Both numbers go through the
/// finalizer of SplitMix64, one after the other, and the result is taken modulo the span.
pub(crate) fn offset(job: u64, nominal: i64, span_ms: u64) -> u64 {
    let hash = mix(mix(job) ^ nominal as u64);
    hash.checked_rem(span_ms).unwrap_or(0)
}

fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_never_change() {
        // The published first outputs of SplitMix64 from the seed 0.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(offset(0, 0, 0), 0);
        assert_eq!(
            offset(1, 1_767_225_600_000, u64::MAX),
            mix(mix(1) ^ 1_767_225_600_000)
        );
    }

    #[test]
    fn offsets_spread_over_jobs_and_times() {
        let span = 1000;
        for part in [0, 1] {
            let mut seen = [0u32; 10];
            for n in 0..10_000u64 {
                let (job, at) = if part == 0 {
                    (n, 60_000)
                } else {
                    (7, n as i64 * 60_000)
                };
                seen[(offset(job, at, span) / 100) as usize] += 1;
            }
            assert!(
                seen.iter().all(|count| (800..1200).contains(count)),
                "{seen:?}"
            );
        }
    }
}
