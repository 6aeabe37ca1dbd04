use std::process::ExitCode;

/// `workshop interop-agent`. The flags are the kit's.
#[derive(Debug, clap::Args)]
pub struct InteropAgent {
    /// Where to serve JSON-RPC and HTTP+JSON, on 127.0.0.1.
    #[arg(long = "httpPort", value_name = "PORT", default_value_t = 10102)]
    http_port: u16,
    /// Where to serve gRPC, on 127.0.0.1.
    #[arg(long = "grpcPort", value_name = "PORT", default_value_t = 11002)]
    grpc_port: u16,
}

#[cfg(not(feature = "interop"))]
impl InteropAgent {
    /// Says how to build it.
    pub fn run(&self) -> ExitCode {
        let Self { http_port, grpc_port } = self;
        let command = "cargo run -p workshop --features interop -- interop-agent";
        eprintln!("this build has no interop agent; {command} --httpPort {http_port} --grpcPort {grpc_port}");
        ExitCode::from(2)
    }
}

#[cfg(feature = "interop")]
impl InteropAgent {
    /// Serves the agent until it is stopped.
    pub fn run(&self) -> ExitCode {
        server::cli::logging(&std::env::var("RUST_LOG").unwrap_or_else(|_| "info".to_owned()));
        match self.serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("{why}");
                ExitCode::from(2)
            }
        }
    }

    #[tokio::main]
    async fn serve(&self) -> Result<(), String> {
        use std::sync::Arc;
        use std::time::Duration;

        use super::words;
        use crate::interop::Interop;

        let mut setup = server::Setup::new(Arc::new(Interop::new(Duration::from_secs(2))));
        Interop::set(&mut setup);
        let http = listener(self.http_port).await?;
        let grpc = listener(self.grpc_port).await?;
        let (port, grpc_port) = (http.local_addr().map_err(words)?.port(), grpc.local_addr().map_err(words)?.port());
        setup.grpc = Some(grpc);
        let signals = server::cli::Signals::new().map_err(words)?;
        println!("Interop agent is ready: http://127.0.0.1:{port}{}, gRPC on {grpc_port}", protocol::media::CARD_PATH);
        server::run(vec![http], setup, signals.any()).await.map_err(words)
    }
}

#[cfg(feature = "interop")]
async fn listener(port: u16) -> Result<tokio::net::TcpListener, String> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await;
    listener.map_err(|cause| format!("cannot listen on port {port}: {cause}"))
}
