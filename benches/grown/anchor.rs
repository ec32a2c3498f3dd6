//! The parameters as one value of a database: each process gets it, merges a result into it, sets it again.

use crate::{Shape, postgres::Postgres, redis::Redis, result_file};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::Instant,
};

/// Makes this program be one of those processes.
pub(crate) const FLAG: &str = "--merge-in-database";
/// Bytes of 4,972,746 numbers.
pub(crate) const VALUE: usize = 4_972_746 * 4;
/// Bytes before them in the stored value: how many updates are in it.
pub(crate) const COUNT: usize = 8;
const ALPHA: f32 = 0.95;

/// A database that runs.
pub(crate) enum Database {
    /// With transactions, or as the authors did, who let updates be lost.
    Redis {
        redis: Redis,
        lossless: bool,
    },
    Postgres(Postgres),
}

/// A connection that changes one model's value.
pub(crate) trait Model {
    /// Gets it, changes it, sets it.
    fn update(&mut self, model: u32, change: impl Fn(&mut [u8]));
}

impl Database {
    /// The databases that this machine has.
    pub(crate) fn all() -> Vec<Self> {
        let redis = [true, false].map(|lossless| Self::Redis { redis: Redis::start(), lossless });
        redis.into_iter().chain(Postgres::start().map(Self::Postgres)).collect()
    }

    /// The name of the database and its way to merge, as figures show it.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::Redis { lossless: true, .. } => "get, merge, set in Redis (everysec; WATCH)",
            Self::Redis { lossless: false, .. } => {
                "get, merge, set in Redis (everysec; updates may be lost)"
            }
            Self::Postgres(_) => "SELECT FOR UPDATE, merge, UPDATE in PostgreSQL",
        }
    }

    fn arguments(&self) -> [String; 2] {
        match self {
            Self::Redis { redis, lossless: true } => ["redis-watch".to_owned(), redis.url()],
            Self::Redis { redis, lossless: false } => ["redis".to_owned(), redis.url()],
            Self::Postgres(postgres) => ["postgres".to_owned(), postgres.place()],
        }
    }

    /// Sets every model to zeros, and gives how many updates it then has.
    fn reset(&self, models: u32) {
        let zeros = vec![0; COUNT + VALUE];
        (0..models).for_each(|model| match self {
            Self::Redis { redis, .. } => redis.set(model, &zeros),
            Self::Postgres(postgres) => postgres.set(model, &zeros),
        });
    }

    fn updates(&self, model: u32) -> u64 {
        let value = match self {
            Self::Redis { redis, .. } => redis.get(model),
            Self::Postgres(postgres) => postgres.get(model),
        };
        u64::from_le_bytes(value[..COUNT].try_into().unwrap())
    }

    /// Has processes merge all results that lie in a folder.
    pub(crate) fn seconds_per_result(&self, shape: Shape, processes: u32, folder: &Path) -> f64 {
        self.reset(shape.models);
        let start = |number: u32| {
            let numbers = [shape.models, shape.models * shape.results, number, processes];
            let child = Command::new(std::env::current_exe().unwrap())
                .arg(FLAG)
                .args(self.arguments())
                .arg(folder)
                .args(numbers.map(|number| number.to_string()))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn();
            ready(child.unwrap())
        };
        let mut children: Vec<Child> = (0..processes).map(start).collect();
        let begun = Instant::now();
        for child in &mut children {
            child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        }
        for mut child in children {
            assert!(child.wait().unwrap().success(), "a process merges to its end");
        }
        let took = begun.elapsed().as_secs_f64();
        let all = u64::from(shape.models * shape.results);
        let had: u64 = (0..shape.models).map(|model| self.updates(model)).sum();
        if matches!(self, Self::Redis { lossless: false, .. }) {
            eprintln!("{}, {processes}: {} of {all} updates were lost", self.words(), all - had);
        } else {
            assert_eq!(had, all, "no update is lost");
        }
        took / f64::from(shape.models * shape.results)
    }
}

fn ready(mut child: Child) -> Child {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n", "a process has its connection");
    child
}

/// One of the processes: merges every so-manieth result into its model.
pub(crate) fn work(arguments: &[String]) {
    let [kind, place, folder, numbers @ ..] = arguments else { panic!("{arguments:?}") };
    let numbers: Vec<u32> = numbers.iter().map(|number| number.parse().unwrap()).collect();
    let [models, results, first, step] = numbers[..] else { panic!("{arguments:?}") };
    let mine = (first..results).step_by(usize::try_from(step).unwrap());
    match kind.as_str() {
        "redis-watch" => merge(Redis::connect(place, true), folder, models, mine),
        "redis" => merge(Redis::connect(place, false), folder, models, mine),
        _ => merge(Postgres::connect(place), folder, models, mine),
    }
}

fn merge(mut model: impl Model, folder: &str, models: u32, mine: impl Iterator<Item = u32>) {
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for number in mine {
        let result = fs::read(result_file(Path::new(folder), number)).unwrap();
        // The numbers are what a checkpoint ends with.
        let result = &result[result.len() - VALUE..];
        model.update(number % models, |value| {
            let (count, parameters) = value.split_at_mut(COUNT);
            let updates = u64::from_le_bytes((&*count).try_into().unwrap()) + 1;
            count.copy_from_slice(&updates.to_le_bytes());
            let pairs = parameters.chunks_exact_mut(4).zip(result.chunks_exact(4));
            for (ours, theirs) in pairs {
                let [w, c] = [&*ours, theirs].map(|n| f32::from_le_bytes([n[0], n[1], n[2], n[3]]));
                ours.copy_from_slice(&(ALPHA * w + (1.0 - ALPHA) * c).to_le_bytes());
            }
        });
    }
}
