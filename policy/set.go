package policy

// Set is the policies of one cluster. It is immutable after New.
type Set struct {
	isolation    []Isolation
	antiAffinity map[string]string // tenant/ns -> group
	domains      []Domain
	frozen       map[string]string // tenant/ns -> why its policy could not be read
}

// New makes a Set. antiAffinity maps tenant/ns to its group; unread maps tenant/ns (or "" for all) to why the policies
// could not be read: what cannot be read never means "no policy".
func New(isolation []Isolation, antiAffinity map[string]string, domains []Domain, unread map[string]string) *Set {
	return &Set{isolation: isolation, antiAffinity: antiAffinity, domains: domains, frozen: unread}
}
