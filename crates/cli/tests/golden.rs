//! What the commands print, word for word. `TRYCMD=overwrite cargo test -p lychgate --test golden` takes a change over.

#[test]
fn what_is_printed_is_what_is_written_down() {
    trycmd::TestCases::new()
        .env("HOME", "/home/nobody-in-particular")
        .env("USER", "alice")
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .case("tests/cmd/*.trycmd")
        .case("tests/cmd/*.toml");
}
