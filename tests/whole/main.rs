//! Whole processes. The command line against files and fake servers; a real server, clients and trainers,
//! killed at random instants: the result must be that of one machine, byte for byte.
//!
//! | file | is about |
//! |---|---|
//! | `calls`, `validate`, `submit`, `reading` | output, its stream, and exit codes |
//! | `init` | a job file out of data |
//! | `open_shop` | plans of open shops from files |
//! | `server` | the commands against a real server |
//! | `people` | a job from its submission to a model, with real clients |
//! | `backups` | a running server's folder, copied, and a server that goes on from the copy |
//! | `ask_tell` | searches that a program drives, one with Optuna |
//! | `api_document` | a client that is generated, and a server that is tried, from the document of the API
//! | `control` | a job that is paused, resumed and extended |
//! | `hostile_bounds` | what other servers say to a command |
//! | `paths` | paths that aren't UTF-8 |
//! | `python_search` | searches from Python: the tests of the SDK |
//! | `mlflow` | jobs in a real tracking server |
//! | `exports` | tables and event files, read by pandas and TensorBoard |
//! | `report` | the report of a job, in Chromium |
//! | `models` | uses of an exported model |
//! | `predicting`, `checking` | predictions and `check`, over columns by name |
//! | `preparing` | strangers' bytes in the process that reads them for a server |
//! | `labels` | numbers as labels, and classes with weights |
//! | `tls` | certificates, valid and invalid |
//! | `parts` | hops that end early |
//! | `chaos`, `verdicts` | kills, replays, and the three verdicts |
//! | `assimilators` | processes that assimilate, killed at each step |
//! | `graphs` | users' own models, exported, trained, merged and used |
//! | `gpus` | GPUs, with stand-ins for their driver and their arithmetic |
//! | `ctl` | `client ctl` with a running client |
//! | `owners_word` | the word of a machine's owner, over restarts, clocks and copies |
//! | `watch` | `client ctl --watch` on a terminal |
//! | `webhooks` | addresses that are told of what happens |
//! | `traces` | one id through the logs of all programs, and OpenTelemetry |
//! | `terminals` | commands on terminals: without a size, narrow, and with a question |
//! | `top` | `sojourn top` without a terminal |
//! | `hostile` | a machine that claims, floods, lies and stalls |
//! | `quotas` | several users: whose jobs they may change, what these may take, and slot time between users |
//! | `simulate` | fleets in virtual time |
//! | `deep` | deeper nets through all of it |
//! | `numpy_trainer` | a trainer that isn't ours |
//! | `deploy` | the files in `deploy/` |
//! | `service` | the client under systemd |
//! | `signals` | signals that end a client |
//! | `spot` | a bought fleet, whose machines are taken back |
//! | `standby` | several servers with one journal in Redis, and journals that move |
//! | `filled` | disks that fill up and get room again, the server's and a client's |
//! | `cut_off` | a leader that the network cuts off |
//! | `grown` | all of that at once, and each of them killed |
//! | `clocks` | a server whose clock is set |
//! | `failover` | the active server and its Redis die together, and a replica takes the place of that |
//! | `store` | blobs in an object store |
//! | `cloud` | `cloud up` and `cloud down` without the autoscaler's program, and with a stand-in |
//! | `support`, `site`, `redis_server`, `s3` | a fake server; a real one with clients; a real Redis; a stand-in of S3 |
//! | `http` | questions to a server from the test itself |
//! | `networks` | two networks, and what joins them |

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test ends at what it did not expect"
)]

mod api_document;
mod ask_tell;
mod assimilators;
mod backups;
mod browsing;
mod calls;
mod chaos;
mod checking;
mod clocks;
mod cloud;
mod control;
mod cpu_shares;
mod cross_validation;
mod ctl;
mod cut_off;
mod deep;
mod deploy;
mod descriptors;
mod early_stopping;
mod evaluations;
mod exports;
mod failover;
mod filled;
mod gpus;
mod graphs;
mod grown;
mod harm;
mod hostile;
mod hostile_bounds;
mod http;
mod init;
mod invented;
mod labels;
mod liars;
mod merging;
mod metrics;
mod mlflow;
mod models;
mod networks;
mod numpy_trainer;
mod old_jobs;
mod open_shop;
mod owners_word;
mod parts;
mod paths;
mod people;
mod population;
mod predicting;
mod preparing;
mod python_search;
mod quotas;
mod reading;
#[path = "../../server/tests/support/redis.rs"]
mod redis_server;
#[path = "../../server/tests/support/replicas.rs"]
mod replicas;
mod report;
mod residency;
mod retries;
#[expect(dead_code, reason = "the stores' own suite uses all of it")]
#[path = "../../server/blobs/tests/contract/s3.rs"]
mod s3;
mod sent_data;
mod server;
mod service;
mod signals;
mod simulate;
mod site;
mod spot;
mod standby;
mod store;
mod strangers;
mod submit;
mod support;
mod terminal;
mod terminals;
mod tls;
mod tokens;
mod top;
mod traces;
mod unverified;
mod validate;
mod verdicts;
mod watch;
mod webhooks;
mod wrong_jobs;
