package modular

import (
	"strconv"
	"strings"
)

// isPulsar5 says whether a Pulsar version is 5.0.0 or later. A version that cannot be read is not.
func isPulsar5(version string) bool {
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 5
}
