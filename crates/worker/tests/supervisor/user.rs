//! Commands of another user, under a supervisor that is root. Another user than root cannot change users: then it is seen that
//! this is refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use drumtower_worker::exec::Reason;

use crate::attempt::{Attempt, trials};
use crate::programs::SWAP;

trials![
    a_command_runs_as_its_user_in_a_directory_that_is_its_own,
    a_script_and_its_input_belong_to_the_user,
    nothing_in_the_directory_is_written_through_a_link,
    what_a_user_closed_is_removed_and_what_it_linked_to_is_untouched,
];

const USER: &str = "nobody";

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0)
}

/// As that user if this is root; otherwise sees that the change is refused, and there is no more to see.
async fn as_user(script: &str) -> Option<Attempt> {
    let mut attempt = Attempt::shell(script);
    attempt.allow_other_users();
    attempt.spec.user = Some(USER.to_owned());
    if is_root() {
        return Some(attempt);
    }
    let (outcome, _) = attempt.run().await;
    assert_eq!(outcome.reason, Reason::NotStarted);
    assert!(
        outcome
            .error
            .unwrap()
            .contains("only root can change users")
    );
    None
}

async fn a_command_runs_as_its_user_in_a_directory_that_is_its_own() {
    let script =
        "id -un; stat -c '%U %a' .; echo $USER $LOGNAME; id -G; touch file && stat -c %U file";
    let Some(attempt) = as_user(script).await else {
        return;
    };
    let (outcome, output) = attempt.run().await;
    let text = output.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(outcome.exit_code, Some(0), "{text} {outcome:?}");
    assert_eq!(lines[..3], ["nobody", "nobody 700", "nobody nobody"]);
    assert!(!lines[3].split(' ').any(|group| group == "0"), "{text}");
    assert_eq!(lines[4], "nobody");
    attempt.assert_nothing_left();
}

async fn a_script_and_its_input_belong_to_the_user() {
    let Some(mut attempt) = as_user("").await else {
        return;
    };
    attempt.spec.argv = vec!["sh".to_owned()];
    // Read twice: once as it is open, once by a name that the system gives it.
    attempt.spec.script =
        Some("stat -c '%U %a' \"$0\"; ls -A; cat; cat /dev/stdin; echo end".to_owned());
    attempt.spec.stdin = Some("hello\n".to_owned());
    let (outcome, output) = attempt.run().await;
    assert_eq!(
        output.text(),
        "nobody 500\n.drumtower-script\nhello\nhello\nend\n",
        "{outcome:?}"
    );
    attempt.assert_nothing_left();
}

/// The user keeps putting links where the supervisor is about to write, as fast as it can. If it ever could before root is
/// done there, what they lead to would become the user's, or the input of its command.
async fn nothing_in_the_directory_is_written_through_a_link() {
    let Some(mut mischief) = as_user("").await else {
        return;
    };
    let victims = mischief.scratch().with_file_name("victim");
    let secret = mischief.outside().join("secret");
    fs::write(&secret, "of root").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let (to, place) = (secret.to_str().unwrap(), victims.to_str().unwrap());
    mischief.spec.argv = ["/proc/self/exe", SWAP, to, place].map(String::from).into();
    let running = mischief.spawn();
    running.started().await.expect("it runs");
    for _ in 0..100 {
        // A link put there while the directory was being removed keeps it in place.
        while victims.exists() {
            let _ = fs::remove_dir_all(&victims);
        }
        let mut victim = Attempt::shell("");
        victim.spec.scratch = victims.clone();
        victim.spec.user = Some(USER.to_owned());
        victim.spec.argv = ["sh", "-c", "cat"].map(String::from).into();
        victim.spec.script = Some("the script".to_owned());
        victim.spec.stdin = Some("the input".to_owned());
        let (outcome, output) = victim.run().await;
        assert_eq!(output.text(), "the input", "{outcome:?}");
        let about = fs::metadata(&secret).unwrap();
        assert_eq!((about.uid(), about.mode() & 0o777), (0, 0o600));
    }
    drop(running);
}

async fn what_a_user_closed_is_removed_and_what_it_linked_to_is_untouched() {
    let Some(mut attempt) = as_user("").await else {
        return;
    };
    let outside = attempt.outside().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o750)).unwrap();
    symlink(Path::new("/nowhere"), outside.join("dangling")).unwrap();
    let script = format!(
        "mkdir -p a/b && touch a/b/c && ln -s {} a/link && chmod 0 a/b a",
        outside.display()
    );
    attempt.spec.argv = ["/bin/sh", "-c", &script].map(String::from).into();
    let (outcome, _) = attempt.run().await;
    assert_eq!((outcome.exit_code, outcome.error), (Some(0), None));
    attempt.assert_nothing_left();
    assert_eq!(fs::metadata(&outside).unwrap().mode() & 0o777, 0o750);
    assert!(fs::symlink_metadata(outside.join("dangling")).is_ok());
}
