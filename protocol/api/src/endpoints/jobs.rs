//! Jobs, their trials and their history; whether the server is there.

use sojourn_protocol::{
    api::{
        DeleteRequest, DeletedJobs, EvaluateRequest, ExtendRequest, Health as HealthAnswer,
        NoteRequest, PauseRequest, PlacementRequest, RollbackRequest, RolledBack, SearchAnswer,
        SearchRequest, SearchView, SubmitAnswer, SubmitRequest,
    },
    ids::{JobId, TrialId},
    view::{EvaluationView, EventView, HopMatrixView, JobDetail, JobView, TrialHistory, TrialView},
};

endpoints! {
    JOBS = "jobs";

    /// Is the server there?
    Health: GET "/v1/health" for Anyone {
        answers HealthAnswer = "The server lives.";
    }

    /// Starts a job whose blobs have been uploaded.
    SubmitJob: POST "/v1/jobs" for Users(Submit) {
        takes SubmitRequest within MAX_LARGE_BODY;
        answers SubmitAnswer = "The job is taken.";
        fails Conflict;
    }

    /// Every job, or those of one owner.
    Jobs: GET "/v1/jobs" for Users(Read) {
        query owner: String = "Only jobs of this owner: the name or the number of the token that they were submitted with; `admin` for the server's own.";
        query mine: bool = "Only jobs that were submitted with the caller's token.";
        answers [JobView] = "These jobs.";
    }

    /// A job with all that was submitted.
    Job: GET "/v1/jobs/" {job: JobId = "The job."} for Users(Read) {
        answers JobDetail = "The job.";
        fails NotFound;
    }

    /// Ends a job.
    CancelJob: POST "/v1/jobs/" {job: JobId = "The job."} "/cancel" for Users(Submit) {
        answers JobView = "The job, cancelled.";
        fails NotFound;
    }

    /// Lets a job stand still until it is resumed.
    PauseJob: POST "/v1/jobs/" {job: JobId = "The job."} "/pause" for Users(Submit) {
        takes PauseRequest;
        answers JobView = "The job, paused.";
        fails NotFound, Conflict;
    }

    /// Lets a paused job go on.
    ResumeJob: POST "/v1/jobs/" {job: JobId = "The job."} "/resume" for Users(Submit) {
        answers JobView = "The job as it goes on.";
        fails NotFound, Conflict;
    }

    /// Has a job's trials train for longer, also after its end.
    ExtendJob: POST "/v1/jobs/" {job: JobId = "The job."} "/extend" for Users(Submit) {
        takes ExtendRequest;
        answers JobView = "The job, extended.";
        fails NotFound, Conflict;
    }

    /// How far a search has got, with the metric of each trial after each of its epochs.
    Search: GET "/v1/jobs/" {job: JobId = "The job."} "/search" for Users(Read) {
        answers SearchView = "The search.";
        fails NotFound;
    }

    /// Adds trials, stops some or lets them go on, changes the space or the number of combinations, or ends the search. All of it
    /// happens, or nothing.
    ChangeSearch: POST "/v1/jobs/" {job: JobId = "The job."} "/search" for Users(Submit) {
        takes SearchRequest;
        answers SearchAnswer = "It is changed.";
        fails NotFound, Conflict;
    }

    /// Changes whose turn a job is, and on how many hosts it may be.
    PlaceJob: POST "/v1/jobs/" {job: JobId = "The job."} "/placement" for Users(Submit) {
        takes PlacementRequest;
        answers JobView = "The job, placed so.";
        fails NotFound, Conflict;
    }

    /// Notes something about a job, in place of the note before.
    NoteJob: POST "/v1/jobs/" {job: JobId = "The job."} "/note" for Users(Submit) {
        takes NoteRequest;
        answers JobView = "The job with the note.";
        fails NotFound;
    }

    /// Deletes jobs that have ended, with all that the store keeps because of them.
    DeleteJobs: POST "/v1/jobs/delete" for Users(Submit) {
        takes DeleteRequest;
        answers DeletedJobs = "The jobs that were deleted, and the bytes that the store gets back.";
        fails NotFound, Conflict;
    }

    /// Takes trials back to an earlier state, as if they had not been trained since.
    RollbackJob: POST "/v1/jobs/" {job: JobId = "The job."} "/rollback" for Users(Submit) {
        takes RollbackRequest;
        answers [RolledBack] = "The trials that were taken back, and to where.";
        fails NotFound, Conflict;
    }

    /// A job's trials. Those of a large job are read in steps, between which the job goes on.
    Trials: GET "/v1/jobs/" {job: JobId = "The job."} "/trials" for Users(Read) {
        query leading: u32 = "Only so many, the best first; 4,096 at most. If left out, all in the order of their numbers.";
        answers [TrialView] = "Its trials.";
        fails NotFound;
    }

    /// How far the hops of a job's running trials are in their current epochs.
    Hops: GET "/v1/jobs/" {job: JobId = "The job."} "/hops" for Users(Read) {
        answers HopMatrixView = "Running trials by shards.";
        fails NotFound;
    }

    /// A job's history, a page at a time.
    Events: GET "/v1/jobs/" {job: JobId = "The job."} "/events" for Users(Read) {
        query after: u64 = "Only events after this journal position.";
        query limit: u64 = "Events at most; 1,000 if left out, 10,000 at most.";
        answers [EventView] = "Events in the order of the journal.";
        fails NotFound;
    }

    /// All that is needed to train a trial again.
    History: GET "/v1/jobs/" {job: JobId = "The job."} "/trials/" {trial: TrialId = "The trial."} "/history" for Users(Read) {
        answers TrialHistory = "The trial's history.";
        fails NotFound;
    }

    /// Evaluates a trial's best checkpoint outside the search; what is open or done already is given again.
    Evaluate: POST "/v1/jobs/" {job: JobId = "The job."} "/trials/" {trial: TrialId = "The trial."} "/evaluate" for Users(Submit) {
        takes EvaluateRequest;
        answers EvaluationView = "How far it is.";
        fails NotFound, Conflict;
    }

    /// Evaluations of a trial outside the search.
    Evaluations: GET "/v1/jobs/" {job: JobId = "The job."} "/trials/" {trial: TrialId = "The trial."} "/evaluations" for Users(Read) {
        answers [EvaluationView] = "All of them.";
        fails NotFound;
    }

    /// Server-sent events: `changed` with the journal's position as its data, at once and then whenever that has changed, at most twice
    /// a second. The stream ends after an hour; a browser's `EventSource` comes again by itself.
    Changes: GET "/v1/changes" for Users(Read) {
        gives 200 "text/event-stream" = "Events as they come.";
    }
}
