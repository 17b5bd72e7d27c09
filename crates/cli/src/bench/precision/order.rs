//! How well starts kept to their priorities.

use serde_json::{Value, json};

use super::super::figures::rounded;

pub const PRIORITIES: usize = 10;

/// Starts with their priorities, earliest first.
pub struct Order {
    starts: Vec<(u64, usize)>,
}

impl Order {
    /// From pairs of a start in microseconds and a priority below [`PRIORITIES`].
    pub fn new(mut starts: Vec<(u64, usize)>) -> Self {
        starts.sort_unstable();
        Self { starts }
    }

    /// The share of pairs of different priority whose less urgent one started first. Half would be no order at all.
    pub fn inversions(&self) -> f64 {
        let mut before = [0_u64; PRIORITIES];
        let mut inverted = 0_u64;
        for together in self.starts.chunk_by(|one, next| one.0 == next.0) {
            for (_, priority) in together {
                inverted += before.iter().take(*priority).sum::<u64>();
            }
            for (_, priority) in together {
                if let Some(count) = before.get_mut(*priority) {
                    *count += 1;
                }
            }
        }
        let all: u64 = before.iter().sum();
        let squares: u64 = before.iter().map(|count| count * count).sum();
        let pairs = (all * all - squares) / 2;
        inverted as f64 / pairs.max(1) as f64
    }

    /// First and last start of each priority, most urgent first, in milliseconds after `due_us`.
    pub fn by_priority(&self, due_us: u64) -> Vec<Value> {
        let ms = |us: u64| rounded(us.saturating_sub(due_us) as f64 / 1000.0);
        let urgent_first = (0..PRIORITIES).rev();
        urgent_first
            .filter_map(|priority| {
                let mut starts = self
                    .starts
                    .iter()
                    .filter(|(_, other)| *other == priority)
                    .map(|(us, _)| *us);
                let first = starts.next()?;
                let (count, last) =
                    starts.fold((1_u64, first), |(count, _), start| (count + 1, start));
                Some(json!({
                    "priority": priority,
                    "started": count,
                    "first_ms": ms(first),
                    "last_ms": ms(last),
                }))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inversions(priorities: &[usize]) -> f64 {
        let starts = priorities.iter().enumerate();
        Order::new(
            starts
                .map(|(us, priority)| (us as u64, *priority))
                .collect(),
        )
        .inversions()
    }

    #[test]
    fn order_is_judged_between_priorities_only() {
        assert_eq!(inversions(&[9, 9, 5, 5, 0]), 0.0);
        assert_eq!(inversions(&[0, 5, 9]), 1.0);
        assert_eq!(inversions(&[9, 0, 5]), 1.0 / 3.0);
        assert_eq!(inversions(&[4, 4]), 0.0);
    }

    #[test]
    fn what_starts_at_once_is_in_order() {
        assert_eq!(Order::new(vec![(7, 0), (7, 9)]).inversions(), 0.0);
    }

    #[test]
    fn each_priority_has_a_first_and_a_last_start() {
        let order = Order::new(vec![(12_000, 9), (15_000, 3), (13_000, 9)]);
        let rows = order.by_priority(10_000);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0]["priority"], 9);
        assert_eq!(
            (&rows[0]["first_ms"], &rows[0]["last_ms"]),
            (&json!(2.0), &json!(3.0))
        );
        assert_eq!(rows[1]["started"], 1);
    }
}
