//! Looks around in a shared store: who is there, and what this server has to take and to give up.

use std::time::Duration;

use drumtower_core::engine::Transfer;
use drumtower_core::model::{DrainRow, Member, Now, SegmentId, SessionId, SettingRow};
use drumtower_core::shares::Sight;
use drumtower_store::{Error, Read};

use super::skew::Reading;

/// Between two looks.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What was seen.
#[derive(Debug)]
pub struct Look {
    pub plan: Transfer,
    /// How far our clock is from the database's.
    pub reading: Reading,
    /// How often tokens, settings and drains have changed.
    pub definitions: u64,
    /// Two servers that are there and say that they are reached at one address.
    pub clash: Option<Box<(Member, Member)>>,
    /// Every drain, when that has moved and another server writes them.
    pub drains: Option<Vec<DrainRow>>,
    /// Every setting, likewise.
    pub settings: Option<Vec<SettingRow>>,
}

impl Look {
    /// Reads who is there, and what follows from it for `me`, who knows of that many changes of definitions.
    ///
    /// Fails with [`Error::Newer`] once this program may not write to the store any more.
    pub fn around(
        reader: &dyn Read,
        me: SessionId,
        known: Option<u64>,
        clock: &dyn Fn() -> Now,
    ) -> Result<Self, Error> {
        reader.check_version()?;
        // Before what it counts, so that nothing is missed.
        let definitions = reader.definitions()?;
        let (sight, reading) = see(reader, clock)?;
        let home = sight.segments.iter().find(|row| row.id == SegmentId::HOME);
        let is_ours = home.is_some_and(|row| row.owner == me);
        let (drains, settings) = match known == Some(definitions) || is_ours {
            true => (None, None),
            false => (Some(reader.drains()?), Some(reader.settings()?)),
        };
        let clash = sight.at_one_address(me);
        Ok(Self {
            clash: clash.map(|(one, other)| Box::new((one.clone(), other.clone()))),
            plan: sight.plan(me),
            reading,
            definitions,
            drains,
            settings,
        })
    }
}

/// Reads who is there and who has what, and how far our clock is from the database's.
pub fn see(reader: &dyn Read, clock: &dyn Fn() -> Now) -> Result<(Sight, Reading), Error> {
    // Segments before sessions: whoever takes one meanwhile is not seen as its owner, and the commit that would take it from
    // there is refused. The other way round the owner might be seen, and not its session.
    let segments = reader.segments()?;
    let before = clock();
    let (now, sessions) = reader.sessions()?;
    let reading = Reading::new(before, clock(), now);
    // Last: whoever is seen to be gone has tied nothing since. One whose session has ended may still tie until it is revoked;
    // the engine that is booted then knows (`Engine::strays`).
    let ties = reader.ties()?;
    let sight = Sight {
        now,
        sessions,
        segments,
        ties,
    };
    Ok((sight, reading))
}
