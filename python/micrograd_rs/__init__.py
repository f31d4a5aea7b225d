"""micrograd's scalar engine and small networks, in Rust."""
