//! placeholder
volta_testing::main!();
