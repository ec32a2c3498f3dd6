//! Which machines to buy and which to give back.
//!
//! Pure: time, prices, demand and chance come in as arguments.
//!
//! | module | holds |
//! |---|---|
//! | [`cloud`] | what is asked of a cloud, and its answers |
//! | [`limits`] | what a fleet may have and cost at most |
//! | [`settings`] | what its owner chooses |
//! | [`planner`] | what to do now, and why |

pub mod cloud;
pub mod limits;
pub mod planner;
pub mod settings;
