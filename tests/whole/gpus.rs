//! GPUs from the driver's list to a verdict, with stand-ins: an `nvidia-smi` that lists two, and a trainer
//! that trains on the CPU and says, where it was started for a GPU, that it is of another numeric class.

use crate::{
    site::{Site, program, spawn},
    support::script,
};
use serde_json::Value;
use std::{env, fs, path::Path, process::Command};

const GPUS: &str = "0, GPU-0aaa, 23034, NVIDIA Test\n1, GPU-1bbb, 23034, NVIDIA Test\n";
const TWO_KINDS: &str = "0, GPU-0aaa, 23034, NVIDIA Test\n1, GPU-1bbb, 81559, NVIDIA Other\n";

/// Puts the stand-ins into the folder; the driver lists these GPUs.
fn stand_ins(folder: &Path, gpus: &str) {
    fs::create_dir(folder.join("bin")).unwrap();
    script(&folder.join("bin/nvidia-smi"), &format!("printf '{gpus}'\n"));
    fs::create_dir(folder.join("torch")).unwrap();
    fs::write(folder.join("torch/libtorch_cuda.so"), "").unwrap();
    let real = program().with_file_name("sojourn-trainer");
    let (real, seen) = (real.display(), folder.join("seen"));
    let trainer = format!(
        r#"preloaded=$LD_PRELOAD
unset LD_PRELOAD
echo "$3 $4 $CUDA_VISIBLE_DEVICES $preloaded" >> '{}'
test -n "$3" || exec '{real}' "$@"
'{real}' "$1" "$2" | sed -u 's/"numeric_class":"......../"numeric_class":"cdacdacd/'
"#,
        seen.display()
    );
    script(&folder.join("trainer"), &trainer);
}

/// The command, where the stand-ins are found.
fn command(folder: &Path) -> Command {
    let mut command = Command::new(program());
    let path = env::var("PATH").unwrap();
    command
        .env("PATH", format!("{}:{path}", folder.join("bin").display()))
        .env("SOJOURN_TORCH", folder.join("torch"))
        .env("SOJOURN_TRAINER", folder.join("trainer"))
        .env_remove("SOJOURN_GPUS")
        .env_remove("CUDA_VISIBLE_DEVICES");
    command
}

/// Replays trial 0; the exit code, the answer, and what the trainers saw.
fn replay(site: &Site, job: &str, gpus: &str) -> (Option<i32>, Value, String) {
    let seen = site.path().join("seen");
    fs::write(&seen, "").unwrap();
    let mut command = command(site.path());
    command.args(["replay", job, "--trial", "0", "--gpus", gpus, "--json"]);
    command.args(["--server", &site.url]).env("SOJOURN_TOKEN", &site.token);
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let answer = serde_json::from_slice(&output.stdout);
    let answer = answer.unwrap_or_else(|_| panic!("no JSON; {error}"));
    (output.status.code(), answer, fs::read_to_string(&seen).unwrap())
}

#[test]
fn a_trial_trained_on_a_gpu_is_replayed_on_a_gpu() {
    let site = Site::start();
    stand_ins(site.path(), GPUS);
    let library = site.path().join("torch/libtorch_cuda.so");
    let library = library.display();
    let mut client = command(site.path());
    client
        .args(["client", "--server", &site.url, "--token", &site.enrolment, "--name", "gpus"])
        .arg("--data")
        .arg(site.path().join("gpus"))
        // The second alone, by its driver's number.
        .env("CUDA_VISIBLE_DEVICES", "1");
    let client = spawn(client, &site.path().join("gpus.log"));
    let job = site.submit(11, 1);
    site.wait(&job, |view| view["state"] == "finished");
    let hosts = site.json(&["hosts"]);
    assert_eq!(hosts[0]["devices"][0]["name"], "NVIDIA Test", "{hosts}");
    drop(client);
    let seen = fs::read_to_string(site.path().join("seen")).unwrap();
    let second = format!("--device cuda:0 GPU-1bbb {library}");
    assert_eq!(seen.lines().collect::<Vec<_>>(), [second], "one trainer, on the one GPU");

    // The CPU calculates otherwise, the first GPU doesn't.
    let (code, found, seen) = replay(&site, &job, "auto");
    assert_eq!((code, &found["verdict"]), (Some(0), &"identical".into()), "{found}");
    let first = format!("--device cuda:0 GPU-0aaa {library}");
    // The CPU is asked in each instruction set that it has.
    let seen: Vec<&str> = seen.lines().map(str::trim).collect();
    let (last, before) = seen.split_last().unwrap();
    assert_eq!(*last, first);
    assert!(!before.is_empty() && before.iter().all(|seen| seen.is_empty()), "{seen:?}");
    let (code, named, seen) = replay(&site, &job, "1");
    assert_eq!((code, &named["verdict"]), (Some(0), &"identical".into()), "{named}");
    assert!(seen.lines().all(|line| line.contains("GPU-1bbb")), "{seen}");
    let (code, cpu, _) = replay(&site, &job, "none");
    assert_eq!((code, &cpu["verdict"]), (Some(1), &"not-judgeable".into()), "{cpu}");
    assert!(cpu["reason"].as_str().unwrap().contains("cdacdacd"), "{cpu}");
}

#[test]
fn gpus_of_two_kinds_and_cores_beside_them_train_at_once() {
    let site = Site::start();
    stand_ins(site.path(), TWO_KINDS);
    let mut client = command(site.path());
    client
        .args(["client", "--server", &site.url, "--token", &site.enrolment, "--name", "mixed"])
        .args(["--cpu-slots", "2", "--data"])
        .arg(site.path().join("mixed"));
    let client = spawn(client, &site.path().join("mixed.log"));
    let job = site.submit(12, 2);
    site.wait(&job, |view| view["state"] == "finished");
    let hosts = site.json(&["hosts"]);
    let devices = hosts[0]["devices"].as_array().unwrap();
    let slots: Vec<_> = devices.iter().map(|d| (d["name"].as_str(), d["slots"].as_u64())).collect();
    let of = |name, slots| (Some(name), Some(slots));
    assert_eq!(slots, [of("NVIDIA Other", 1), of("NVIDIA Test", 1), of("cpu", 2)], "{hosts}");
    let measured = |device: &Value| device["measured"].as_array().unwrap().len();
    assert!(devices.iter().map(measured).sum::<usize>() > 0, "{hosts}");
    let memory = |name: &str| {
        devices.iter().find(|device| device["name"] == name).unwrap()["memory"].clone()
    };
    assert_eq!(memory("NVIDIA Test"), 23_034_u64 << 20);
    let table = String::from_utf8(site.run(&["hosts"]).stdout).unwrap();
    assert!(table.contains("1 x NVIDIA Other, 1 x NVIDIA Test, 2 x cpu"), "{table}");
    drop(client);
}
