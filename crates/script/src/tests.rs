mod language;
mod payments_api;
