//! The Drumtower server: the driver around the engine, and the thin edge that people and workers talk to.
//!
//! [`driver`] gathers, steps, commits and acts. [`api`] is REST, [`grpc`] the workers' streams, both on one port, both
//! admitted by the one policy table of [`auth`]. [`console`] is the web console. [`logs`] keeps the output of attempts, [`metrics`] counts,
//! [`notify`] tells people of failures, [`cluster`] knows the other servers of a shared store, [`backup`] copies the store, [`history`] reads what became of a job's times. [`listen`] is the port, [`tls`] what makes it
//! secret. [`serve`] puts it all together.

pub mod api;
pub mod auth;
pub mod backup;
pub mod cluster;
pub mod console;
pub mod driver;
pub mod grpc;
pub mod history;
pub mod listen;
pub mod logs;
pub mod metrics;
pub mod notify;
pub mod serve;
pub mod tls;
