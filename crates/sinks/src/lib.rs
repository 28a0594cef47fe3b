//! The finality sinks: the only code in the product that causes an effect, each effect spending a
//! [`Permit`](lychgate_gate::Permit). They never import each other.
//!
//! - [`mcp`]: a call of an MCP server over stdio

pub mod mcp;
