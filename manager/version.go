package manager

import (
	"slices"
	"strconv"
	"strings"
)

// parseVersion is the first two numbers of a version such as "4.2.4" or "3.1.0-SNAPSHOT".
func parseVersion(version string) (major, minor int, ok bool) {
	a, rest, found := strings.Cut(version, ".")
	b, _, _ := strings.Cut(rest, ".")
	b, _, _ = strings.Cut(b, "-")
	major, err := strconv.Atoi(a)
	if err != nil || !found {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(b)
	return major, minor, err == nil
}

// versions are the brokers' versions, each once, ordered.
func (c *Cluster) versions() []string {
	var out []string
	for _, b := range c.Brokers {
		if b.Version != "" {
			out = append(out, b.Version)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func joined(texts []string) string { return strings.Join(texts, ", ") }
