//! A proxy that harms what goes through it, one request at a time.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What becomes of a request and its answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The request never arrives; the connection is closed.
    Drop,
    /// The request arrives, and its answer is lost.
    Lose,
    /// The request arrives twice; the answer to the second is what comes back.
    Repeat,
    /// The proxy answers 502 and passes nothing on.
    Refuse,
    /// The request arrives, and the proxy answers 502.
    Misreport,
    /// Only so many bytes of the answer come: in a stream, some of its events.
    Cut(usize),
    /// The answer comes late.
    Delay,
    /// The answer comes a few bytes at a time.
    Chop,
}

impl Fault {
    fn draw(dice: &mut StdRng, repeats: bool) -> Self {
        match dice.random_range(0..24) {
            0 => Self::Drop,
            1 => Self::Lose,
            2 if repeats => Self::Repeat,
            3 => Self::Refuse,
            4 => Self::Misreport,
            5 | 6 => Self::Cut(dice.random_range(0..3000)),
            7 | 8 => Self::Delay,
            9..12 => Self::Chop,
            _ => Self::None,
        }
    }
}

const BAD_GATEWAY: &[u8] = b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 24\r\n\
    Connection: close\r\n\r\n<html>Bad Gateway</html>";

/// Starts a proxy before an agent, and says where it is and which faults it has made.
pub async fn before(agent: SocketAddr, seed: u64, repeats: bool) -> (String, Arc<Mutex<Vec<Fault>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let made = Arc::new(Mutex::new(Vec::new()));
    let told = made.clone();
    tokio::spawn(async move {
        let mut dice = StdRng::seed_from_u64(seed);
        while let Ok((client, _)) = listener.accept().await {
            let fault = Fault::draw(&mut dice, repeats);
            told.lock().unwrap().push(fault);
            // A connection that breaks is what this is for.
            tokio::spawn(async move { drop(pass(client, agent, fault).await) });
        }
    });
    (url, made)
}

/// Passes one request on. Both connections are closed behind it.
async fn pass(mut client: TcpStream, agent: SocketAddr, fault: Fault) -> std::io::Result<()> {
    let request = read(&mut client).await?;
    let ask = async || {
        let mut agent = TcpStream::connect(agent).await?;
        agent.write_all(&request).await?;
        Ok::<_, std::io::Error>(agent)
    };
    match fault {
        Fault::Drop => return Ok(()),
        Fault::Refuse => return client.write_all(BAD_GATEWAY).await,
        Fault::Lose | Fault::Misreport => {
            // The agent has answered before the client hears anything.
            ask().await?.read_u8().await?;
            return if fault == Fault::Lose { Ok(()) } else { client.write_all(BAD_GATEWAY).await };
        }
        Fault::Repeat => {
            ask().await?.read_u8().await?;
        }
        Fault::Delay => tokio::time::sleep(Duration::from_millis(150)).await,
        Fault::None | Fault::Cut(_) | Fault::Chop => {}
    }
    let mut answer = ask().await?;
    let mut left = if let Fault::Cut(size) = fault { size } else { usize::MAX };
    let mut buffer = [0; 4096];
    let piece = if fault == Fault::Chop { 7 } else { buffer.len() };
    while left > 0 {
        let size = answer.read(&mut buffer[..piece.min(left)]).await?;
        if size == 0 {
            break;
        }
        client.write_all(&buffer[..size]).await?;
        left -= size;
    }
    Ok(())
}

/// A whole request, which asks for the connection to be closed.
async fn read(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = text.split("content-length: ").nth(1).and_then(|rest| rest.split('\r').next());
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    client.read_exact(&mut body).await?;
    let end = head.len() - 2;
    Ok([&head[..end], b"Connection: close\r\n\r\n", &body].concat())
}
