//! Several servers on one PostgreSQL database, as real processes: where the output of runs is found, what faults cost,
//! settings of all jobs, and a load balancer in front.

mod balanced;
mod faults;
mod output;
mod sent_on;
mod settings;
mod world;
