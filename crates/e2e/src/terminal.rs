//! A program on a terminal of its own, as a user sees it: what it draws, what it does with keys, how it leaves.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::eventually;

pub struct Terminal {
    child: Child,
    master: File,
    /// Kept open, so that the modes can be asked for when the program is gone.
    slave: OwnedFd,
    drawn: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts a command on a new terminal of 24 lines and 100 columns.
    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        let (mut master, mut slave) = (0, 0);
        let size = libc::winsize {
            ws_row: 24,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: the two numbers and the size outlive the call, which keeps none of the pointers.
        let made = unsafe {
            libc::openpty(
                &raw mut master,
                &raw mut slave,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                (&raw const size).cast_mut(),
            )
        };
        assert_eq!(made, 0, "a terminal can be made");
        // SAFETY: both were opened by the call above and belong to nobody else.
        let (master, slave) = unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        let end = || slave.try_clone().expect("another handle of the terminal");
        command.stdin(end()).stdout(end()).stderr(end());
        command.env("TERM", "xterm-256color");
        // SAFETY: between fork and exec only these two calls are made, both of which a signal handler may make as well.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY as _, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().expect("the command starts");
        let drawn = Arc::new(Mutex::new(Vec::new()));
        let (mut reading, kept) = (master.try_clone().expect("a handle"), Arc::clone(&drawn));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = reading.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                kept.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self {
            child,
            master,
            slave,
            drawn,
            reader: Some(reader),
        }
    }

    /// Everything that was written to it.
    pub fn drawn(&self) -> String {
        String::from_utf8_lossy(&self.drawn.lock().unwrap()).into_owned()
    }

    /// Waits until something is on it that was not before `from`.
    #[track_caller]
    pub fn sees(&self, what: &str) {
        eventually(&format!("`{what}` on the terminal"), || {
            self.drawn().contains(what).then_some(())
        });
    }

    /// Forgets what was drawn, so that what comes next can be told from it.
    pub fn forget(&self) {
        self.drawn.lock().unwrap().clear();
    }

    pub fn types(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("a key");
    }

    /// Gives it another size, of which the program is told.
    pub fn resize(&self, lines: u16, columns: u16) {
        let size = libc::winsize {
            ws_row: lines,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: the size outlives the call.
        let set =
            unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        assert_eq!(set, 0, "a terminal has a size");
    }

    /// Whether lines are edited and keys are echoed, as a shell needs it.
    pub fn is_cooked(&self) -> bool {
        // SAFETY: all fields are plain numbers, and the call fills them in.
        let modes = unsafe {
            let mut modes: libc::termios = std::mem::zeroed();
            assert_eq!(libc::tcgetattr(self.slave.as_raw_fd(), &raw mut modes), 0);
            modes
        };
        let wanted = libc::ICANON | libc::ECHO | libc::ISIG;
        modes.c_lflag & wanted == wanted
    }

    /// Waits until the program has ended by itself.
    #[track_caller]
    pub fn ends(&mut self) -> ExitStatus {
        eventually("the program ends", || {
            self.child.try_wait().expect("a child of ours")
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The reader ends with the last handle of the other side; it is not waited for.
        drop(self.reader.take());
    }
}
