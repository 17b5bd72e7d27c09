//! Which worker gets a run: pure functions over a snapshot of those that have room.
//!
//! Both policies look at a constant number of workers, so a fleet of ten thousand costs what a fleet of ten does.

use crate::model::Placement;

/// Workers that could take the run, by index.
pub trait Candidates {
    fn len(&self) -> usize;
    /// How loaded a worker is, in thousandths; only compared.
    fn load(&self, index: usize) -> u32;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Picks one of the candidates. `turn` counts the picks made so far and is the only source of variety.
pub fn pick(policy: Placement, candidates: &impl Candidates, turn: u64) -> Option<usize> {
    let count = candidates.len() as u64;
    if count == 0 {
        return None;
    }
    let chosen = match policy {
        Placement::RoundRobin => turn % count,
        Placement::LeastLoaded => {
            let one = scatter(turn.wrapping_mul(2)) % count;
            let other = scatter(turn.wrapping_mul(2).wrapping_add(1)) % count;
            if candidates.load(other as usize) < candidates.load(one as usize) {
                other
            } else {
                one
            }
        }
    };
    Some(chosen as usize)
}

/// Spreads consecutive numbers over all 64 bits.
fn scatter(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Loads(Vec<u32>);

    impl Candidates for Loads {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn load(&self, index: usize) -> u32 {
            self.0[index]
        }
    }

    fn shares(policy: Placement, loads: Vec<u32>) -> Vec<usize> {
        let mut shares = vec![0; loads.len()];
        let fleet = Loads(loads);
        for turn in 0..10_000 {
            shares[pick(policy, &fleet, turn).expect("not empty")] += 1;
        }
        shares
    }

    #[test]
    fn nobody_to_pick_from() {
        assert_eq!(pick(Placement::RoundRobin, &Loads(vec![]), 7), None);
        assert_eq!(pick(Placement::LeastLoaded, &Loads(vec![]), 7), None);
    }

    #[test]
    fn round_robin_is_even() {
        assert_eq!(shares(Placement::RoundRobin, vec![9, 5, 0, 1]), [2500; 4]);
    }

    #[test]
    fn least_loaded_prefers_the_idle_and_starves_nobody_but_the_worst() {
        let shares = shares(Placement::LeastLoaded, vec![1000, 500, 0]);
        assert!(shares[2] > shares[1] && shares[1] > shares[0], "{shares:?}");
        assert!(shares[0] > 0, "{shares:?}");
    }
}
