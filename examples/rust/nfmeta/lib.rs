// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors

//! NFs in Rust. `abi`: the shared bytes, safe code; `link`: a queue of a link, by
//! libnfmeta.

#![warn(missing_docs)]

pub mod abi;
pub mod link;

pub use link::{Burst, Error, Link, Packet};
