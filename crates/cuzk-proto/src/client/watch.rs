//! Following a job.

use tonic::{Request, Streaming};

use super::{Client, ClientError, Repeat, error::Fault, patience::Patience};
use crate::v1::{ProofProgress, WatchProofRequest, proof_progress::State};

/// News of a job, through lost connections: after one, the present state comes again.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    job: String,
    stream: Streaming<ProofProgress>,
    ended: bool,
}

impl Watch {
    pub(super) async fn open(client: Client, job: String) -> Result<Self, ClientError> {
        let stream = subscribe(&client, &job).await?;
        Ok(Self { client, job, stream, ended: false })
    }

    /// The next state; none after that in which the job has ended.
    ///
    /// # Errors
    /// [`ClientError`], if the server cannot be reached for [`connect_limit`](super::ClientOptions::connect_limit) or
    /// refuses.
    pub async fn next(&mut self) -> Result<Option<ProofProgress>, ClientError> {
        if self.ended {
            return Ok(None);
        }
        let mut patience = Patience::new(self.client.options.connect_limit);
        loop {
            let fault = match self.stream.message().await {
                Ok(Some(progress)) => {
                    self.ended = matches!(progress.state(), State::Completed | State::Failed | State::Cancelled);
                    return Ok(Some(progress));
                }
                // The server has nothing more to say about a job that has not ended: it stops.
                Ok(None) => Fault::Lost("the stream ended before the job".into()),
                Err(status) => Fault::from(status),
            };
            let again =
                matches!(fault, Fault::NotSent(_) | Fault::Lost(_) | Fault::Refused(tonic::Code::Unavailable, _));
            if !again || !patience.pause(None).await {
                return Err(self.client.error("WatchProof", patience.spent().1, fault, &patience));
            }
            self.stream = subscribe(&self.client, &self.job).await?;
        }
    }
}

async fn subscribe(client: &Client, job: &str) -> Result<Streaming<ProofProgress>, ClientError> {
    // The time is that of opening the stream, which then lasts as long as the job does: no deadline in the request.
    let limit = Some(client.options.call_limit);
    client
        .call("WatchProof", limit, Repeat::Allowed, |client, _| async move {
            let request: Request<_> = client.request(WatchProofRequest { job_id: job.to_owned() }, None);
            client.engine.clone().watch_proof(request).await
        })
        .await
}
