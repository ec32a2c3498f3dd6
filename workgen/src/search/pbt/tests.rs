//! A population comes to the same whatever the order of arrival, and clones' settings are of the space.

use super::{Decided, Exploit, Member, MemberEnd, Replaces, decide, explore};
use crate::search::{Trial, given, stopping::Decision, trials};
use proptest::prelude::*;
use sojourn_protocol::{
    ids::TrialId,
    jobfile,
    spec::{Architecture, Goal, JobSpec, Pbt},
};

const SEED: u64 = 7;

fn pbt(trials: u32, interval: u32, quantile: f64) -> Pbt {
    Pbt { trials, interval, quantile, ..Pbt::default() }
}

fn member(trial: u32, pbt: &Pbt, epochs: u32) -> Member {
    Member {
        trial: TrialId(trial),
        replaces: None,
        allowed: pbt.interval.min(epochs),
        epochs,
        waits: false,
        values: Vec::new(),
        end: None,
    }
}

fn first(pbt: &Pbt, epochs: u32) -> Vec<Member> {
    (0..pbt.trials).map(|trial| member(trial, pbt, epochs)).collect()
}

fn ask(pbt: &Pbt, members: &[Member]) -> Decided {
    decide(pbt, Goal::Min, SEED, members, &|_, _| true)
}

/// A member trains its generation, which comes to this.
fn evaluated(member: &mut Member, value: f64) {
    member.values.push(value);
    member.waits = member.allowed < member.epochs;
    if !member.waits {
        member.end = Some(MemberEnd::Finished);
    }
}

fn go_on(trial: u32, epochs: u32, why: &str) -> Decision {
    Decision::Continue { trial: TrialId(trial), epochs, why: why.into() }
}

#[test]
fn who_is_certainly_not_among_the_worst_goes_on_at_once() {
    let pbt = pbt(5, 2, 0.2);
    let mut members = first(&pbt, 6);
    evaluated(&mut members[3], 3.0);
    assert_eq!(ask(&pbt, &members), Decided::default(), "all others may be better");
    evaluated(&mut members[1], 1.0);
    let on = go_on(1, 4, "at least 1 of 5 are worse after 2 epochs");
    assert_eq!(ask(&pbt, &members).decisions, [on]);
    (members[1].allowed, members[1].waits) = (4, false);
    evaluated(&mut members[1], 0.5);
    for (trial, value) in [(0, 0.0), (2, 2.0)] {
        evaluated(&mut members[trial], value);
    }
    let decided = ask(&pbt, &members);
    assert_eq!(decided.decisions.len(), 2, "1 waits a generation ahead: {decided:?}");
    assert!(decided.exploits.is_empty(), "4 may be worse than 3");
    members[4].end = Some(MemberEnd::Failed);
    let decided = ask(&pbt, &members);
    assert_eq!(decided.decisions[2..], [go_on(3, 4, "place 4 of 5 after 2 epochs")], "{decided:?}");
    assert_eq!(
        decided.why,
        "after 2 epochs 1 trial is replaced: the worst of 5 go on from the best"
    );
    let replaces = Replaces { trial: TrialId(4), from: TrialId(0), generation: 1 };
    assert_eq!(decided.exploits, [Exploit { replaces, epochs: 2, allowed: 4 }]);
}

#[test]
fn a_replaced_trial_ends_and_says_who_goes_on_in_its_place() {
    let pbt = pbt(2, 1, 0.5);
    let mut members = first(&pbt, 3);
    evaluated(&mut members[0], f64::NAN);
    evaluated(&mut members[1], 1.0);
    let decided = ask(&pbt, &members);
    assert_eq!(decided.decisions, [go_on(1, 2, "place 1 of 2 after 1 epoch")]);
    let replaces = Some(decided.exploits[0].replaces);
    members.push(Member { replaces, allowed: 2, values: vec![1.0], ..member(2, &pbt, 3) });
    let why = "place 2 of 2 after 1 epoch: trial 2 goes on from trial 1 in its place".to_owned();
    let stop = Decision::Stop { trial: TrialId(0), why };
    let missed = go_on(1, 2, "nobody takes its place after 1 epoch");
    assert_eq!(ask(&pbt, &members).decisions, [stop, missed]);
}

#[test]
fn nobody_is_replaced_where_nobody_can_be_cloned() {
    let pbt = pbt(4, 1, 0.25);
    let mut members = first(&pbt, 2);
    for (member, value) in members.iter_mut().zip([4.0, 3.0, 2.0, 1.0]) {
        evaluated(member, value);
    }
    let none = decide(&pbt, Goal::Min, SEED, &members, &|_, _| false);
    assert_eq!((none.decisions.len(), none.exploits.len()), (4, 0));
    for member in &mut members {
        member.values = vec![f64::NAN];
    }
    let none = ask(&pbt, &members);
    assert_eq!((none.decisions.len(), none.exploits.len()), (4, 0), "nothing is any good");
}

#[test]
fn so_many_are_replaced_as_the_quantile_says() {
    let of = |quantile, members| pbt(members, 1, quantile).replaced_of(members);
    assert_eq!([of(0.2, 10), of(0.2, 14), of(0.2, 4), of(0.2, 2)], [2, 2, 1, 0]);
    assert_eq!([of(0.5, 5), of(0.29, 100), of(0.1, 30), of(0.3, 10)], [2, 29, 3, 3]);
}

/// The outcome of each trial in each generation, whenever it is trained.
#[derive(Debug, Clone)]
struct Course {
    values: Vec<u8>,
    goal: Goal,
}

/// The outcome of one generation of a trial.
enum Comes {
    To(f64),
    Error,
    /// The target, before its end.
    Target,
}

impl Course {
    fn of(&self, trial: TrialId, generation: usize) -> Comes {
        let at = (usize::try_from(trial.0).unwrap() * 7 + generation * 3) % self.values.len();
        match self.values[at] {
            0..=9 => Comes::Error,
            10..=13 => Comes::Target,
            14..=24 => Comes::To(f64::NAN),
            other => Comes::To(f64::from(other / 16)),
        }
    }

    /// The whole search, where `picks` say who trains next and how much of what is decided is carried out before a restart.
    fn run(&self, pbt: &Pbt, epochs: u32, picks: &[u16]) -> Vec<Member> {
        let mut members = first(pbt, epochs);
        let mut picks = picks.iter().copied().cycle();
        let mut pick = |below: usize| usize::from(picks.next().unwrap()) % below;
        for _ in 0..100_000 {
            let busy: Vec<usize> = (0..members.len())
                .filter(|at| members[*at].end.is_none() && !members[*at].waits)
                .collect();
            if !busy.is_empty() {
                let member = &mut members[busy[pick(busy.len())]];
                match self.of(member.trial, member.values.len()) {
                    Comes::To(value) => evaluated(member, value),
                    Comes::Error => member.end = Some(MemberEnd::Failed),
                    Comes::Target => member.end = Some(MemberEnd::Finished),
                }
            }
            loop {
                let decided = decide(pbt, self.goal, SEED, &members, &|_, _| true);
                if decided == Decided::default() {
                    break;
                }
                // Carried out up to there, and then asked anew, as after a restart.
                let all = decided.decisions.len();
                let until = pick(all + 1) + 1;
                for decision in decided.decisions.into_iter().take(until) {
                    carry_out(&mut members, decision);
                }
                if until > all {
                    add(&mut members, &decided.exploits);
                }
            }
            if members.iter().all(|member| member.end.is_some()) {
                return members;
            }
        }
        panic!("it doesn't end: {members:?}");
    }
}

fn carry_out(members: &mut [Member], decision: Decision) {
    match decision {
        Decision::Continue { trial, epochs, .. } => {
            let member = &mut members[usize::try_from(trial.0).unwrap()];
            assert!(member.waits && epochs > member.allowed && epochs <= member.epochs);
            (member.allowed, member.waits) = (epochs, false);
        }
        Decision::Stop { trial, .. } => {
            let member = &mut members[usize::try_from(trial.0).unwrap()];
            assert!(member.waits);
            (member.end, member.waits) = (Some(MemberEnd::Finished), false);
        }
    }
}

fn add(members: &mut Vec<Member>, exploits: &[Exploit]) {
    for exploit in exploits {
        let trial = TrialId(u32::try_from(members.len()).unwrap());
        let from = &members[usize::try_from(exploit.replaces.from.0).unwrap()];
        let generations = usize::try_from(exploit.replaces.generation).unwrap();
        assert!(from.values.len() <= generations + 1, "its checkpoint is kept");
        members.push(Member {
            trial,
            replaces: Some(exploit.replaces),
            allowed: exploit.allowed,
            epochs: from.epochs,
            waits: false,
            values: from.values[..generations].to_vec(),
            end: None,
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_arrival_comes_to_the_same_population(
        (trials, interval, epochs) in (2u32..12, 1u32..4, 2u32..12),
        quantile in prop::sample::select(vec![0.2, 0.25, 0.34, 0.5]),
        values in prop::collection::vec(any::<u8>(), 1..80),
        maximize in any::<bool>(),
        one in prop::collection::vec(any::<u16>(), 1..60),
        other in prop::collection::vec(any::<u16>(), 1..60),
    ) {
        let goal = if maximize { Goal::Max } else { Goal::Min };
        let course = Course { values, goal };
        let pbt = pbt(trials, interval, quantile);
        let bits = |members: Vec<Member>| -> Vec<(Member, Vec<u64>)> {
            members
                .into_iter()
                .map(|mut of| {
                    let values = std::mem::take(&mut of.values);
                    (of, values.iter().map(|value| value.to_bits()).collect())
                })
                .collect()
        };
        let (one, other) = (course.run(&pbt, epochs, &one), course.run(&pbt, epochs, &other));
        for of in one.iter().filter_map(|member| member.replaces) {
            prop_assert!(of.generation * interval < epochs);
        }
        prop_assert_eq!(bits(one), bits(other));
    }
}

fn job(models: &str, training: &str, search: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [1, 8, 8]\n{models}\n[training]\nepochs = 9\n{training}\n[search]\nmethod = \"pbt\"\ntrials = 12\n{search}\n"
    );
    jobfile::parse(&text).unwrap()
}

const MLP: &str = "[[model]]\narch = \"mlp\"\nhidden = { choice = [[64], [32], [16]] }\ndropout = { uniform = [0.0, 0.5] }";

/// A checkpoint fits a model of the same layers.
fn same_layers<'a>(parent: &'a Trial) -> impl FnMut(&Trial) -> bool + 'a {
    let hidden = |of: &Trial| match &of.config.model {
        Architecture::Mlp(mlp) => mlp.hidden.clone(),
        other => panic!("{other:?}"),
    };
    move |trial| hidden(trial) == hidden(parent)
}

#[test]
fn clones_have_settings_of_the_space_near_those_of_the_other() {
    let training = "batch_size = { choice = [16, 64, 32] }\nclip_norm = { uniform = [0.5, 2.0], step = 0.5 }\noptimizer = { name = { choice = [\"adam\", \"adamw\"] }, lr = { log_uniform = [1e-4, 1e-1] }, weight_decay = { normal = [0.1, 0.05], truncate = [0.0, 0.15] } }";
    let spec = job(MLP, training, "constraints = [\"lr * batch_size < 1\"]");
    let (mut moved, mut names) = (0, 0);
    for parent in trials(&spec).unwrap() {
        for generation in 1..20 {
            let mut fits = same_layers(&parent);
            let trial = explore(&spec, &parent, (TrialId(3), generation), 0.0, &mut fits);
            let of = &trial.choices;
            assert_eq!(given(&spec, of).unwrap(), trial);
            let (was, now) = (&parent.config.training, &trial.config.training);
            let near = |was: f64, now: f64, low: f64, high: f64| {
                [0.8, 1.2].iter().any(|factor| now == (was * factor).clamp(low, high))
            };
            assert!(near(was.optimizer.lr, now.optimizer.lr, 1e-4, 1e-1), "{parent:?} {trial:?}");
            let decay = (was.optimizer.weight_decay, now.optimizer.weight_decay);
            assert!(near(decay.0, decay.1, 0.0, 0.15));
            assert_eq!(was.optimizer.name, now.optimizer.name, "only drawn anew");
            let sizes = [16, 32, 64];
            let at = |of: u32| sizes.iter().position(|size| *size == of).unwrap();
            let (before, after) = (at(was.batch_size), at(now.batch_size));
            assert!(before.abs_diff(after) == 1 || (before == after && before != 1));
            moved += u32::from(before != after);
            let drawn = explore(&spec, &parent, (TrialId(3), generation), 1.0, &mut fits);
            assert_eq!(given(&spec, &drawn.choices).unwrap(), drawn);
            names += u32::from(drawn.config.training.optimizer.name != was.optimizer.name);
            assert!(same_layers(&parent)(&drawn));
        }
    }
    assert!(moved > 50 && names > 50, "{moved} {names}");
}

#[test]
fn numbers_with_steps_move_by_a_step_at_least() {
    let training = "batch_size = { int = [2, 5] }\noptimizer = { name = \"sgd\", lr = 0.1, momentum = { uniform = [0.0, 0.3], step = 0.1 } }";
    let spec = job("[[model]]\narch = \"mlp\"\nhidden = [4]", training, "");
    let (mut lower, mut higher) = (0, 0);
    for parent in trials(&spec).unwrap() {
        for replaced in 0..40 {
            let trial = explore(&spec, &parent, (TrialId(replaced), 1), 0.0, &mut |_| true);
            let (was, now) = (parent.config.training.batch_size, trial.config.training.batch_size);
            match (was, now) {
                (2, 2) | (5, 5) => {}
                _ => assert_eq!(was.abs_diff(now), 1, "{was} {now}"),
            }
            let rate = |of: &Trial| of.config.training.optimizer.momentum;
            let steps = ((rate(&parent) - rate(&trial)) * 10.0).round();
            assert!(steps.abs() <= 1.0, "{parent:?} {trial:?}");
            (lower, higher) = (lower + u32::from(now < was), higher + u32::from(now > was));
        }
    }
    assert!(lower > 50 && higher > 50, "{lower} {higher}");
}

#[test]
fn where_nothing_fits_the_settings_stay() {
    let spec = job(MLP, "optimizer = { name = \"adam\", lr = { uniform = [0.1, 0.2] } }", "");
    let parent = trials(&spec).unwrap().swap_remove(4);
    let same = explore(&spec, &parent, (TrialId(1), 1), 0.5, &mut |_| false);
    assert_eq!(same, parent);
    let mut asked = 0;
    let mut fits_once = |_: &Trial| {
        asked += 1;
        asked == 1
    };
    let same = explore(&spec, &parent, (TrialId(1), 1), 0.5, &mut fits_once);
    assert_eq!(same, parent, "a combination is drawn so often, and then no more");
    assert!((1_000..1_100).contains(&asked), "{asked}");
}
