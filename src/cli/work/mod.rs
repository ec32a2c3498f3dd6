//! `sojourn assimilate`. The other two commands of a machine that works for a server, `client` and `service`, are in
//! `sojourn-daemon`.

pub(crate) mod assimilate;
