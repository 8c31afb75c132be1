package conformance

// extensibleKinds are the decisions of the Extensible load manager: load data, top bundles, placement, TransferShedder,
// splits, broker filters.
var extensibleKinds = map[string]Check{}
