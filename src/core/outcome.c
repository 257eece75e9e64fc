/*
 * outcome.c
 *	  The words of the closed lists in outcome.h.
 */
#include "outcome.h"

static const char *const outcome_names[LL_OUTCOME_COUNT] = {
	[LL_ACCEPTED] = "ACCEPTED",
	[LL_REFUSED] = "REFUSED",
	[LL_CONFLICT] = "CONFLICT",
	[LL_UNKNOWN] = "UNKNOWN",
	[LL_UNENFORCED] = "UNENFORCED",
};

static const char *const wait_names[LL_WAIT_COUNT] = {
	[LL_WAIT_NONE] = 0,
	[LL_WAIT_REFILL] = "refill",
	[LL_WAIT_RELEASE] = "release",
	[LL_WAIT_OPERATOR] = "operator",
	[LL_WAIT_NEVER] = "never",
};

static const LLDimensionInfo dimensions[LL_DIMENSION_COUNT] = {
	[LL_DIM_NONE] = {0, LL_ACCEPTED, LL_WAIT_NONE, "D2",
	"the call took effect, now or (replayed) earlier"},
	[LL_DIM_NO_POLICY] = {"no_policy", LL_REFUSED, LL_WAIT_OPERATOR, "B2",
	"no active policy covers this subject and route"},
	[LL_DIM_REGION] = {"region", LL_REFUSED, LL_WAIT_NEVER, "B2",
	"the policy is for another region"},
	[LL_DIM_ESTIMATOR] = {"estimator", LL_REFUSED, LL_WAIT_NEVER, "B2",
	"the policy does not accept this estimator digest"},
	[LL_DIM_DEADLINE] = {"deadline", LL_REFUSED, LL_WAIT_NEVER, "D9",
	"the caller's deadline had passed when the ledger got to decide"},
	[LL_DIM_DRAINING] = {"draining", LL_REFUSED, LL_WAIT_OPERATOR, "B6",
	"the generation admits no more"},
	[LL_DIM_FROZEN] = {"frozen", LL_REFUSED, LL_WAIT_OPERATOR, "D8",
	"a breach or an operator has frozen the pair, or an operator its route"},
	[LL_DIM_LARGEST_RESERVATION] = {"largest_reservation", LL_REFUSED, LL_WAIT_NEVER, "B2",
	"more units than one reservation may hold"},
	[LL_DIM_CAP] = {"cap", LL_REFUSED, LL_WAIT_NEVER, "B2",
	"more units than the pair can ever have available"},
	[LL_DIM_LARGEST_OUTSTANDING] = {"largest_outstanding", LL_REFUSED, LL_WAIT_RELEASE, "C4",
	"more units than the pair may hold reserved at once; never, if this request alone is more"},
	[LL_DIM_DEBT] = {"debt", LL_REFUSED, LL_WAIT_REFILL, "E1",
	"the pair owes units; release, where there is no refill"},
	[LL_DIM_AVAILABLE] = {"available", LL_REFUSED, LL_WAIT_REFILL, "D3",
	"not enough units available; release, where there is no refill"},
	[LL_DIM_NOT_STARTED] = {"not_started", LL_REFUSED, LL_WAIT_NONE, "D6",
	"the reservation was never started, so nothing can have run under it"},
	[LL_DIM_ALREADY_STARTED] = {"already_started", LL_REFUSED, LL_WAIT_NONE, "D9",
	"an execution holds the units; only its receipt ends it"},
	[LL_DIM_EXPIRED] = {"expired", LL_REFUSED, LL_WAIT_NONE, "D5",
	"the hold has run out"},
	[LL_DIM_RELEASED] = {"released", LL_REFUSED, LL_WAIT_NONE, "D9",
	"the hold was released, or its id fenced"},
	[LL_DIM_SETTLED] = {"settled", LL_REFUSED, LL_WAIT_NONE, "D6",
	"the reservation is settled"},
	[LL_DIM_NOT_DUE] = {"not_due", LL_REFUSED, LL_WAIT_NONE, "D14",
	"a sweep came before the deadline"},
	[LL_DIM_REQUEST] = {"request", LL_CONFLICT, LL_WAIT_NONE, "D2",
	"the id stands for a request with another digest, route or units"},
	[LL_DIM_OPERATION] = {"operation", LL_CONFLICT, LL_WAIT_NONE, "D5",
	"the reservation is bound to another operation"},
	[LL_DIM_OPERATION_ELSEWHERE] = {"operation_elsewhere", LL_CONFLICT, LL_WAIT_NONE, "D5",
	"the operation is bound to something else of this subject"},
	[LL_DIM_FIGURES] = {"figures", LL_CONFLICT, LL_WAIT_NONE, "D6",
	"settled with other units or another receipt digest; the stored ones are shown"},
	[LL_DIM_RESERVATION] = {"reservation", LL_UNKNOWN, LL_WAIT_NONE, "D11",
	"this ledger holds no such reservation"},
	[LL_DIM_PAIR] = {"pair", LL_UNKNOWN, LL_WAIT_NONE, "B3",
	"no call has met this subject and route yet"},
	[LL_DIM_TTL] = {"ttl", LL_REFUSED, LL_WAIT_NEVER, "D13",
	"a later deadline than the policy allows from now"},
	[LL_DIM_CLOSED_BUDGET] = {"closed_budget", LL_REFUSED, LL_WAIT_NEVER, "D13",
	"the reservation's budget has closed, so it can't take more units"},
	[LL_DIM_PROGRESS] = {"progress", LL_REFUSED, LL_WAIT_NONE, "D10",
	"less than the execution has already reported"},
	[LL_DIM_EXTENSION] = {"extension", LL_CONFLICT, LL_WAIT_NONE, "D13",
	"the extension id stands for other units or another deadline"},
	[LL_DIM_GRANT] = {"grant", LL_CONFLICT, LL_WAIT_NONE, "E3",
	"the grant id stands for other units"},
	[LL_DIM_REQUIRE_ALL] = {"require_all", LL_REFUSED, LL_WAIT_REFILL, "J2",
	"this limit would admit, another one of the batch did not; with the longest wait of the batch"},
	[LL_DIM_OPENED] = {"opened", LL_REFUSED, LL_WAIT_NEVER, "B2",
	"the pair has a budget already, so an import would count twice"},
	[LL_DIM_SHADOW] = {"shadow", LL_UNENFORCED, LL_WAIT_NONE, "B7",
	"only a shadow covers the pair: the caller's own limiter decides"},
	[LL_DIM_EMERGENCY_MODE] = {"emergency_mode", LL_REFUSED, LL_WAIT_OPERATOR, "G2",
	"the policy lets no units go into emergency shards"},
	[LL_DIM_EMERGENCY_SHARE] = {"emergency_share", LL_REFUSED, LL_WAIT_OPERATOR, "G2",
	"more units than the policy lets the pair have in shards that are not settled"},
	[LL_DIM_RECOVERY] = {"recovery", LL_REFUSED, LL_WAIT_OPERATOR, "G7",
	"this server may be a copy, or was promoted; an operator has to look"},
	[LL_DIM_STANDBY] = {"standby", LL_REFUSED, LL_WAIT_OPERATOR, "G2",
	"no synchronous standby is connected, and the setting asks for one"},
	[LL_DIM_GATEWAY] = {"gateway", LL_REFUSED, LL_WAIT_OPERATOR, "G2",
	"the gateway is not known here, has announced no boot, or is not the one that is meant"},
	[LL_DIM_BOOT_EPOCH] = {"boot_epoch", LL_REFUSED, LL_WAIT_OPERATOR, "G5",
	"another boot of the gateway is meant"},
	[LL_DIM_FENCE] = {"fence", LL_REFUSED, LL_WAIT_NONE, "G4",
	"the fence is not above all that this gateway has seen, or not the shard's"},
	[LL_DIM_NOT_COMMITTED] = {"not_committed", LL_REFUSED, LL_WAIT_NONE, "G8",
	"only a committed row is signed; commit first"},
	[LL_DIM_ENVELOPE] = {"envelope", LL_REFUSED, LL_WAIT_NONE, "G3",
	"the envelope does not open with a key that is trusted for it"},
	[LL_DIM_SHARD_EXPIRED] = {"shard_expired", LL_REFUSED, LL_WAIT_OPERATOR, "G4",
	"the shard has run out"},
	[LL_DIM_SEALED] = {"sealed", LL_REFUSED, LL_WAIT_OPERATOR, "G6",
	"the shard is sealed, so nothing can be reserved from it any more"},
	[LL_DIM_EXCESS] = {"excess", LL_REFUSED, LL_WAIT_OPERATOR, "E1",
	"this gateway has used more than a shard of the pair had"},
	[LL_DIM_NO_SHARD] = {"no_shard", LL_REFUSED, LL_WAIT_OPERATOR, "G4",
	"this gateway holds no shard of the pair"},
	[LL_DIM_SEQUENCE] = {"sequence", LL_REFUSED, LL_WAIT_NONE, "G6",
	"the report before this one has not been reconciled"},
	[LL_DIM_CONSERVATION] = {"conservation", LL_REFUSED, LL_WAIT_NONE, "G1",
	"the figures of the report do not add up to what was allocated"},
	[LL_DIM_FALLS] = {"falls", LL_REFUSED, LL_WAIT_NONE, "G6",
	"a figure that never falls is lower than in the report before, or a seal was taken back"},
	[LL_DIM_RECEIPTS] = {"receipts", LL_REFUSED, LL_WAIT_NONE, "G6",
	"the receipts say more than the figures, or repeat a reservation"},
	[LL_DIM_SHARD] = {"shard", LL_CONFLICT, LL_WAIT_NONE, "G2",
	"the shard id stands for another gateway, route or units"},
	[LL_DIM_REPORT] = {"report", LL_CONFLICT, LL_WAIT_NONE, "G6",
	"another report was reconciled under this number"},
	[LL_DIM_EMERGENCY_SHARD] = {"emergency_shard", LL_UNKNOWN, LL_WAIT_NONE, "G6",
	"this ledger holds no such shard"},
};

/* ll_outcome_name gives the word of an outcome. */
const char *
ll_outcome_name(LLOutcome outcome)
{
	return outcome_names[outcome];
}

/* ll_wait_name gives the word of a kind of wait, NULL for none. */
const char *
ll_wait_name(LLWait wait)
{
	return wait_names[wait];
}

/* ll_dimension_info describes a dimension. */
const LLDimensionInfo *
ll_dimension_info(LLDimension dimension)
{
	return &dimensions[dimension];
}
