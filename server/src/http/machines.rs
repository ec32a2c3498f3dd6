//! Bought machines: the work that there is for them, what they are, what they cost, and who buys them.

use super::{App, JsonResult, auth::User, request_body::Body};
use sojourn_core::request;
use sojourn_protocol::{
    demand::{DemandView, SpeedsView},
    machines::{
        CostsView, DrainRequest, LeaderAnswer, LeaderRequest, MachinesAnswer, MachinesRequest,
    },
};

/// The work that there is for machines, and the bought machines that are there for it.
#[utoipa::path(
    get,
    path = "/v1/demand",
    operation_id = "demand",
    responses((status = 200, description = "The work, by job and workload.", body = DemandView)),
    security(("admin" = []))
)]
pub(super) async fn demand(app: App, _: User) -> JsonResult<DemandView> {
    app.answer(request::GetDemand {}).await
}

/// The cost of bought machines, by machine, job and trial.
#[utoipa::path(
    get,
    path = "/v1/costs",
    operation_id = "costs",
    responses((status = 200, description = "All costs up to now.", body = CostsView)),
    security(("admin" = []))
)]
pub(super) async fn costs(app: App, _: User) -> JsonResult<CostsView> {
    app.answer(request::GetCosts {}).await
}

/// How fast bought machines are, by their type, and what the last of each cost.
#[utoipa::path(
    get,
    path = "/v1/speeds",
    operation_id = "speeds",
    responses((status = 200, description = "The types of machines that were bought.", body = SpeedsView)),
    security(("admin" = []))
)]
pub(super) async fn speeds(app: App, _: User) -> JsonResult<SpeedsView> {
    app.answer(request::GetSpeeds {}).await
}

/// Says which machines were bought, and which have ended.
#[utoipa::path(
    post,
    path = "/v1/machines",
    operation_id = "reportMachines",
    request_body = MachinesRequest,
    responses((status = 200, description = "It is written down.", body = MachinesAnswer)),
    security(("admin" = []))
)]
pub(super) async fn report(
    app: App,
    _: User,
    Body(request): Body<MachinesRequest>,
) -> JsonResult<MachinesAnswer> {
    app.answer(request::ReportMachines { machines: request.machines }).await
}

/// Gives machines back: their hosts get nothing more, and end.
#[utoipa::path(
    post,
    path = "/v1/machines/drain",
    operation_id = "drainMachines",
    request_body = DrainRequest,
    responses((status = 200, description = "Their hosts are told.", body = MachinesAnswer)),
    security(("admin" = []))
)]
pub(super) async fn drain(
    app: App,
    _: User,
    Body(request): Body<DrainRequest>,
) -> JsonResult<MachinesAnswer> {
    app.answer(request::DrainMachines { request }).await
}

/// Asks to be the only process of its kind that acts, or to go on as such.
#[utoipa::path(
    post,
    path = "/v1/leader",
    operation_id = "lead",
    request_body = LeaderRequest,
    responses((status = 200, description = "Who leads.", body = LeaderAnswer)),
    security(("admin" = []))
)]
pub(super) async fn lead(
    app: App,
    _: User,
    Body(request): Body<LeaderRequest>,
) -> JsonResult<LeaderAnswer> {
    app.answer(request::Lead { request }).await
}
