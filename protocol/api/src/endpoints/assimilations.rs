//! Requests of processes that assimilate.

use sojourn_protocol::{
    assimilation::{
        AssimilationsView, LostRequest, NewVersion, OfferAnswer, RejectRequest, RenewRequest,
        TakeAnswer, TakeRequest,
    },
    ids::LeaseId,
    ranges::{LeadAnswer, LeadRequest, RangeResultRequest},
};

endpoints! {
    ASSIMILATIONS = "assimilations";

    /// How much there is to assimilate, and who does it.
    Assimilations: GET "/v1/assimilations" for AssimilatorsAndUsers(Read) {
        answers AssimilationsView = "Backlog and assimilators.";
    }

    /// Takes a unit to assimilate, or a range of a merge that another leads. Held open up to `wait` where there is nothing.
    TakeAssimilation: POST "/v1/assimilations" for Assimilators {
        takes TakeRequest;
        answers TakeAnswer = "A unit, or none.";
    }

    /// Says that a unit is still worked at, so that it isn't given to another.
    RenewAssimilation: POST "/v1/assimilations/" {lease: LeaseId = "The unit's lease."} "/renew" for Assimilators {
        takes RenewRequest;
        answers OfferAnswer = "Whether the term begins anew.";
    }

    /// Shares out by ranges what is left of the merge of a unit, and gives what others have done of it. Held open up to
    /// `wait` while there is nothing done, and nothing to do for whoever asks.
    LeadAssimilation: POST "/v1/assimilations/" {lease: LeaseId = "The unit's lease."} "/lead" for Assimilators {
        takes LeadRequest within MAX_LARGE_BODY;
        answers LeadAnswer = "Ranges that are done, and one to do.";
    }

    /// Gives what came of a range.
    RangeMade: POST "/v1/assimilations/" {lease: LeaseId = "The unit's lease."} "/range" for Assimilators {
        takes RangeResultRequest within MAX_LARGE_BODY;
        answers OfferAnswer = "Whether anybody waits for it.";
    }

    /// Offers what was made of an upload, whose blobs have been put in the store.
    OfferAssimilated: POST "/v1/assimilations/" {lease: LeaseId = "The unit's lease."} "/assimilated" for Assimilators {
        takes NewVersion;
        answers OfferAnswer = "What became of the offer.";
        fails StorageFull;
    }

    /// Refuses an upload.
    OfferRejected: POST "/v1/assimilations/" {lease: LeaseId = "The unit's lease."} "/rejected" for Assimilators {
        takes RejectRequest;
        answers OfferAnswer = "What became of the refusal.";
    }

    /// Says that a blob that a unit needs isn't in the store, or isn't what it was. The server looks itself.
    LostBlob: POST "/v1/assimilations/" {lease: LeaseId = "The unit's lease."} "/lost" for Assimilators {
        takes LostRequest;
        answers OfferAnswer = "Whether it is lost.";
    }
}
