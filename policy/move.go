package policy

// Why is why broker i may not take the namespace's bundles; zero if it may.
func (v *Verdict) Why(i int) Reason {
	b := &v.Brokers[i]
	if b.Allowed {
		return Reason{}
	}
	if !v.Frozen.IsZero() {
		return v.Frozen
	}
	numbers := []Number{S("broker", b.Broker)}
	switch b.code {
	case &NotListed:
		numbers = append(numbers, S("policy", v.Policy))
	case &SecondaryWaits:
		numbers = append(numbers, S("policy", v.Policy), N("primaries", v.Primaries), N("limit", v.MinLimit))
	case &NotShared:
		numbers = append(numbers, S("namespace", v.Namespace))
	case &KindNotServed:
		numbers = append(numbers, S("kind", b.kind))
	}
	return b.code.Because(numbers...)
}

// Candidates are the indexes of the brokers that are allowed, in order.
func (v *Verdict) Candidates() []int {
	var out []int
	for i := range v.Brokers {
		if v.Brokers[i].Allowed {
			out = append(out, i)
		}
	}
	return out
}

// Others says whether some broker other than the given one is allowed. A bundle that only its owner may take is not to
// be unloaded: its clients would only come back to it.
func (v *Verdict) Others(broker string) bool {
	for i := range v.Brokers {
		if v.Brokers[i].Allowed && v.Brokers[i].Broker != broker {
			return true
		}
	}
	return false
}

// Placed is a bundle and the broker that has it.
type Placed struct {
	Bundle        string // tenant/namespace/0x........_0x........
	Broker        string // broker id
	NonPersistent bool   // it serves non-persistent topics
}

// Move is why moving the bundle to the broker would break a policy; zero if it would not.
func (v *View) Move(b Placed, to string) Reason {
	i := v.Index(to)
	verdict := v.Allowed(NamespaceOf(b.Bundle), !b.NonPersistent)
	switch {
	case !verdict.Frozen.IsZero():
		return verdict.Frozen
	case i < 0:
		return NotRegistered.Because(S("broker", to))
	}
	return verdict.Why(i)
}

// Misplaced is a bundle on a broker that may not have it.
type Misplaced struct {
	Placed
	Why   Reason // what is wrong with the broker
	Stuck Reason // why nothing can be done; zero if another broker may take it
}

// MustMove are the bundles that policies no longer allow where they are, in the given order: policies count when a bundle is
// assigned, so one that changed leaves what is assigned already in the wrong place. Bundles without an owner, on a broker
// that is not registered, of frozen namespaces and of those that belong to brokers are left out.
func (v *View) MustMove(placed []Placed) []Misplaced {
	var out []Misplaced
	for _, b := range placed {
		i, ns := v.Index(b.Broker), NamespaceOf(b.Bundle)
		if i < 0 || KindOf(ns) == OfBroker {
			continue
		}
		verdict := v.Allowed(ns, !b.NonPersistent)
		if !verdict.Frozen.IsZero() || verdict.Brokers[i].Allowed {
			continue
		}
		m := Misplaced{Placed: b, Why: verdict.Why(i)}
		if !verdict.Others(b.Broker) {
			m.Stuck = NoOtherBroker.Because(S("broker", b.Broker), S("namespace", ns))
		}
		out = append(out, m)
	}
	return out
}
