//! The made-up cloud behind the trait that programs buy by, with a clock that is passed in.

use super::cloud::FakeCloud;
use async_trait::async_trait;
use sojourn_fleet::cloud::{Cloud, CloudError, CloudMachine, Filled, Offers, Order, Pool};
use sojourn_protocol::{money::MicroUsd, time::UnixMillis};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A clock.
pub type Clock = Arc<dyn Fn() -> UnixMillis + Send + Sync>;

/// A cloud that several share. Each call is answered at once.
#[derive(Clone)]
pub struct FakeClient {
    cloud: Arc<Mutex<FakeCloud>>,
    clock: Clock,
}

impl FakeClient {
    /// A client of a cloud, which goes by this clock.
    #[must_use]
    pub fn new(cloud: Arc<Mutex<FakeCloud>>, clock: Clock) -> Self {
        Self { cloud, clock }
    }

    /// The cloud. Whoever panicked with it has left it whole: each call ends before another begins.
    pub fn lock(&self) -> MutexGuard<'_, FakeCloud> {
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> UnixMillis {
        (self.clock)()
    }
}

impl std::fmt::Debug for FakeClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeClient").field("cloud", &self.cloud).finish_non_exhaustive()
    }
}

#[async_trait]
impl Cloud for FakeClient {
    async fn offers(&self) -> Result<Offers, CloudError> {
        self.lock().offers(self.now())
    }

    async fn spot_price_at(
        &self,
        pool: &Pool,
        at: UnixMillis,
    ) -> Result<Option<MicroUsd>, CloudError> {
        self.lock().price_at(pool, at)
    }

    async fn machines(&self) -> Result<Vec<CloudMachine>, CloudError> {
        self.lock().machines(self.now())
    }

    async fn buy(&self, order: &Order) -> Result<Filled, CloudError> {
        self.lock().buy(self.now(), order)
    }

    async fn end(&self, _region: &str, instances: &[String]) -> Result<(), CloudError> {
        self.lock().end(self.now(), instances)
    }
}
