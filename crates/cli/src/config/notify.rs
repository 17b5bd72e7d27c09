//! `[notify]` and `[smtp]`: how people are told of failures.

use drumtower_server::notify::email::{Encryption, Options as Smtp, is_here};
use drumtower_server::serve::Options;

use super::{Key, Kind, Settings, any};
use crate::failure::{Failure, Result};

pub const KEYS: &[Key] = &[
    Key::new("notify.key_file", "DRUMTOWER_NOTIFY_KEY_FILE", Kind::Path)
        .unset("webhook.key in the data directory"),
    Key::new(
        "notify.per_hour",
        "DRUMTOWER_NOTIFY_PER_HOUR",
        Kind::Count {
            least: 1,
            most: 3600,
        },
    )
    .default("60"),
];

pub const SMTP_KEYS: &[Key] = &[
    Key::new("smtp.host", "DRUMTOWER_SMTP_HOST", Kind::Text(any)).unset("no mail is sent"),
    Key::new(
        "smtp.port",
        "DRUMTOWER_SMTP_PORT",
        Kind::Count {
            least: 1,
            most: 65_535,
        },
    )
    .unset("587, 465 or 25, as smtp.tls says"),
    Key::new(
        "smtp.tls",
        "DRUMTOWER_SMTP_TLS",
        Kind::Choice(&["starttls", "implicit", "none"]),
    )
    .default("starttls"),
    Key::new("smtp.username", "DRUMTOWER_SMTP_USERNAME", Kind::Text(any)),
    Key::new(
        "smtp.password_file",
        "DRUMTOWER_SMTP_PASSWORD_FILE",
        Kind::Path,
    ),
    Key::new("smtp.from", "DRUMTOWER_SMTP_FROM", Kind::Text(any)),
    Key::new("smtp.ca", "DRUMTOWER_SMTP_CA", Kind::Path).unset("the certificates of the system"),
];

/// Puts what the sections say into the options of a server.
pub fn apply(settings: &Settings, options: &mut Options) -> Result<()> {
    let notify = &mut options.notify;
    notify.key_file = settings.path("notify.key_file").map(Into::into);
    if let Some(count) = settings.count("notify.per_hour") {
        notify.per_hour = u32::try_from(count).unwrap_or(u32::MAX);
    }
    notify.outbound = super::outbound::policy(settings)?;
    notify.smtp = smtp(settings)?;
    Ok(())
}

fn smtp(settings: &Settings) -> Result<Option<Smtp>> {
    let Some(host) = settings.text("smtp.host") else {
        return match settings.text("smtp.from") {
            Some(_) => Err(Failure::usage(
                "smtp.from needs smtp.host: give the mail server",
            )),
            None => Ok(None),
        };
    };
    let from = settings.text("smtp.from").ok_or_else(|| {
        Failure::usage("smtp.host needs smtp.from: give the address that mails come from")
    })?;
    let encryption = match settings.text("smtp.tls").as_deref() {
        Some("implicit") => Encryption::Implicit,
        Some("none") => Encryption::None,
        _ => Encryption::StartTls,
    };
    if encryption == Encryption::None && !is_here(&host) {
        return Err(Failure::usage(format!(
            "smtp.tls: `none` is for a mail server on this machine, and `{host}` is another one: use `starttls` or `implicit`"
        )));
    }
    let read = |key: &str| {
        let path = settings.path(key);
        path.map(|path| std::fs::read(path).map_err(|error| Failure::file(path, &error)))
            .transpose()
    };
    let password = read("smtp.password_file")?;
    let port = settings.count("smtp.port");
    let port = port.and_then(|port| u16::try_from(port).ok());
    Ok(Some(Smtp {
        host,
        port: port.unwrap_or_else(|| encryption.port()),
        encryption,
        login: login(settings.text("smtp.username"), password)?,
        from,
        authorities: read("smtp.ca")?.unwrap_or_default(),
    }))
}

fn login(name: Option<String>, password: Option<Vec<u8>>) -> Result<Option<(String, String)>> {
    match (name, password) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(Failure::usage(
            "smtp.username needs smtp.password_file: give the file that holds the password",
        )),
        (None, Some(_)) => Err(Failure::usage(
            "smtp.password_file needs smtp.username: give the name",
        )),
        (Some(name), Some(password)) => {
            let text = String::from_utf8(password).unwrap_or_default();
            match text.lines().next().map(str::trim) {
                Some(line) if !line.is_empty() => Ok(Some((name, line.to_owned()))),
                _ => Err(Failure::usage(
                    "smtp.password_file: it is empty: put the password on its first line",
                )),
            }
        }
    }
}
