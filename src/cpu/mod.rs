//! The executor on the host's processor.
