//! A wire between a process and a database that can be cut.

use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Whole,
    /// Nothing comes through, and nobody is told. What was on its way comes later.
    Silent,
    /// All connections are reset, and so is each new one.
    Cut,
}

/// A TCP port that leads to a unix socket.
pub struct Wire {
    /// The port, on 127.0.0.1.
    pub port: u16,
    line: watch::Sender<Line>,
}

impl Wire {
    /// A wire to a socket.
    pub async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (line, lines) = watch::channel(Line::Whole);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(carry(stream, socket.clone(), lines.clone()));
            }
        });
        Self { port, line }
    }

    /// Where a database behind it is.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://a2a@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Nothing comes through any more, and nobody is told.
    pub fn fall_silent(&self) {
        self.line.send_replace(Line::Silent);
    }

    /// Resets all connections, and each new one.
    pub fn cut(&self) {
        self.line.send_replace(Line::Cut);
    }

    /// Carries again; also what was on its way when it fell silent.
    pub fn mend(&self) {
        self.line.send_replace(Line::Whole);
    }
}

async fn carry(mut near: TcpStream, socket: PathBuf, mut lines: watch::Receiver<Line>) {
    let _ = near.set_nodelay(true);
    let mut opened = lines.clone();
    {
        let carried = async {
            opened.wait_for(|line| *line == Line::Whole).await.ok()?;
            let mut far = UnixStream::connect(socket).await.ok()?;
            let (from_near, to_near) = near.split();
            let (from_far, to_far) = far.split();
            tokio::select! {
                () = copy(from_near, to_far, opened.clone()) => {}
                () = copy(from_far, to_near, opened.clone()) => {}
            }
            Some(())
        };
        tokio::select! {
            _ = lines.wait_for(|line| *line == Line::Cut) => {}
            _ = carried => {}
        }
    }
    let _ = near.set_zero_linger();
}

async fn copy(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut lines: watch::Receiver<Line>) {
    let mut piece = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        if lines.wait_for(|line| *line == Line::Whole).await.is_err() || to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
