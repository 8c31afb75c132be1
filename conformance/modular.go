package conformance

// modularKinds are the decisions of the Modular load manager: averages, load reports, placement, the shedders, splits,
// broker filters.
var modularKinds = map[string]Check{}
