//! What one attempt may use of its worker's machine.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::{Limits, SpecError};

/// Bounds of one attempt, all its processes together. `drumtower worker show` says how a worker enforces them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceLimits {
    /// Memory, such as `512MiB`; the attempt is killed when it uses more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Processor time in cores, such as `1.5`; more is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cores>,
    /// Files that each process may have open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 16, max = 1048576))]
    pub open_files: Option<u64>,
    /// Processes that may live at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1048576))]
    pub processes: Option<u64>,
}

impl ResourceLimits {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The memory in bytes; `None` when it is not limited or not understood, which [`Self::check`] refuses.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.memory
            .as_deref()
            .and_then(|text| parse_bytes(text).ok())
    }

    pub(super) fn check(&self, field: &str) -> Result<(), SpecError> {
        if let Some(text) = &self.memory {
            let field = format!("{field}.memory");
            let bytes = parse_bytes(text)
                .map_err(|why| SpecError::new(&field, format!("`{text}` {why}")))?;
            if !(Limits::MEMORY_MIN..=Limits::MEMORY_MAX).contains(&bytes) {
                let (least, most) = (
                    format_bytes(Limits::MEMORY_MIN),
                    format_bytes(Limits::MEMORY_MAX),
                );
                let message = format!("`{text}` is not between {least} and {most}");
                return Err(SpecError::new(field, message));
            }
        }
        if let Some(cores) = self.cpu
            && !(Limits::CPU_MILLI_MIN..=Limits::CPU_MILLI_MAX).contains(&cores.0)
        {
            let message = format!("`{cores}` is not between 0.01 and 1024 cores");
            return Err(SpecError::new(format!("{field}.cpu"), message));
        }
        let counts = [
            (
                "open_files",
                self.open_files,
                Limits::OPEN_FILES_MIN,
                Limits::OPEN_FILES_MAX,
            ),
            ("processes", self.processes, 1, Limits::PROCESSES_MAX),
        ];
        for (key, count, least, most) in counts {
            if let Some(count) = count
                && !(least..=most).contains(&count)
            {
                let message = format!("`{count}` is not between {least} and {most}");
                return Err(SpecError::new(format!("{field}.{key}"), message));
            }
        }
        Ok(())
    }
}

/// Cores in thousandths: written `1.5` and compared exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores(pub u32);

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / 1000.0)
    }
}

impl Serialize for Cores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(1000) {
            serializer.serialize_u32(self.0 / 1000)
        } else {
            serializer.serialize_f64(f64::from(self.0) / 1000.0)
        }
    }
}

impl<'de> Deserialize<'de> for Cores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Cores;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of cores, such as 1.5")
            }

            fn visit_f64<E: de::Error>(self, cores: f64) -> Result<Cores, E> {
                // What is out of range becomes the nearest bound of the type, which the check refuses.
                Ok(Cores((cores * 1000.0).round() as u32))
            }

            fn visit_u64<E: de::Error>(self, cores: u64) -> Result<Cores, E> {
                let milli = cores.saturating_mul(1000);
                Ok(Cores(u32::try_from(milli).unwrap_or(u32::MAX)))
            }

            fn visit_i64<E: de::Error>(self, cores: i64) -> Result<Cores, E> {
                self.visit_u64(u64::try_from(cores).unwrap_or(0))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

impl JsonSchema for Cores {
    fn schema_name() -> Cow<'static, str> {
        "Cores".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0.01, "maximum": 1024})
    }
}

/// Bytes of a size such as `512MiB`, `2GiB` or `64kB`; whole numbers only.
fn parse_bytes(text: &str) -> Result<u64, &'static str> {
    const UNITS: [(&str, u64); 11] = [
        ("B", 1),
        ("kB", 1000),
        ("KB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("", 0),
    ];
    const HOW: &str = "is not a size: write a whole number and a unit, such as 512MiB or 2GiB";
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = number.parse().map_err(|_| HOW)?;
    match UNITS.iter().find(|(name, _)| *name == unit.trim()) {
        Some((_, 0)) => Err("has no unit: write it as 512MiB or 2GiB"),
        Some((_, bytes)) => number.checked_mul(*bytes).ok_or("is too large"),
        None => Err(HOW),
    }
}

/// The shortest text for a size that is exact in binary units, else bytes.
pub fn format_bytes(bytes: u64) -> String {
    for (unit, size) in [
        ("TiB", 1u64 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ] {
        if bytes >= size && bytes.is_multiple_of(size) {
            return format!("{} {unit}", bytes / size);
        }
    }
    format!("{bytes} B")
}
