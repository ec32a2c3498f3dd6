//! How large a JSON body may be, by address.

/// Most bytes of a body that grows with a job's shards or a host's cache: a job's manifest, the blobs that a submission
/// asks for, the list of a host's cache, the sums of an evaluation.
const MAX_JOB_BODY: usize = 16 << 20;
/// Most bytes of any other JSON body.
const MAX_BODY: usize = 1 << 20;

/// Addresses whose bodies grow with a job's shards or a host's cache.
const LARGE_BODIES: [&str; 7] = [
    "/v1/work",
    "/v1/results",
    "/v1/blobs/missing",
    "/v1/jobs",
    "/v1/assimilations/{lease}/lead",
    "/v1/assimilations/{lease}/range",
    "/v1/machines",
];

/// Most bytes of a JSON body that an address takes.
pub(super) fn body_limit(pattern: &str) -> usize {
    if LARGE_BODIES.contains(&pattern) { MAX_JOB_BODY } else { MAX_BODY }
}
