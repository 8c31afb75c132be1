package manager

// Moved is the load manager that a cluster was moved to while it was followed as one of another: all brokers of which that is
// known run it. runs are those brokers' kinds. While they are mixed, or one is not known, the cluster has not moved yet.
func Moved(followed Kind, runs []Kind) (to Kind, moved bool) {
	for i, k := range runs {
		if k == Unknown || k == followed || i > 0 && k != to {
			return Unknown, false
		}
		to = k
	}
	return to, to != Unknown
}
