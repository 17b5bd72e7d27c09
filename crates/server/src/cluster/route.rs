//! Where a request goes next, from what is known of what it takes and of who owns that.
//!
//! It decides and does nothing. What a request takes is learnt from those who refuse it: each names what it lacks. Where that
//! is several servers', they are about to be brought together by whoever owns the first segment: that one gets it, until it
//! accepts.

use drumtower_core::model::{SegmentId, SegmentSet};

use super::View;

/// What a request is known to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nobody was asked yet.
    Unknown,
    /// Who was asked could not say.
    Unsaid,
    Segments(SegmentSet),
}

impl Needs {
    /// Somebody lacks these.
    pub fn learn(&mut self, missing: &SegmentSet) {
        *self = match self {
            _ if missing.is_all() => match self {
                Self::Segments(known) => Self::Segments(*known),
                Self::Unknown | Self::Unsaid => Self::Unsaid,
            },
            Self::Segments(known) => Self::Segments(known.union(missing)),
            Self::Unknown | Self::Unsaid => Self::Segments(*missing),
        };
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// This server carries it out, or says what it lacks.
    Here,
    /// The server at this address does.
    At(String),
    /// Nobody owns what it takes at the moment.
    Nobody,
}

/// `own` is this server's address.
pub fn next(needs: &Needs, view: &View, own: Option<&str>) -> Next {
    let segments = match needs {
        Needs::Unknown => return Next::Here,
        Needs::Unsaid => return owner(view, SegmentId::HOME, own),
        Needs::Segments(segments) => segments,
    };
    let mut owners = Vec::new();
    for segment in segments.iter() {
        let owner = owner(view, segment, own);
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    match owners.as_slice() {
        [] => Next::Here,
        [one] => one.clone(),
        several if several.contains(&Next::Nobody) => Next::Nobody,
        _ => owner(view, SegmentId::HOME, own),
    }
}

/// Who has one segment.
pub fn owner(view: &View, segment: SegmentId, own: Option<&str>) -> Next {
    let Some(server) = view.owner_of(segment) else {
        return Next::Nobody;
    };
    match server.member.address.as_deref() {
        address if address == own => Next::Here,
        Some(address) => Next::At(address.to_owned()),
        None => Next::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use drumtower_core::model::{Member, SessionId, WallMs};

    use super::super::Server;
    use super::*;

    fn server(number: u64, segments: &[u16]) -> Server {
        Server {
            session: SessionId(number),
            member: Member {
                address: Some(format!("http://{number}")),
                ..Member::alone("server")
            },
            expires: WallMs(0),
            segments: set(segments),
        }
    }

    fn set(segments: &[u16]) -> SegmentSet {
        segments.iter().copied().map(SegmentId).collect()
    }

    fn view() -> View {
        View {
            servers: vec![server(1, &[0, 1]), server(2, &[2, 3]), server(3, &[4])],
            ..View::default()
        }
    }

    /// As server 2 sees it.
    fn from_two(needs: &Needs) -> Next {
        next(needs, &view(), Some("http://2"))
    }

    fn at(number: u64) -> Next {
        Next::At(format!("http://{number}"))
    }

    #[test]
    fn a_request_goes_to_the_one_that_owns_all_of_it() {
        let goes = |segments: &[u16]| from_two(&Needs::Segments(set(segments)));
        assert_eq!(goes(&[0, 1]), at(1));
        assert_eq!(goes(&[4]), at(3));
        assert_eq!(goes(&[2, 3]), Next::Here);
        assert_eq!(goes(&[]), Next::Here);
        assert_eq!(from_two(&Needs::Unknown), Next::Here, "it is tried first");
    }

    #[test]
    fn what_is_to_be_brought_together_goes_to_the_owner_of_the_first_segment() {
        let goes = |segments: &[u16]| from_two(&Needs::Segments(set(segments)));
        assert_eq!(goes(&[0, 2]), at(1));
        assert_eq!(goes(&[2, 4]), at(1));
        let as_one = next(&Needs::Segments(set(&[2, 4])), &view(), Some("http://1"));
        assert_eq!(as_one, Next::Here);
    }

    #[test]
    fn what_nobody_owns_waits() {
        let goes = |segments: &[u16]| from_two(&Needs::Segments(set(segments)));
        assert_eq!(goes(&[5]), Next::Nobody);
        assert_eq!(goes(&[0, 5]), Next::Nobody);
        assert_eq!(goes(&[5, 0, 2]), Next::Nobody);
        let empty = next(&Needs::Unsaid, &View::default(), Some("http://2"));
        assert_eq!(empty, Next::Nobody);
    }

    #[test]
    fn who_knows_nothing_asks_the_owner_of_the_first_segment_and_learns() {
        let mut needs = Needs::Unknown;
        needs.learn(&SegmentSet::ALL);
        assert_eq!(from_two(&needs), at(1));
        needs.learn(&set(&[4]));
        assert_eq!(from_two(&needs), at(3));
        needs.learn(&SegmentSet::ALL);
        assert_eq!(from_two(&needs), at(3), "what is known stays known");
        needs.learn(&set(&[2]));
        assert_eq!(from_two(&needs), at(1));
    }
}
