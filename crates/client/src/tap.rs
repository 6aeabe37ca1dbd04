//! Listening to what goes over the wire.

/// Names and values of headers, in order.
pub type Headers = Vec<(String, String)>;

/// A request that is about to leave.
#[derive(Debug, Clone)]
pub struct Sent<'a> {
    /// What the caller calls this exchange.
    pub title: &'a str,
    /// The HTTP method.
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// The headers that the client means to send, `Host` first.
    pub headers: &'a Headers,
    /// The body.
    pub body: Option<&'a [u8]>,
}

/// Whoever listens to exchanges. Those over gRPC are not told.
pub trait Tap: Send + Sync {
    /// A request leaves. What comes of it is told to the exchange.
    fn begin(&self, sent: Sent<'_>) -> Box<dyn Exchange>;
}

/// One exchange, from its request to its end. Frames are told when the caller takes them, not when their bytes arrive,
/// so an exchange that the caller makes between two frames stands between them.
pub trait Exchange: Send + Sync {
    /// A whole answer came.
    fn answered(&mut self, status: u16, headers: &Headers, body: &[u8]);
    /// A stream began.
    fn opened(&mut self, status: u16, headers: &Headers);
    /// The caller took a frame.
    fn frame(&mut self, data: &str);
    /// The caller has something to say about the stream.
    fn note(&mut self, text: &str);
    /// The stream ended, or the caller closed it.
    fn ended(&mut self);
    /// No answer came, or the stream broke.
    fn failed(&mut self, why: &str);
}
