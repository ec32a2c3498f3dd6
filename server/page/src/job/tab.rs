//! The tabs of a job's page, each with an address of its own.

use maud::{Markup, html};
use sojourn_protocol::ids::JobId;

/// A tab of a job's page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// Whether it goes well, which trial leads, and how fast it goes.
    Overview,
    /// The leader board.
    Trials,
    /// Learning curves, and settings against the metric.
    Charts,
    /// Hops and leases.
    Machines,
    /// The history of the job.
    Events,
    /// The job as submitted.
    File,
}

impl Tab {
    /// All tabs, from left to right.
    pub const ALL: [Self; 6] =
        [Self::Overview, Self::Trials, Self::Charts, Self::Machines, Self::Events, Self::File];

    /// The last word of the tab's address.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Trials => "trials",
            Self::Charts => "charts",
            Self::Machines => "machines",
            Self::Events => "events",
            Self::File => "file",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Trials => "Trials",
            Self::Charts => "Charts",
            Self::Machines => "Machines",
            Self::Events => "Events",
            Self::File => "Job file",
        }
    }

    /// The tab with this word in its address; none of the overview, whose address is the job's own.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tab| *tab != Self::Overview && tab.name() == name)
    }

    /// The tab's address.
    #[must_use]
    pub fn address(self, job: JobId) -> String {
        match self {
            Self::Overview => format!("/jobs/{job}"),
            _ => format!("/jobs/{job}/{}", self.name()),
        }
    }
}

/// The links to all tabs. `here`: the one that is shown.
pub(super) fn tabs(job: JobId, here: Tab) -> Markup {
    html! {
        nav.tabs aria-label="Parts of the job" {
            @for tab in Tab::ALL {
                a href=(tab.address(job)) aria-current=[(tab == here).then_some("page")] { (tab.title()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tab_has_an_address_and_the_address_has_its_tab() {
        for tab in Tab::ALL {
            let address = tab.address(JobId(7));
            let found = address.strip_prefix("/jobs/7/").map(|name| Tab::of(name).unwrap());
            assert_eq!(found.unwrap_or(Tab::Overview), tab, "{address}");
        }
        assert_eq!([Tab::of("overview"), Tab::of("x")], [None, None]);
    }
}
