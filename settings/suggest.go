package settings

import "strings"

// Suggest is the known key that was probably meant by an unknown one, "" if none is near: at most a fifth of the
// letters differ (upper and lower case are one), or at most two. The first of equally near keys in the order of Keys, then BallastKeys.
func Suggest(key string) string {
	names := make([]string, 0, len(byName))
	for _, keys := range [][]Key{pulsarKeys, ballastKeys} {
		for _, k := range keys {
			names = append(names, k.Name)
			if k.Alias != "" {
				names = append(names, k.Alias)
			}
		}
	}
	return nearest(key, names)
}

func nearest(text string, names []string) string {
	if len(text) > 200 { // no key is that long; keeps hostile input cheap
		return ""
	}
	best, least := "", max(2, len(text)/5)+1
	for _, name := range names {
		if d := distance(strings.ToLower(text), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete, replace or swap with their neighbour to turn a into b (optimal
// string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
