//! Rewards behind a web address: one request a batch.

use std::time::Duration;

use rlhf_lang::graph::Reward;
use serde_json::Value as Json;

use super::worker::Failure;
use super::{Results, all_fail, brief, number, object};

/// How often a request is made that the service did not answer in order.
const TRIES: u32 = 3;
/// The pause before the second request; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(250);
/// Where the answer is an object, its list stands under one of these names.
const NAMES: [&str; 2] = ["scores", "rewards"];

/// A service that is asked with POST. The body is a list of objects, one a call, with the arguments by
/// their names; the answer is a list of as many numbers, or an object with that list as `scores` or
/// `rewards`. `null` is none.
///
/// No connection, no answer within the timeout, and the statuses 429 and 5xx are tried again, three times
/// in all.
pub(super) struct Service {
    url: String,
    agent: ureq::Agent,
}

impl Service {
    pub(super) fn new(url: &str, timeout: Option<f64>) -> Service {
        let limit = timeout.and_then(|s| Duration::try_from_secs_f64(s).ok());
        let builder = ureq::AgentBuilder::new();
        let builder = match limit {
            Some(limit) => builder.timeout(limit),
            None => builder,
        };
        let (url, agent) = (url.to_string(), builder.build());
        Service { url, agent }
    }

    pub(super) fn score(&self, reward: &Reward, calls: &[Vec<Json>]) -> Results {
        if calls.is_empty() {
            return vec![];
        }
        let body = Json::Array(calls.iter().map(|call| object(reward, call)).collect());
        let mut pause = PAUSE;
        for left in (0..TRIES).rev() {
            match self.ask(&body) {
                Ok(values) if values.len() == calls.len() => {
                    let values = values.iter().map(|v| number(reward, v));
                    return values.enumerate().collect();
                }
                Ok(values) => {
                    let (given, wanted) = (values.len(), calls.len());
                    let what = format!("{} gave {given} numbers for {wanted} calls", self.url);
                    return all_fail(calls.len(), &Failure::plain(what));
                }
                Err(Refused { again: true, .. }) if left > 0 => {
                    std::thread::sleep(pause);
                    pause *= 2;
                }
                Err(refused) => {
                    let what = match refused.again {
                        true => format!("{} ({TRIES} times)", refused.what),
                        false => refused.what,
                    };
                    return all_fail(calls.len(), &Failure::plain(what));
                }
            }
        }
        // The last try returns.
        vec![]
    }

    fn ask(&self, body: &Json) -> Result<Vec<Json>, Refused> {
        let url = &self.url;
        let answer = match self.agent.post(url).send_json(body) {
            Ok(answer) => answer,
            Err(ureq::Error::Status(status, answer)) => {
                let said = answer.into_string().unwrap_or_default();
                let said = brief(said.trim().lines().next().unwrap_or_default());
                return Err(Refused {
                    what: format!("{url} answered with status {status}: {said}"),
                    again: status == 429 || status >= 500,
                });
            }
            Err(ureq::Error::Transport(error)) => {
                return Err(Refused {
                    what: format!("{url} did not answer: {}", reason(&error)),
                    again: true,
                });
            }
        };
        let wrong = |what: String| Refused { what, again: false };
        let mut answer: Json = answer.into_json().map_err(|e| match e.kind() {
            std::io::ErrorKind::TimedOut => Refused {
                what: format!("{url} did not answer in time"),
                again: true,
            },
            _ => wrong(format!("{url} answered with no JSON: {e}")),
        })?;
        let list = match &mut answer {
            Json::Object(object) => NAMES.iter().find_map(|name| object.remove(*name)),
            other => Some(other.take()),
        };
        match list {
            Some(Json::Array(values)) => Ok(values),
            _ => Err(wrong(format!(
                "{url} answered with no list of numbers, nor with one as `scores`"
            ))),
        }
    }
}

/// A request without a result.
struct Refused {
    what: String,
    /// The next one may have one.
    again: bool,
}

fn reason(error: &ureq::Transport) -> String {
    let said = error
        .message()
        .map_or_else(|| error.kind().to_string(), String::from);
    brief(&said)
}
