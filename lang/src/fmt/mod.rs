//! The one layout of a program.
