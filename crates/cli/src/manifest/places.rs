//! Where each key of a document stands.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

/// The keys of a document in the order in which they are written, each with its path.
#[derive(Debug)]
pub struct Places(Vec<Place>);

#[derive(Debug)]
struct Place {
    path: String,
    line: u64,
    column: u64,
    is_map: bool,
    /// Where the value stands, if it was read as a number with a fraction.
    fraction: Option<(u64, u64)>,
}

impl Places {
    /// The place of a path, or of the nearest one above it that is written down.
    pub fn of(&self, path: &str) -> Option<(u64, u64)> {
        let mut path = path;
        loop {
            if let Some(place) = self.0.iter().find(|place| place.path == path) {
                return Some((place.line, place.column));
            }
            path = path.rsplit_once(['.', '[']).map(|(above, _)| above)?;
        }
    }

    /// The first whole number at or below `path` that was read as one with a fraction, because no other holds its digits:
    /// its path, line, column and digits.
    pub fn changed_number(&self, path: &str, text: &str) -> Option<(String, u64, u64, String)> {
        let below = self.0.iter().filter(|place| {
            let rest = place.path.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        });
        below
            .filter_map(|place| Some((place, place.fraction?)))
            .find_map(|(place, (line, column))| {
                let at = |number: u64| usize::try_from(number).ok()?.checked_sub(1);
                let written = text.lines().nth(at(line)?)?.chars().skip(at(column)?);
                let digits: String = written
                    .take_while(|c| !c.is_whitespace() && !",]}".contains(*c))
                    .collect();
                let bare = digits.trim_start_matches(['+', '-']);
                let is_whole = !bare.is_empty() && bare.chars().all(|c| c.is_ascii_digit());
                // `01.50` is a fraction, and still not what is kept.
                let is_padded =
                    bare.starts_with('0') && bare[1..].starts_with(|c: char| c.is_ascii_digit());
                (is_whole || is_padded).then(|| (place.path.clone(), line, column, digits))
            })
    }

    /// The line that the document begins at.
    pub fn line(&self) -> u64 {
        self.0.first().map_or(1, |place| place.line)
    }

    /// The path of the last key that begins at or before a place.
    pub fn at(&self, line: u64, column: u64) -> Option<String> {
        let before = self
            .0
            .iter()
            .take_while(|place| (place.line, place.column) <= (line, column));
        before
            .last()
            .map(|place| place.path.clone())
            .filter(|path| !path.is_empty())
    }

    /// Whether a key begins at a place.
    pub fn begins(&self, line: u64, column: u64) -> bool {
        let key = |place: &&Place| !place.path.is_empty() && !place.path.ends_with(']');
        let mut keys = self.0.iter().filter(key);
        keys.any(|place| (place.line, place.column) == (line, column))
    }

    /// The path of the value at a place. A mapping begins where its first key does, and then it is the mapping that is meant.
    pub fn around(&self, line: u64, column: u64) -> Option<String> {
        let path = self.at(line, column)?;
        match self.begins(line, column) {
            true => path.rfind('.').map(|end| path[..end].to_owned()),
            false => Some(path),
        }
    }

    /// The path of the mapping around a place; `None` when that is the document.
    pub fn mapping(&self, line: u64, column: u64) -> Option<String> {
        let mut path = self.at(line, column)?;
        while !self
            .0
            .iter()
            .any(|place| place.is_map && place.path == path)
        {
            path.truncate(path.rfind(['.', '['])?);
        }
        Some(path)
    }
}

impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = Spanned::<Node>::deserialize(deserializer)?;
        let mut places = Vec::new();
        node.value
            .list("", node.referenced, node.referenced, &mut places);
        Ok(Self(places))
    }
}

/// The shape of a document without its values.
#[derive(Debug)]
enum Node {
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
    List(Vec<Spanned<Node>>),
    Leaf,
    /// A number with a fraction, or one that is kept like that.
    Fraction,
}

impl Node {
    /// `location` is that of the key, where there is one, and `value` that of the value.
    fn list(&self, path: &str, location: Location, value: Location, places: &mut Vec<Place>) {
        let is_map = matches!(self, Self::Map(_));
        places.push(Place {
            path: path.to_owned(),
            line: location.line(),
            column: location.column(),
            is_map,
            fraction: matches!(self, Self::Fraction).then(|| (value.line(), value.column())),
        });
        match self {
            Self::Map(entries) => {
                for (key, node) in entries {
                    let path = if path.is_empty() {
                        key.value.clone()
                    } else {
                        format!("{path}.{}", key.value)
                    };
                    node.value
                        .list(&path, key.referenced, node.referenced, places);
                }
            }
            Self::List(items) => {
                for (index, node) in items.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    node.value
                        .list(&path, node.referenced, node.referenced, places);
                }
            }
            Self::Leaf | Self::Fraction => {}
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Shape)
    }
}

struct Shape;

/// Every kind of scalar is a leaf.
macro_rules! leaf {
    ($($method:ident: $type:ty),*) => {
        $(fn $method<E>(self, _: $type) -> Result<Node, E> {
            Ok(Node::Leaf)
        })*
    };
}

impl<'de> Visitor<'de> for Shape {
    type Value = Node;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    leaf!(visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128);
    leaf!(visit_str: &str, visit_bytes: &[u8]);

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Fraction)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            map.push((key, entries.next_value()?));
        }
        Ok(Node::Map(map))
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, data: A) -> Result<Node, A::Error> {
        let (IgnoredAny, _) = data.variant()?;
        Ok(Node::Leaf)
    }
}
