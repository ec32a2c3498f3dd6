//! Bought machines: the work that there is for them, what they are, what they cost, and who buys them.

use super::{App, JsonResult, auth::User, request_body::Body};
use sojourn_core::request;
use sojourn_protocol::{
    demand::{DemandView, SpeedsView},
    machines::{
        CostsView, DrainRequest, LeaderAnswer, LeaderRequest, MachinesAnswer, MachinesRequest,
    },
};

pub(super) async fn demand(app: App, _: User) -> JsonResult<DemandView> {
    app.answer(request::GetDemand {}).await
}

pub(super) async fn costs(app: App, _: User) -> JsonResult<CostsView> {
    app.answer(request::GetCosts {}).await
}

pub(super) async fn speeds(app: App, _: User) -> JsonResult<SpeedsView> {
    app.answer(request::GetSpeeds {}).await
}

pub(super) async fn report(
    app: App,
    _: User,
    Body(request): Body<MachinesRequest>,
) -> JsonResult<MachinesAnswer> {
    app.answer(request::ReportMachines { machines: request.machines }).await
}

pub(super) async fn drain(
    app: App,
    _: User,
    Body(request): Body<DrainRequest>,
) -> JsonResult<MachinesAnswer> {
    app.answer(request::DrainMachines { request }).await
}

pub(super) async fn lead(
    app: App,
    _: User,
    Body(request): Body<LeaderRequest>,
) -> JsonResult<LeaderAnswer> {
    app.answer(request::Lead { request }).await
}
