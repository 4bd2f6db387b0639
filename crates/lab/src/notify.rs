//! Telling somebody that a run has ended: a program of the user's on this machine, or a web server.

use std::fmt::Write as _;
use std::time::Duration;

use fwdlab_model::Notify;
use serde::Serialize;

use crate::{LabError, program};

/// How long each of them may take: nobody waits for a message before the next run.
const TIME_MAX: Duration = Duration::from_secs(60);

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// All of it, for people; the name that chat servers look for.
    pub text: String,
    /// The experiment's question.
    pub question: String,
    /// `finished`, `incomplete`, `stopped` or `failed`.
    pub outcome: &'static str,
    /// Where the results are, where there are any.
    pub directory: Option<String>,
}

/// Tells all that a lab file names, and goes on where one cannot be told.
///
/// # Errors
/// What went wrong with each; none of it holds a webhook's address, which may be a secret.
pub fn notify(notify: &Notify, message: &Message) -> Vec<String> {
    let mut errors = Vec::new();
    if let Some(command) = &notify.command
        && let Err(error) = ran(command, &message.text)
    {
        errors.push(error.to_string());
    }
    if let Some(webhook) = &notify.webhook {
        let curl = ["curl", "--config", "-"].map(str::to_owned);
        let configuration = curl_configuration(webhook, message);
        if let Err(error) = ran(&curl, &configuration) {
            let why = error.to_string().replace(webhook.as_str(), "(the webhook)");
            errors.push(format!("posting to the webhook of the lab file: {why}"));
        }
    }
    errors
}

fn ran(command: &[String], input: &str) -> Result<program::Output, LabError> {
    program::run_for(TIME_MAX, command, input)?.succeeded(command)
}

/// What curl is told on its standard input: on its command line, everybody could read the address.
fn curl_configuration(webhook: &str, message: &Message) -> String {
    let json = serde_json::to_string(message).expect("a message is plain data");
    let mut text = String::new();
    for (option, value) in [
        ("url", webhook),
        ("header", "Content-Type: application/json"),
        ("user-agent", concat!("fwdlab/", env!("CARGO_PKG_VERSION"))),
        ("output", "/dev/null"),
        ("max-time", "30"),
        ("data-binary", &json),
    ] {
        let value = value.replace('\\', r"\\").replace('"', "\\\"");
        let _ = writeln!(text, "{option} = \"{value}\"");
    }
    text + "fail\nsilent\nshow-error\nproto = \"=http,https\"\n"
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn message() -> Message {
        Message {
            text: "finished\n\"a\" \\ b".to_owned(),
            question: "Impact of x on y".to_owned(),
            outcome: "finished",
            directory: Some("results/x".to_owned()),
        }
    }

    #[test]
    fn a_program_reads_the_message_and_failures_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("told").display().to_string();
        let told = Notify {
            command: Some(["tee".to_owned(), place.clone()].to_vec()),
            webhook: None,
        };
        assert_eq!(notify(&told, &message()), [""; 0]);
        assert_eq!(std::fs::read_to_string(place).unwrap(), message().text);
        let fails = Notify {
            command: Some(vec!["false".to_owned()]),
            // Nobody listens there.
            webhook: Some("http://127.0.0.1:1/secret".to_owned()),
        };
        let errors = notify(&fails, &message());
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[0].contains("`false` failed"), "{errors:?}");
        assert!(!errors[1].contains("secret"), "{errors:?}");
    }

    #[test]
    fn a_web_server_gets_json() {
        testkit::require_tool!("curl");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut seen = Vec::new();
            let mut buffer = [0; 4096];
            // The message is the last of what is sent.
            while !seen.ends_with(b"}") {
                let length = stream.read(&mut buffer).unwrap();
                seen.extend(&buffer[..length]);
            }
            stream
                .write_all(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
            String::from_utf8(seen).unwrap()
        });
        let told = Notify {
            command: None,
            webhook: Some(format!("http://{address}/hook")),
        };
        assert_eq!(notify(&told, &message()), [""; 0]);
        let seen = server.join().unwrap();
        assert!(seen.starts_with("POST /hook HTTP/1.1\r\n"), "{seen}");
        let body = seen.split("\r\n\r\n").nth(1).unwrap();
        assert_eq!(body, serde_json::to_string(&message()).unwrap());
    }
}
