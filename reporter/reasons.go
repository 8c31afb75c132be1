package reporter

import "github.com/ballast-lb/ballast/plan"

// Why a broker is stale: its load is not known, so it is no destination, and what it serves is as it was last reported.
var (
	NotRead        = plan.Code{ID: "REPORT_NOT_READ", Template: "its load report cannot be read since {seconds} s: {error}"}
	NoAnswer       = plan.Code{ID: "REPORT_NO_ANSWER", Template: "no load report came within {limit} ms, since {seconds} s: {error}"}
	Unreadable     = plan.Code{ID: "REPORT_UNREADABLE", Template: "what it answers is no load report, since {seconds} s: {error}"}
	WentBack       = plan.Code{ID: "REPORT_WENT_BACK", Template: "its load report is older than the one before: lastUpdate {lastUpdate} after {before}"}
	NotAdvancing   = plan.Code{ID: "REPORT_NOT_ADVANCING", Template: "lastUpdate {lastUpdate} of its load report has not advanced for {seconds} s, the limit is {limit} s"}
	Old            = plan.Code{ID: "REPORT_OLD", Template: "the first load report was {seconds} s old, the limit is {limit} s; it counts once lastUpdate advances from {lastUpdate}"}
	OfAnother      = plan.Code{ID: "REPORT_OF_ANOTHER", Template: "the load report that came is that of {other}: look at ballastBrokerAddresses"}
	BadFigure      = plan.Code{ID: "REPORT_BAD_FIGURE", Template: "{what} in its load report is {value}: it must be a number of 0 or more"}
	NoUsage        = plan.Code{ID: "REPORT_NO_USAGE", Template: "its load report has no resource with a limit above 0: the usage is unknown, not 0"}
	ManagerUnknown = plan.Code{ID: "REPORT_MANAGER_UNKNOWN", Template: "it does not say which load manager it runs: {error}"}
	Mixed          = plan.Code{ID: "REPORT_MIXED_MANAGERS", Template: "{other} runs {class} and publishes its load itself: nothing is reported beside it"}
)

// Why nothing is published although the reporter runs.
var (
	NotHolder  = plan.Code{ID: "REPORTER_NOT_HOLDER", Template: "another process reports, or the lock was lost: {error}"}
	NoRegistry = plan.Code{ID: "REPORTER_NO_REGISTRY", Template: "the registry of brokers cannot be read: {error}"}
	NoRecord   = plan.Code{ID: "REPORTER_NO_RECORD", Template: "nothing is published: what was published before cannot be read: {error}"}
	NoPolicies = plan.Code{ID: "REPORTER_NO_POLICIES", Template: "top bundles are not published: the policies cannot be read: {error}"}
)
