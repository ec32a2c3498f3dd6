//! Which machines to buy and which to give back.
//!
//! Pure: time, prices, demand and chance come in as arguments.
//!
//! | module | holds |
//! |---|---|
//! | [`cloud`] | what is asked of a cloud, and its answers |

pub mod cloud;
