//! Grammar cases.
