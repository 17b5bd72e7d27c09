//! The loop that drives a [`Session`]: one task owns it and everything else talks to that task.
//!
//! Each turn takes in whatever has come (events of attempts in batches, a frame of a server, time, a wish to stop),
//! performs the session's actions and sends what it has to say on each link, as full frames as the transport takes. There
//! is no timer per attempt: the session says when it wants to be woken next.

mod backoff;
mod dial;
mod fetch;
mod frame;
mod link;
mod links;
mod peer;
mod running;
mod servers;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tonic::metadata::{Ascii, MetadataValue};
use tracing::{debug, info, warn};

use crate::clock;
use crate::executor::{Control, Event, Executor, Reporter};
use crate::session::{Action, Attempt, LinkId, Session};
use crate::tls::Trust;
use crate::{Error, Shutdown};
use link::{Happened, Link};
use links::Links;
use running::{Fetching, Hold, Running, Waits};
use servers::Servers;

pub(crate) use dial::Server;

const EVENTS_AT_ONCE: usize = 4096;
/// Timers stand still while the machine is suspended and leases do not, so no sleep is long.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
const FAREWELL: Duration = Duration::from_secs(1);

/// Everything a runtime is given.
pub(crate) struct Parts {
    pub(crate) session: Session,
    pub(crate) servers: Vec<Server>,
    pub(crate) token: Option<MetadataValue<Ascii>>,
    pub(crate) trust: Trust,
    pub(crate) handlers: Arc<dyn Executor>,
    pub(crate) exec: Option<Arc<dyn Executor>>,
    pub(crate) http: Option<Arc<dyn Executor>>,
    pub(crate) load: Option<watch::Receiver<wire::Load>>,
    pub(crate) drain: Duration,
    pub(crate) seed: u64,
}

pub(crate) struct Runtime {
    session: Session,
    links: Links,
    handlers: Arc<dyn Executor>,
    exec: Option<Arc<dyn Executor>>,
    http: Option<Arc<dyn Executor>>,
    running: HashMap<Attempt, Running>,
    process: u64,
    events: mpsc::UnboundedSender<Event>,
    load: Option<watch::Receiver<wire::Load>>,
    drain: Duration,
    failure: Option<Error>,
}

impl Parts {
    pub(crate) async fn run(self, shutdown: impl Shutdown) -> Result<(), Error> {
        let (events, inbox) = mpsc::unbounded_channel();
        let runtime = Runtime {
            session: self.session,
            links: Links::new(
                Servers::new(self.servers, self.token, self.trust),
                self.seed,
            ),
            handlers: self.handlers,
            exec: self.exec,
            http: self.http,
            running: HashMap::new(),
            process: self.seed,
            events,
            load: self.load,
            drain: self.drain,
            failure: None,
        };
        runtime.run(inbox, shutdown).await
    }
}

impl Runtime {
    async fn run(
        mut self,
        mut inbox: mpsc::UnboundedReceiver<Event>,
        mut shutdown: impl Shutdown,
    ) -> Result<(), Error> {
        let mut batch = Vec::with_capacity(EVENTS_AT_ONCE);
        let mut wishes = 0;
        while !self.turn() {
            let wish = if wishes < 2 {
                Some(shutdown.next())
            } else {
                None
            };
            tokio::select! {
                count = inbox.recv_many(&mut batch, EVENTS_AT_ONCE) => {
                    debug_assert!(count > 0, "the runtime itself holds a sender");
                    batch.drain(..).for_each(|event| self.take_event(event));
                }
                (link, happened) = self.links.next() => self.take(link, happened),
                () = sleep(nap(&self.session)) => {}
                () = wished(wish) => {
                    wishes += 1;
                    self.leave(wishes > 1);
                }
            }
        }
        self.links.close(FAREWELL).await;
        match self.failure {
            Some(error) => Err(error),
            None => self.session.rejection().map_or(Ok(()), |reason| {
                Err(Error::rejected(format!(
                    "the server does not want this worker: {reason}"
                )))
            }),
        }
    }

    /// Does what the session asks for. True when nothing is left to do.
    fn turn(&mut self) -> bool {
        self.session.handle_timeout(clock::mono());
        self.act();
        self.transmit();
        self.session.is_done()
    }

    fn transmit(&mut self) {
        if let Some(load) = &mut self.load
            && load.has_changed().unwrap_or(false)
        {
            self.session.set_load(*load.borrow_and_update());
        }
        self.links.transmit(&mut self.session);
    }

    fn act(&mut self) {
        while let Some(action) = self.session.poll_action() {
            match action {
                Action::Start { assign, deadline } => self.start(assign, deadline),
                Action::Extend { attempts, deadline } => {
                    for attempt in attempts {
                        if let Some(running) = self.running.get_mut(&attempt) {
                            running.extend(deadline);
                        }
                    }
                }
                Action::Stop { attempt, reason } => {
                    self.tell(attempt, |control| control.stop(reason));
                }
                Action::Abort { attempt } => self.tell(attempt, |control| control.abort()),
                Action::CheckpointSettled {
                    attempt,
                    number,
                    kept,
                } => {
                    if let Some(running) = self.running.get_mut(&attempt) {
                        running.settle(number, kept);
                    }
                }
                Action::LogRoom { attempt, bytes } => {
                    if let Some(running) = self.running.get(&attempt) {
                        running.room.add_permits(bytes);
                    }
                }
                Action::Disconnect {
                    link,
                    reason,
                    again,
                } => self.let_go(link, &reason, again),
            }
        }
    }

    fn let_go(&mut self, id: LinkId, reason: &str, again: bool) {
        if again {
            self.lost(id, reason);
        } else if self.session.rejection().is_some() {
            self.links.halt();
        } else {
            let server = self.links.get(id).map_or("", Link::server);
            warn!(server, %reason, "this server does not want the worker; others do");
            self.links.rest(id);
        }
    }

    /// A link that waits beside others says so once.
    fn lost(&mut self, id: LinkId, reason: &str) {
        let Some(link) = self.links.get(id) else {
            return;
        };
        let (server, dialled) = (link.server().to_owned(), link.dialled().to_owned());
        let matters = link.is_welcomed() || self.links.is_single();
        self.session.stream_lost(id, link.stream());
        let Some(wait) = self.links.lost(id, &mut self.session) else {
            info!(server, %reason, "the connection to a server without work to give ended");
            return;
        };
        let wait_ms = wait.as_millis();
        if matters {
            warn!(server, dialled, %reason, wait_ms, "no connection; dialling again");
        } else {
            debug!(server, dialled, %reason, wait_ms, "no connection; dialling again");
        }
    }

    /// Stops one that runs; one that waits to begin never does, and its reporter says so when it is dropped.
    fn tell(&mut self, attempt: Attempt, order: impl FnOnce(&dyn Control)) {
        match self.running.get(&attempt).map(|running| &running.hold) {
            Some(Hold::Runs(control)) => order(control.as_ref()),
            Some(Hold::Waits(_)) => drop(self.running.remove(&attempt)),
            None => {}
        }
    }

    fn start(&mut self, assign: Box<wire::Assign>, deadline: MonoMs) {
        let Some(attempt) = assign.attempt else {
            return;
        };
        let reporter = Reporter::new(attempt.into(), self.events.clone());
        let room = reporter.room();
        let hold = match assign.checkpoint.as_ref().map(|mark| mark.number) {
            None => Hold::Runs(self.begin(assign, deadline, reporter)),
            Some(number) => {
                let source = self
                    .links
                    .source(attempt.into(), &self.session, self.process);
                let fetching = tokio::spawn(source.fetch(attempt, number, self.events.clone()));
                Hold::Waits(Box::new(Waits {
                    assign,
                    deadline,
                    reporter,
                    _fetching: Fetching(fetching.abort_handle()),
                }))
            }
        };
        let running = Running {
            hold,
            room,
            saving: Vec::new(),
        };
        self.running.insert(attempt.into(), running);
    }

    /// The checkpoint that an attempt begins with is here, or cannot be had.
    fn fetched(&mut self, attempt: Attempt, fetched: Result<Arc<[u8]>, String>) {
        let Some(mut running) = self.running.remove(&attempt) else {
            return;
        };
        let Hold::Waits(waits) = running.hold else {
            self.running.insert(attempt, running);
            return;
        };
        let Waits {
            assign,
            deadline,
            mut reporter,
            ..
        } = *waits;
        match fetched {
            Ok(body) => {
                reporter.begin_with(body);
                running.hold = Hold::Runs(self.begin(assign, deadline, reporter));
                self.running.insert(attempt, running);
            }
            Err(why) => reporter.refuse(&format!("its checkpoint cannot be fetched: {why}")),
        }
    }

    fn begin(
        &self,
        assign: Box<wire::Assign>,
        deadline: MonoMs,
        reporter: Reporter,
    ) -> Box<dyn Control> {
        use wire::assign::Task;
        let executor = match &assign.task {
            Some(Task::Exec(_) | Task::Script(_)) => self.exec.as_ref(),
            Some(Task::Http(_)) => self.http.as_ref(),
            _ => None,
        };
        // The session refuses what none of these takes.
        let executor = executor.unwrap_or(&self.handlers);
        executor.start(assign, deadline, reporter)
    }

    fn take_event(&mut self, event: Event) {
        match event {
            Event::Started(attempt) => self.session.attempt_started(clock::now(), attempt),
            Event::Log {
                attempt,
                stream,
                wall_ms,
                data,
            } => {
                self.session.log_chunk(wall_ms, attempt, stream, &data);
            }
            Event::Progress(attempt, newest) => {
                let newest = newest.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some((percent, message)) = newest {
                    let now = clock::mono();
                    self.session
                        .report_progress(now, attempt, percent.into(), message);
                }
            }
            Event::Checkpoint {
                attempt,
                body,
                settled,
            } => {
                let number = self.session.save_checkpoint(clock::mono(), attempt, body);
                if let (Some(number), Some(settled), Some(running)) =
                    (number, settled, self.running.get_mut(&attempt))
                {
                    running.saving.push((number, settled));
                }
            }
            Event::Fetched(attempt, fetched) => self.fetched(attempt, fetched),
            Event::Finished(attempt, end) => {
                self.running.remove(&attempt);
                self.session.attempt_finished(attempt, *end);
            }
            Event::Refused(attempt, reason) => {
                self.running.remove(&attempt);
                warn!(run = %attempt.run_id(), %reason, "handed back");
                self.session.attempt_refused(attempt, &reason);
            }
        }
    }

    fn take(&mut self, id: LinkId, happened: Happened) {
        match happened {
            Happened::Due => self.links.dial(id),
            Happened::Connected(channel) => self.links.open(id, channel, &mut self.session),
            Happened::Room => {}
            Happened::Frame(frame) => self.read(id, frame),
            Happened::Lost(reason) => self.lost(id, &reason),
            Happened::Refused(error) => {
                self.session.reject(clock::mono(), id, error.to_string());
                if self.session.rejection().is_some() {
                    self.failure = Some(error);
                }
            }
        }
    }

    fn read(&mut self, id: LinkId, frame: wire::ServerFrame) {
        use wire::server_message::Body;
        let now = clock::now();
        for message in frame.messages {
            let Some(stream) = self.links.get(id).map(Link::stream) else {
                return;
            };
            let news = match &message.body {
                Some(Body::Welcome(_) | Body::Owners(_)) => message.body.clone(),
                _ => None,
            };
            self.session.handle(now, id, stream, message);
            // The session may not be content with it.
            match news.filter(|_| self.session.is_connected_on(id)) {
                Some(Body::Welcome(welcome)) => self.welcomed(id, &welcome),
                Some(Body::Owners(owners)) => self.links.follow(&owners.servers, &mut self.session),
                _ => {}
            }
        }
    }

    fn welcomed(&mut self, id: LinkId, welcome: &wire::Welcome) {
        self.links.welcomed(id, welcome, &mut self.session);
        if let Some(link) = self.links.get(id) {
            let (server, dialled, stream) = (link.server(), link.dialled(), link.stream());
            info!(server, dialled, stream, "connected");
        }
    }

    fn leave(&mut self, at_once: bool) {
        let now = clock::mono();
        if at_once {
            info!("stopping at once");
            self.session.drain(now, now);
            for attempt in self.running.keys().copied().collect::<Vec<_>>() {
                self.tell(attempt, |control| control.abort());
            }
        } else {
            let within_s = self.drain.as_secs();
            info!(
                running = self.session.running(),
                within_s, "draining: waiting for what runs to end"
            );
            self.session.drain(
                now,
                now.plus(u64::try_from(self.drain.as_millis()).unwrap_or(u64::MAX)),
            );
        }
    }
}

fn nap(session: &Session) -> Duration {
    session.poll_timeout().map_or(LONGEST_SLEEP, |at| {
        Duration::from_millis(at.0.saturating_sub(clock::mono().0)).min(LONGEST_SLEEP)
    })
}

async fn wished(wish: Option<Pin<Box<dyn Future<Output = ()> + Send + '_>>>) {
    match wish {
        Some(wish) => wish.await,
        None => std::future::pending().await,
    }
}
