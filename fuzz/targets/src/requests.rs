//! The JSON of each request to the server, and of the answers that hosts and the command line read.

use crate::expect::round_trip;
use sojourn_protocol::{
    api::{
        CollectAnswer, CollectRequest, DeleteRequest, EnrolAnswer, EnrolRequest, EvaluateRequest,
        ExtendRequest, HeartbeatAnswer, HeartbeatRequest, MissingAnswer, MissingRequest,
        NoteRequest, PauseRequest, PlacementRequest, ReleaseAnswer, ReleaseRequest, ReportAnswer,
        RollbackRequest, SearchAnswer, SearchRequest, SearchView, SubmitAnswer, SubmitRequest,
        UploadState, WorkAnswer, WorkRequest,
    },
    assimilation::{
        LostRequest, NewVersion, OfferAnswer, RejectRequest, RenewRequest, TakeAnswer, TakeRequest,
    },
    direct::{DirectAnswer, DirectRequest},
    error::ApiError,
    machines::{DrainRequest, LeaderAnswer, LeaderRequest, MachinesAnswer, MachinesRequest},
    quotas::TokenQuotas,
    ranges::{LeadAnswer, LeadRequest, RangeResultRequest},
    report::Report,
    tokens::{NewToken, PageLinkRequest, RevokedToken, RotatedToken, TokenRequest, TokenView},
};

pub(crate) fn requests(input: &[u8]) -> bool {
    let mut taken = round_trip::<EnrolRequest>(input).is_some();
    taken |= round_trip::<TokenRequest>(input).is_some();
    taken |= round_trip::<TokenQuotas>(input).is_some();
    taken |= round_trip::<PageLinkRequest>(input).is_some();
    taken |= round_trip::<WorkRequest>(input).is_some();
    taken |= round_trip::<HeartbeatRequest>(input).is_some();
    taken |= round_trip::<ReleaseRequest>(input).is_some();
    taken |= round_trip::<Report>(input).is_some();
    taken |= round_trip::<DirectRequest>(input).is_some();
    taken |= round_trip::<MissingRequest>(input).is_some();
    taken |= round_trip::<CollectRequest>(input).is_some();
    taken |= round_trip::<SubmitRequest>(input).is_some();
    taken |= round_trip::<DeleteRequest>(input).is_some();
    taken |= round_trip::<EvaluateRequest>(input).is_some();
    taken |= round_trip::<PauseRequest>(input).is_some();
    taken |= round_trip::<ExtendRequest>(input).is_some();
    taken |= round_trip::<SearchRequest>(input).is_some();
    taken |= round_trip::<NoteRequest>(input).is_some();
    taken |= round_trip::<PlacementRequest>(input).is_some();
    taken |= round_trip::<RollbackRequest>(input).is_some();
    taken |= round_trip::<TakeRequest>(input).is_some();
    taken |= round_trip::<RenewRequest>(input).is_some();
    taken |= round_trip::<NewVersion>(input).is_some();
    taken |= round_trip::<RejectRequest>(input).is_some();
    taken |= round_trip::<LostRequest>(input).is_some();
    taken |= round_trip::<LeadRequest>(input).is_some();
    taken |= round_trip::<RangeResultRequest>(input).is_some();
    taken |= round_trip::<MachinesRequest>(input).is_some();
    taken |= round_trip::<DrainRequest>(input).is_some();
    taken |= round_trip::<LeaderRequest>(input).is_some();
    taken | answers(input)
}

fn answers(input: &[u8]) -> bool {
    let mut taken = round_trip::<EnrolAnswer>(input).is_some();
    taken |= round_trip::<NewToken>(input).is_some();
    taken |= round_trip::<TokenView>(input).is_some();
    taken |= round_trip::<RevokedToken>(input).is_some();
    taken |= round_trip::<RotatedToken>(input).is_some();
    taken |= round_trip::<WorkAnswer>(input).is_some();
    taken |= round_trip::<HeartbeatAnswer>(input).is_some();
    taken |= round_trip::<ReleaseAnswer>(input).is_some();
    taken |= round_trip::<ReportAnswer>(input).is_some();
    taken |= round_trip::<UploadState>(input).is_some();
    taken |= round_trip::<DirectAnswer>(input).is_some();
    taken |= round_trip::<MissingAnswer>(input).is_some();
    taken |= round_trip::<CollectAnswer>(input).is_some();
    taken |= round_trip::<SubmitAnswer>(input).is_some();
    taken |= round_trip::<SearchAnswer>(input).is_some();
    taken |= round_trip::<SearchView>(input).is_some();
    taken |= round_trip::<TakeAnswer>(input).is_some();
    taken |= round_trip::<OfferAnswer>(input).is_some();
    taken |= round_trip::<LeadAnswer>(input).is_some();
    taken |= round_trip::<LeaderAnswer>(input).is_some();
    taken |= round_trip::<MachinesAnswer>(input).is_some();
    taken |= round_trip::<ApiError>(input).is_some();
    taken
}
