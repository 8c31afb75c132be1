package conformance

// wireKinds are the decisions about the wire: JSON formats, schemas, orders of load, the ownership topic's rules.
var wireKinds = map[string]Check{}
