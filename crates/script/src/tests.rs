mod about;
mod language;
mod payments_api;
