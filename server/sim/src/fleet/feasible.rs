//! Objections to a scenario that its file alone doesn't show: sums over a plan.

use super::{
    check::MAX_HOPS,
    job::SimJob,
    plan::Plan,
    quantity::{MAX_SPAN, float},
    scenario::HostGroup,
};

/// Remarks on what can be run but is hardly meant: sentences for people.
pub(crate) type Remarks = Vec<String>;

/// Can it be run to its end, as far as sums tell?
///
/// # Errors
/// What speaks against it.
pub(crate) fn of(plan: &Plan) -> Result<Remarks, String> {
    for job in &plan.jobs {
        if job.hops() > MAX_HOPS {
            let (name, hops) = (&job.name, job.hops());
            return Err(format!("`{name}` has {hops} hops: at most {MAX_HOPS} are simulated"));
        }
    }
    let (longest, words) = MAX_SPAN;
    if float(plan.bound.micros) > longest {
        let days = float(plan.bound.micros) / 86_400e6;
        return Err(format!(
            "no schedule of it is shorter than {days:.0} days, and at most {words}, are simulated: make hosts \
             faster or jobs smaller"
        ));
    }
    let mut remarks = Vec::new();
    for job in &plan.jobs {
        remarks.extend(shards_fit(plan, job)?);
    }
    remarks.extend(all_fit(plan)?);
    Ok(remarks)
}

/// A shard that is larger than a cache: a unit needs its whole shard on the host's disk.
fn shards_fit(plan: &Plan, job: &SimJob) -> Result<Remarks, String> {
    let shard = job.data.train.iter().map(|shard| shard.blob.bytes).max().unwrap_or(0);
    let present = plan.groups.iter().zip(1..).filter(|(group, _)| group.count > 0);
    let small = present.clone().filter(|(group, _)| group.cache.is_some_and(|of| of.0 < shard));
    let words = |(group, n): (&HostGroup, u32)| {
        let (name, cache) = (&job.name, group.cache.map_or(0, |cache| cache.0));
        let which = match group.name.as_str() {
            "" => String::new(),
            name => format!(" (`{name}`)"),
        };
        format!(
            "a shard of `{name}` has {shard} bytes, and the `cache` of hosts of group {n}{which} holds {cache}"
        )
    };
    let all = small.clone().count() == present.count();
    match (all, small.clone().next()) {
        (true, Some(first)) => {
            let cannot = if job.holders > 0 { "keep it" } else { "train on it" };
            Err(format!(
                "{}: nobody can {cannot}; say more `cache`, or more `shards`",
                words(first)
            ))
        }
        _ => {
            Ok(small.map(|group| format!("{}: they get none of its units", words(group))).collect())
        }
    }
}

/// Where shards are pinned, the caches of all hosts hold each of a job's once, and of all jobs, which may run at once,
/// `replicas` times if they can.
fn all_fit(plan: &Plan) -> Result<Option<String>, String> {
    let pinned = || plan.jobs.iter().filter(|job| job.holders > 0);
    let once = |job: &SimJob| -> u128 {
        job.data.train.iter().map(|shard| u128::from(shard.blob.bytes)).sum()
    };
    let largest = pinned().map(once).max().unwrap_or(0);
    let all: u128 = pinned().map(|job| once(job) * u128::from(job.holders)).sum();
    let present = plan.groups.iter().filter(|group| group.count > 0);
    let caches = present.map(|group| Some(u128::from(group.cache?.0) * u128::from(group.count)));
    let Some(caches) = caches.sum::<Option<u128>>() else { return Ok(None) };
    let holds = format!("the `cache` of all hosts together holds {caches} bytes");
    if caches < largest {
        let has = format!("the pinned shards of a job have {largest}");
        return Err(format!("{holds}, and {has}: nobody can keep some of them; say more `cache`"));
    }
    let has = format!("the pinned shards of all jobs have {all} on all their `replicas`");
    let remark = format!("{holds}, and {has}: while all run, some lie on fewer hosts, or on none");
    Ok((caches < all).then_some(remark))
}
