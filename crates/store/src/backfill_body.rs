//! The body of a backfill's row, the same in every database.

use drumtower_core::model::{BackfillHold, BackfillRow, Obedience};
use serde::{Deserialize, Serialize};

use crate::{Error, codec};

/// What rows have had since their form was fixed. Variants are only ever added, at the end.
#[derive(Serialize, Deserialize)]
enum Later {
    Obeys,
    Forced,
    Held(BackfillHold),
}

pub fn seal(row: &BackfillRow) -> Result<Vec<u8>, Error> {
    let later = [
        (row.overlap == Obedience::Obey).then_some(Later::Obeys),
        row.force.then_some(Later::Forced),
        row.held.map(Later::Held),
    ];
    let later: Vec<Later> = later.into_iter().flatten().collect();
    codec::seal_growing(row, &later)
}

pub fn open(body: &[u8]) -> Result<BackfillRow, Error> {
    let (mut row, later): (BackfillRow, Vec<Later>) = codec::open_growing(body)?;
    for later in later {
        match later {
            Later::Obeys => row.overlap = Obedience::Obey,
            Later::Forced => row.force = true,
            Later::Held(held) => row.held = Some(held),
        }
    }
    Ok(row)
}
