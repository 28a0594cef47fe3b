//! Passphrases: from the terminal itself or from a descriptor named on purpose, never from whatever standard input
//! happens to be, and wiped after use (PROFILE §10).

use std::fs::File;
use std::io::{self, Read, Write as _};

use zeroize::{Zeroize as _, Zeroizing};

use crate::outcome::{Outcome, Stop};

/// Where passphrases come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The terminal, echo off.
    Terminal,
    /// A descriptor this process was started with.
    Descriptor(u32),
}

impl From<Option<u32>> for Source {
    fn from(descriptor: Option<u32>) -> Self {
        descriptor.map_or(Self::Terminal, Self::Descriptor)
    }
}

impl Source {
    /// Asks for a passphrase that exists.
    pub(crate) fn ask(self, prompt: &str) -> Outcome<Zeroizing<Vec<u8>>> {
        match self {
            Self::Terminal => from_terminal(prompt),
            Self::Descriptor(descriptor) => from_descriptor(descriptor),
        }
    }

    /// Asks for a new passphrase: on the terminal twice.
    pub(crate) fn ask_new(self, prompt: &str) -> Outcome<Zeroizing<Vec<u8>>> {
        let first = self.ask(prompt)?;
        if self == Self::Terminal {
            let second = from_terminal("Once more: ")?;
            if *first != *second {
                return Err(Stop::usage("the two passphrases differ; nothing was done"));
            }
        }
        Ok(first)
    }

    /// Whether a person can try again.
    pub(crate) fn can_ask_again(self) -> bool {
        self == Self::Terminal
    }
}

fn from_terminal(prompt: &str) -> Outcome<Zeroizing<Vec<u8>>> {
    match rpassword::prompt_password(prompt) {
        Ok(mut text) => {
            let bytes = Zeroizing::new(text.as_bytes().to_vec());
            text.zeroize();
            Ok(bytes)
        }
        Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {
            Err(Stop::refused("interrupted; nothing was done"))
        }
        Err(_) => Err(no_terminal("the passphrase")
            .try_this("run it in a terminal, or add `--passphrase-fd N`")),
    }
}

fn from_descriptor(descriptor: u32) -> Outcome<Zeroizing<Vec<u8>>> {
    let unreadable = |fault: io::Error| {
        Stop::usage(format!(
            "cannot read the passphrase from descriptor {descriptor}: {fault}"
        ))
    };
    if descriptor == 0 {
        return read_line(io::stdin().lock()).map_err(unreadable);
    }
    let file = File::open(format!("/dev/fd/{descriptor}")).map_err(unreadable)?;
    read_line(file).map_err(unreadable)
}

/// Up to the first newline or the end. Read byte by byte, so that what follows stays for others, and into room made
/// beforehand, so that growing leaves no copies behind.
fn read_line(mut from: impl Read) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut line = Zeroizing::new(Vec::with_capacity(MOST_BYTES));
    let mut byte = Zeroizing::new([0_u8]);
    loop {
        match from.read(byte.as_mut_slice()) {
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() == MOST_BYTES => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
            }
            Ok(_) => line.push(byte[0]),
            Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
            Err(fault) => return Err(fault),
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    if line.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "there is none",
        ));
    }
    Ok(line)
}

/// Asks a question on the terminal itself, so that no pipe can answer it. The answer in small letters.
pub(crate) fn question(prompt: &str) -> Outcome<String> {
    let mut tty = File::options()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .map_err(|_| no_terminal("the answer"))?;
    let mut answer = || -> io::Result<String> {
        tty.write_all(prompt.as_bytes())?;
        tty.flush()?;
        match read_line(&mut tty) {
            Ok(line) => Ok(String::from_utf8_lossy(&line).trim().to_lowercase()),
            Err(fault) if fault.kind() == io::ErrorKind::UnexpectedEof => Ok(String::new()),
            Err(fault) => Err(fault),
        }
    };
    answer().map_err(|fault| Stop::fault(format!("cannot read from the terminal: {fault}")))
}

fn no_terminal(what: &str) -> Stop {
    Stop::usage(format!("there is no terminal to ask for {what}"))
}

const MOST_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_passphrase_ends_at_the_first_newline_or_the_end() {
        for given in [
            "four bells",
            "four bells\n",
            "four bells\r\n",
            "four bells\nand more",
        ] {
            assert_eq!(
                read_line(given.as_bytes()).unwrap().as_slice(),
                b"four bells"
            );
        }
        assert!(read_line(&b""[..]).is_err());
        assert!(read_line(&b"\n"[..]).is_err());
        assert!(read_line(&vec![b'a'; MOST_BYTES + 1][..]).is_err());
    }

    #[test]
    fn what_follows_the_newline_stays_unread() {
        let mut from = &b"old one\nnew one\n"[..];
        assert_eq!(read_line(&mut from).unwrap().as_slice(), b"old one");
        assert_eq!(read_line(&mut from).unwrap().as_slice(), b"new one");
    }

    #[test]
    fn a_descriptor_that_is_not_there_is_wrong_usage() {
        let stop = Source::Descriptor(987).ask("").unwrap_err();
        assert_eq!(stop.status(), crate::outcome::Status::Usage);
    }
}
