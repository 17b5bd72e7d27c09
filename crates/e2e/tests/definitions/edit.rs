//! Jobs changed in the user's editor.

use std::path::Path;

use crate::world::{text, world};

#[test]
fn an_edit_changes_the_job_and_says_what() {
    let world = world();
    world.create(&["hello", "--every", "1h", "--", "echo", "hello"]);
    let user = world.editing("cp \"$1\" seen.yaml; sed -i s/1h/2h/ \"$1\"");
    assert_eq!(
        user.ok(&["job", "edit", "hello"]),
        "job default/hello changed\nschedule[0].every: \"1h\" → \"2h\"\n"
    );
    let seen = text(&world.site.path().join("home/seen.yaml"));
    assert!(
        seen.starts_with("#| job default/hello, version 1. Save to change it"),
        "{seen}"
    );
    let revision = world.revision("hello");
    let user = world.editing("echo '# a remark' >> \"$1\"");
    assert_eq!(
        user.ok(&["job", "edit", "hello"]),
        "job default/hello unchanged\n"
    );
    assert_eq!(world.revision("hello"), revision, "nothing was sent");
    let user = world.editing("exit 3");
    let said = user.fails(1, &["job", "edit", "hello"]);
    assert!(
        said.contains("exit status: 3") && said.contains("nothing was done"),
        "{said}"
    );
    assert!(!said.contains("kept in"), "nobody typed anything: {said}");
    let user = world.editing("sed -i s/2h/4h/ \"$1\"; exit 3");
    let said = user.fails(1, &["job", "edit", "hello"]);
    let kept = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("your text is kept in "))
        .expect("a file is named");
    assert!(text(Path::new(kept)).contains("every: 4h"));
    std::fs::remove_file(kept).expect("the file is the user's");
    user.fails(3, &["job", "edit", "nothing"]);
}

#[test]
fn a_line_of_a_script_that_looks_like_a_comment_is_part_of_the_job() {
    let world = world();
    let manifest = "kind: Job\nname: hello\ntask:\n  script:\n    body: |\n      #!/bin/sh\n      echo one\n\n      echo two\n";
    let file = world.site.file("hello.yaml", manifest);
    world.cli.ok(&["apply", "-f", &file.display().to_string()]);
    let user = world.editing("sed -i 's|#!/bin/sh|#!/bin/bash|' \"$1\"");
    let said = user.ok(&["job", "edit", "hello"]);
    assert!(said.starts_with("job default/hello changed\n"), "{said}");
    assert_eq!(
        world.spec("hello")["task"]["script"]["body"],
        "#!/bin/bash\necho one\n\necho two\n"
    );
}

#[test]
fn a_user_who_may_not_change_the_job_is_told_once() {
    let world = world();
    world.create(&["hello", "--every", "1h", "--", "echo", "hello"]);
    let token = world.server.token("reader", "viewer");
    let user = world
        .editing("echo x >> count; sed -i s/1h/2h/ \"$1\"")
        .env("DRUMTOWER_TOKEN", token);
    let said = user.fails(4, &["job", "edit", "hello"]);
    assert_eq!(text(&world.site.path().join("home/count")), "x\n", "{said}");
    let kept = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("your text is kept in "))
        .expect("a file is named");
    std::fs::remove_file(kept).expect("the file is the user's");
}

#[test]
fn a_fault_opens_the_editor_again_with_the_message() {
    let world = world();
    world.create(&["hello", "--every", "1h", "--", "echo", "hello"]);
    // The first time it breaks a key, the second time a value that only the server knows to be wrong, then it is mended.
    let user = world.editing(
        "n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); echo $n > count; cp \"$1\" seen$n.yaml\n\
         case $n in 1) sed -i s/every:/evry:/ \"$1\";; 2) sed -i 's/evry:/every:/; $a calendar: {only: [none]}' \"$1\";; \
         *) sed -i 's/none/working/; s/1h/3h/; /^calendar/d' \"$1\";; esac",
    );
    let said = user.ok(&["job", "edit", "hello"]);
    assert_eq!(
        said,
        "job default/hello changed\nschedule[0].every: \"1h\" → \"3h\"\n"
    );
    let seen = |number: u32| text(&world.site.path().join(format!("home/seen{number}.yaml")));
    assert!(
        seen(2).starts_with(
            "#| error: line:7:3: schedule[0]: unknown key `evry`: did you mean `every`?\n"
        ),
        "{}",
        seen(2)
    );
    let line = seen(2).lines().nth(6).unwrap_or_default().to_owned();
    assert_eq!(
        line, "- evry: 1h",
        "the line that is named is the line that is seen"
    );
    assert!(
        seen(3).starts_with("#| error: ") && seen(3).contains("`none`"),
        "{}",
        seen(3)
    );
}

#[test]
fn an_edit_that_comes_too_late_keeps_the_text() {
    let world = world();
    world.create(&["hello", "--every", "1h", "--", "echo", "hello"]);
    let binary = drumtower_e2e::drumtower().display().to_string();
    let user = world.editing(&format!(
        "{binary} job pause hello > /dev/null; sed -i s/1h/2h/ \"$1\""
    ));
    let said = user.fails(4, &["job", "edit", "hello"]);
    assert!(
        said.starts_with("error: job default/hello was changed by someone else meanwhile"),
        "{said}"
    );
    let kept = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("your text is kept in "))
        .expect("a file is named");
    assert!(text(Path::new(kept)).contains("every: 2h"));
    std::fs::remove_file(kept).expect("the file is the user's");
    assert_eq!(world.spec("hello")["schedule"][0]["every"], "1h");
    // A text that stays wrong is kept, too, and the command ends.
    let user = world.editing("sed -i s/every:/evry:/ \"$1\"");
    let said = user.fails(2, &["job", "edit", "hello"]);
    let kept = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("your text is kept in "))
        .expect("a file is named");
    assert!(text(Path::new(kept)).contains("evry: 1h"));
    std::fs::remove_file(kept).expect("the file is the user's");
}
