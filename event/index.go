package event

// index finds keys that a document repeats: as in a Java map, the last value counts, at the place of the first.
// The zero value is empty. Few keys are compared one by one, many are looked up.
type index struct {
	few  [16]string
	n    int
	many map[string]int
}

// place says where key stands; a new one is noted to stand at next. Each new key must stand one after the one before.
func (x *index) place(key string, next int) (at int, again bool) {
	if x.many != nil {
		if i, ok := x.many[key]; ok {
			return i, true
		}
		x.many[key] = next
		return next, false
	}
	for i, k := range x.few[:x.n] {
		if k == key {
			return i, true
		}
	}
	if x.n < len(x.few) {
		x.few[x.n] = key
		x.n++
		return next, false
	}
	x.many = make(map[string]int, 4*len(x.few))
	for i, k := range x.few {
		x.many[k] = i
	}
	x.many[key] = next
	return next, false
}
